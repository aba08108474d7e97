//! Words of an estimate: cells and durations.

use std::time::Duration;

use lab_analysis::format;
use lab_study::model::Cell;

/// Columns of all output of an estimate.
pub(crate) const WIDTH: usize = 80;

/// `users 1000, threads 4`.
#[must_use]
pub fn cell_words(cell: &Cell) -> String {
    let words = cell
        .iter()
        .map(|(factor, level)| format!("{factor} {}", format::level(level)));
    words.collect::<Vec<_>>().join(", ")
}

/// A duration with its two largest units: `1 h 4 min`, `12 min`, `48 s`, `0.25 s`.
#[must_use]
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 && time.subsec_millis() != 0 {
        return format!("{seconds:.2} s");
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        for (ms, text) in [
            (250, "0.25 s"),
            (48_000, "48 s"),
            (720_000, "12 min"),
            (3_240_000, "54 min"),
            (3_840_000, "1 h 4 min"),
            (95_000, "1 min 35 s"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), text);
        }
    }
}
