//! Data transferred by sessions: its rate, and its ratio to the disk's own rate.

use hdrhistogram::Histogram;
use lab_archive::model::RawBaseline;
use lab_stats::histogram::{max, mean, min};

use crate::model::Transfer;
use crate::number::as_f64;

/// Returns the transfer of a trial with these session times, in µs.
pub(crate) fn of_trial(
    carried: &lab_plan::Transfer,
    sessions: &Histogram<u64>,
    raw: Option<&RawBaseline>,
) -> Transfer {
    let ms = |us: u64| as_f64(us) / 1000.0;
    let mean_ms = mean(sessions).map(|us| us / 1000.0);
    let mb_per_s = mean_ms.and_then(|ms| rate(carried.bytes, ms));
    let raw_mb_per_s = raw.and_then(raw_rate);
    Transfer {
        place: carried.place.clone(),
        bytes: carried.bytes,
        chunk_bytes: carried.chunk_bytes,
        count: sessions.len(),
        total_ms: mean_ms.map(|mean| mean * as_f64(sessions.len())),
        min_ms: min(sessions).map(ms),
        max_ms: max(sessions).map(ms),
        mean_ms,
        mb_per_s,
        kib_per_whole_ms: mean_ms.and_then(|mean| kib_per_whole_ms(carried.bytes, mean)),
        raw_mb_per_s,
        of_raw: mb_per_s
            .zip(raw_mb_per_s)
            .and_then(|(ours, raw)| lab_stats::ratio(ours, raw)),
    }
}

/// 10⁶ bytes per second.
fn rate(bytes: u64, ms: f64) -> Option<f64> {
    lab_stats::ratio(as_f64(bytes) / 1e3, ms)
}

/// Rounds as report 002 does: 2048 KiB in 81.4 ms are 2048 ÷ 81. `None` below a whole ms.
#[must_use]
pub fn kib_per_whole_ms(bytes: u64, ms: f64) -> Option<f64> {
    lab_stats::ratio(as_f64(bytes) / 1024.0, ms.trunc())
}

/// Returns the rate over all passes, so that a slowdown of the disk through a trial shows by half.
fn raw_rate(raw: &RawBaseline) -> Option<f64> {
    let bytes = raw.files * raw.file_bytes * raw.passes_ms.len() as u64;
    rate(bytes, raw.passes_ms.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(bytes: u64, chunk_bytes: u64) -> lab_plan::Transfer {
        lab_plan::Transfer {
            place: "a".to_owned(),
            bytes,
            chunk_bytes,
        }
    }

    #[test]
    fn rates_are_those_of_report_002_and_the_true_ones() {
        let mut sessions = Histogram::<u64>::new(3).unwrap();
        // 814 ms in all, as published: 81.4 ms each.
        sessions.record_n(81_400, 10).unwrap();
        let raw = RawBaseline {
            files: 10,
            file_bytes: 2_097_152,
            chunk_bytes: 262_144,
            passes_ms: vec![300.0, 500.0],
        };
        let found = of_trial(&carried(2_097_152, 262_144), &sessions, Some(&raw));
        assert_eq!(found.kib_per_whole_ms.unwrap(), 2048.0 / 81.0);
        assert!((found.mb_per_s.unwrap() - 25.76).abs() < 0.02, "{found:?}");
        assert!((found.raw_mb_per_s.unwrap() - 52.43).abs() < 0.01);
        assert!((found.of_raw.unwrap() - 0.491).abs() < 0.002);
        assert!((found.total_ms.unwrap() - 814.0).abs() < 1.0);
    }

    #[test]
    fn nothing_is_made_of_no_sessions_and_of_less_than_a_millisecond() {
        let mut sessions = Histogram::<u64>::new(3).unwrap();
        let none = of_trial(&carried(1000, 1000), &sessions, None);
        assert_eq!((none.count, none.mb_per_s, none.of_raw), (0, None, None));
        sessions.record(900).unwrap();
        let quick = of_trial(&carried(1000, 1000), &sessions, None);
        assert_eq!(quick.kib_per_whole_ms, None);
        assert!(quick.mb_per_s.is_some());
    }
}
