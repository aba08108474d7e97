//! Artificial histograms of windows.

use std::sync::LazyLock;

use hdrhistogram::Histogram;
use lab_archive::{Kind, Outcome, Series, TrialWriter};

use super::ms;

/// Writes a time that is a part of the same responses' own.
pub(super) fn parts(
    out: &mut TrialWriter,
    (step, kind): (usize, Kind),
    (start, end): (u64, u64),
    ok: &Histogram<u64>,
    part: f64,
) {
    let mut shorter = empty();
    for value in ok.iter_recorded() {
        let us = (value.value_iterated_to() as f64 * part) as u64;
        shorter.record_n(us, value.count_at_value()).unwrap();
    }
    let series = Series::Step {
        step: step as u16,
        outcome: Outcome::Ok,
        kind,
    };
    out.histogram(series, ms(start), ms(end), &shorter).unwrap();
}

pub(super) fn histogram(
    out: &mut TrialWriter,
    step: usize,
    outcome: Outcome,
    start: u64,
    end: u64,
    histogram: &Histogram<u64>,
) {
    let series = Series::Step {
        step: step as u16,
        outcome,
        kind: Kind::Response,
    };
    out.histogram(series, ms(start), ms(end), histogram)
        .unwrap();
}

/// Returns an empty histogram: a copy, because unoptimised builds create a new one count by count.
pub(crate) fn empty() -> Histogram<u64> {
    static EMPTY: LazyLock<Histogram<u64>> = LazyLock::new(|| {
        let mut empty = Histogram::new_with_bounds(1, 200_000, 3).unwrap();
        empty.auto(true);
        empty
    });
    EMPTY.clone()
}
