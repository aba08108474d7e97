//! The length of a hold's warm-up: MSER-5 on throughput and on response time; the later cut counts.
//!
//! All trials of a cell have one cut, found on the mean of their series: trials of one cell differ by noise, and a cut
//! per trial would follow it (one loses a third of its hold, its neighbour nothing). Mean over replications first, then
//! truncation: Welch's method, and how Hoad, Robinson & Davies apply MSER-5 to several replications ("Automating
//! warm-up length estimation", JORS 61, 2010).
//!
//! Compared cells all use the longest cut of any ([`Warmup::at_least`]).
//!
//! A search judges each trial when it ends, and decides from that: there a trial has its own cut, in the report as
//! well, so that the line is that of the trials that the search saw.
//!
//! Figures use the rest. Checks still use the whole hold: the load was planned for it.

use lab_archive::TrialData;
use lab_stats::mser::BATCH;
use lab_stats::{Steady, WeightedMean, mser, ratio};

use crate::number::as_f64;
use crate::sums::{Names, Sums};

/// The warm-up of a cell's trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warmup {
    /// Cut from the start of each hold.
    pub cut_ms: f64,
    /// In batches.
    pub throughput: Steady,
    /// In batches; skipped if a batch has no response in any trial.
    pub response: Steady,
    /// Trials in the mean.
    pub trials: usize,
    /// Whether another cell needs the cut, and this one less.
    pub by_another: bool,
}

impl Warmup {
    /// Applies a longer cut, if the steady state is long enough.
    #[must_use]
    pub fn at_least(self, cut_ms: f64) -> Self {
        let is_steady =
            matches!(self.throughput, Steady::From(_)) && self.response != Steady::Never;
        match is_steady && cut_ms > self.cut_ms {
            true => Self {
                cut_ms,
                by_another: true,
                ..self
            },
            false => self,
        }
    }
}

/// Five windows together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batch {
    /// From the start of the hold.
    start_ms: f64,
    per_s: Option<f64>,
    mean_us: Option<f64>,
}

/// Finds the warm-up of trials of one cell. If one of the series has no steady state nothing is cut: no part of the
/// hold represents the rest.
#[must_use]
pub fn warmup(trials: &[&[Batch]]) -> Warmup {
    let length = trials.iter().map(|batches| batches.len()).min();
    let length = length.unwrap_or_default();
    let of = |value: fn(&Batch) -> Option<f64>| {
        let mean = |at: usize| {
            let values = trials.iter().filter_map(|batches| value(&batches[at]));
            let mean: WeightedMean = values.map(|value| (value, 1.0)).collect();
            mean.mean().unwrap_or(f64::NAN)
        };
        mser(&(0..length).map(mean).collect::<Vec<f64>>())
    };
    let throughput = of(|batch| batch.per_s);
    let response = of(|batch| batch.mean_us);
    let cut = match (throughput, response) {
        (Steady::Never, _) | (_, Steady::Never) => 0,
        (throughput, response) => batches_cut(throughput).max(batches_cut(response)),
    };
    let first = trials.first().and_then(|batches| batches.get(cut));
    Warmup {
        cut_ms: first.map_or(0.0, |batch| if cut > 0 { batch.start_ms } else { 0.0 }),
        throughput,
        response,
        trials: trials.len(),
        by_another: false,
    }
}

fn batches_cut(steady: Steady) -> usize {
    match steady {
        Steady::From(cut) => cut,
        Steady::Never | Steady::NotJudged { .. } => 0,
    }
}

/// Returns a trial's batches.
pub(crate) fn batches(names: &Names<'_>, data: &TrialData, sums: &Sums) -> Vec<Batch> {
    let hold = sums.hold_span;
    let windows: Vec<_> = data
        .windows
        .iter()
        .filter(|window| hold.contains(window.start_ms, window.end_ms))
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
                start_ms: windows[0].start_ms.round() - hold.start_ms,
                per_s: ratio(as_f64(ok) * 1000.0, span_ms),
                mean_us: ratio(times.0, as_f64(times.1)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(of: impl Fn(u32) -> f64) -> Vec<Batch> {
        let batch = |at: u32| Batch {
            start_ms: f64::from(at) * 100.0,
            per_s: Some(100.0),
            mean_us: Some(of(at)),
        };
        (0..60).map(batch).collect()
    }

    #[test]
    fn trials_of_a_cell_have_one_cut() {
        let noise = |at: u32, seed: u32| f64::from((at * 7919 + seed * 104_729) % 101) / 10.0;
        let slow = |at: u32| if at < 8 { 60.0 } else { 20.0 };
        let trials: Vec<Vec<Batch>> = (1..=6)
            .map(|seed| trial(|at| slow(at) + noise(at, seed)))
            .collect();
        let all: Vec<&[Batch]> = trials.iter().map(Vec::as_slice).collect();
        let common = warmup(&all);
        assert!((700.0..=1000.0).contains(&common.cut_ms), "{common:?}");
        assert_eq!(common.trials, 6);
    }

    #[test]
    fn what_never_settles_is_not_cut() {
        let climb = trial(f64::from);
        let found = warmup(&[&climb]);
        assert!(found.cut_ms.abs() < 1e-9 && found.response == Steady::Never);
        assert_eq!(warmup(&[]).throughput, Steady::NotJudged { batches: 0 });
    }
}
