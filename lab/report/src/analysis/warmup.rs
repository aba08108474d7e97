//! How much of a hold is warm-up: MSER-5 on throughput and on response, the later cut counts.
//!
//! Figures count what is left. Checks still look at the whole hold: the load was planned for it.

use lab_archive::TrialData;
use lab_stats::mser::BATCH;
use lab_stats::{Steady, mser, ratio};

use super::sums::{Hold, Names, Sums};
use super::trial::as_f64;

/// What is known of a trial's beginning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Warmup {
    /// The hold without it.
    pub(super) hold: Hold,
    /// What was cut off the hold.
    pub(super) cut_ms: f64,
    /// In batches.
    pub(super) throughput: Steady,
    /// In batches; not judged if a batch has no answer.
    pub(super) response: Steady,
}

/// Five windows together.
struct Batch {
    start_ms: f64,
    per_s: f64,
    mean_us: f64,
}

/// Finds the warm-up. Where one of the series has no steady state nothing is cut: no part of the
/// hold speaks for the rest.
pub(super) fn warmup(names: &Names<'_>, data: &TrialData, sums: &Sums) -> Warmup {
    let batches = batches(names, data, sums);
    let of = |value: fn(&Batch) -> f64| mser(&batches.iter().map(value).collect::<Vec<f64>>());
    let throughput = of(|batch| batch.per_s);
    let response = of(|batch| batch.mean_us);
    let mut hold = sums.hold_span;
    let cut = match (throughput, response) {
        (Steady::Never, _) | (_, Steady::Never) => 0,
        (throughput, response) => batches_cut(throughput).max(batches_cut(response)),
    };
    if let Some(first) = batches.get(cut).filter(|_| cut > 0) {
        hold.start_ms = first.start_ms.round();
    }
    Warmup {
        cut_ms: hold.start_ms - sums.hold_span.start_ms,
        hold,
        throughput,
        response,
    }
}

fn batches_cut(steady: Steady) -> usize {
    match steady {
        Steady::From(cut) => cut,
        Steady::Never | Steady::NotJudged { .. } => 0,
    }
}

fn batches(names: &Names<'_>, data: &TrialData, sums: &Sums) -> Vec<Batch> {
    let windows: Vec<_> = data
        .windows
        .iter()
        .filter(|window| sums.hold_span.contains(window.start_ms, window.end_ms))
        .collect();
    windows
        .chunks_exact(BATCH)
        .map(|windows| {
            let (mut ok, mut span_ms, mut times) = (0, 0.0, (0.0, 0));
            for window in windows {
                ok += names.answers(window).0;
                span_ms += window.end_ms - window.start_ms;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "`as` saturates; times are positive milliseconds"
                )]
                let start = window.start_ms.round() as u64;
                let (sum, n) = sums
                    .window_response
                    .get(&start)
                    .copied()
                    .unwrap_or_default();
                times = (times.0 + sum, times.1 + n);
            }
            Batch {
                start_ms: windows[0].start_ms,
                per_s: ratio(as_f64(ok) * 1000.0, span_ms).unwrap_or(f64::NAN),
                mean_us: ratio(times.0, as_f64(times.1)).unwrap_or(f64::NAN),
            }
        })
        .collect()
}
