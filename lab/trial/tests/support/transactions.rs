//! The sessions of a window as transactions of an archive.

use std::time::Duration;

use lab_archive::model::WindowLine;
use lab_archive::{Outcome, Series, TrialWriter};
use lab_counts::{ErrorClass, Hist, StepCounts};

/// Completed ones took 30 ms, and 130 with their think times; the others have been in progress for 40 and 240.
pub(crate) fn write(
    out: &mut TrialWriter,
    line: &mut WindowLine,
    [completed, failed, unfinished]: [u64; 3],
    is_last: bool,
) {
    let unfinished = if is_last { unfinished } else { 0 };
    let mut counts = StepCounts {
        ok: completed,
        unanswered: unfinished,
        ..StepCounts::default()
    };
    counts.errors[ErrorClass::Status] = failed;
    line.transactions.insert(0, counts);
    let at = |ms: f64| Duration::from_secs_f64(ms / 1e3);
    for (outcome, elapsed, us, count) in [
        (Outcome::Ok, false, 30_000, completed),
        (Outcome::Ok, true, 130_000, completed),
        (Outcome::Unanswered, false, 40_000, unfinished),
        (Outcome::Unanswered, true, 240_000, unfinished),
    ] {
        let series = Series::Transaction {
            transaction: 0,
            outcome,
            elapsed,
        };
        let mut times: Hist = Hist::default();
        times.record_n(us, count).unwrap();
        out.histogram(series, at(line.start_ms), at(line.end_ms), &times)
            .unwrap();
    }
}
