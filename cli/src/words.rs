//! Words that several commands use: cells, lengths of time, what was put back or taken away.

use std::path::Path;
use std::time::Duration;

use lab_host::journal::Restored;
use lab_study::model::{Cell, Level};

/// `users 1000, threads 4`.
pub(crate) fn cell_words(cell: &Cell) -> String {
    let mut words = Vec::with_capacity(cell.len());
    for (factor, level) in cell {
        let level = match level {
            Level::Int(n) => n.to_string(),
            Level::Float(x) => x.to_string(),
            Level::Text(text) => text.clone(),
            Level::Bool(on) => on.to_string(),
        };
        words.push(format!("{factor} {level}"));
    }
    words.join(", ")
}

/// Whole seconds with their two largest units.
pub(crate) fn whole_seconds(time: Duration) -> String {
    duration(Duration::from_secs(time.as_secs_f64().round() as u64))
}

/// A length of time with its two largest units: `1 h 4 min`, `12 min`, `48 s`, `0.25 s`.
pub(crate) fn duration(time: Duration) -> String {
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

/// What was put back, in a sentence.
pub(crate) fn restored(restored: &Restored) -> String {
    let Restored {
        path,
        found,
        value,
        pid,
    } = restored;
    format!("put {path} back to `{value}`: a killed run (process {pid}) had left it at `{found}`")
}

/// What was taken away, in a sentence.
pub(crate) fn cleared(path: &Path, pid: u32) -> String {
    let path = path.display();
    format!("took away the file system at {path}, which a killed run (process {pid}) had made")
}

/// A kernel setting of a killed run that is not there any more.
pub(crate) fn gone(path: &str, value: &str) -> String {
    format!(
        "{path} is gone: its old value `{value}` can't be put back (`plimsoll restore` forgets it)"
    )
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
