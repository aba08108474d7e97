//! MSER-5: the length of the warm-up at the start of a series.
//!
//! Batches of five values; the cut d that minimises Σ(y − ȳ)² ÷ (k − d)² over the remaining k − d batches. Atypical
//! early values raise the sum; cutting many values lowers the divisor. Source: White, "An Effective Truncation
//! Heuristic for Bias Reduction in Simulation Output", Simulation 69 (1997); the batches and the rule for "no steady
//! state" as in Hoad & Robinson, "Implementing MSER-5 in Commercial Simulation Software and Its Wider Implications",
//! WSC 2011.

use crate::number::count;

/// Values per batch.
pub const BATCH: usize = 5;

/// With fewer batches a steady state can't be judged.
pub const LEAST_BATCHES: usize = 50;

/// Minimum remaining batches of a cut: a handful of batches is similar by chance (Hoad & Robinson exclude the last
/// five, too).
const LEAST_LEFT: usize = 5;

/// The result of MSER-5 for a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steady {
    /// Steady from this value on (0: from the first).
    From(usize),
    /// The best cut is in the last half: there is no steady state.
    Never,
    /// Too few batches to judge.
    NotJudged {
        /// Number of batches.
        batches: usize,
    },
}

/// Returns where `values`, evenly spaced in time, become steady. Values after the last whole batch are ignored; a value
/// that isn't finite prevents a judgement.
#[must_use]
pub fn mser5(values: &[f64]) -> Steady {
    let batches: Vec<f64> = values
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / count(BATCH))
        .collect();
    match mser(&batches) {
        Steady::From(cut) => Steady::From(cut * BATCH),
        other => other,
    }
}

/// Judges batches made by the caller; the result is in batches. For means of unequally many values, a batch is better
/// made from the values than from the means of its fifths.
#[must_use]
pub fn mser(batches: &[f64]) -> Steady {
    if batches.len() < LEAST_BATCHES || batches.iter().any(|mean| !mean.is_finite()) {
        return Steady::NotJudged {
            batches: batches.len(),
        };
    }
    let cut = best_cut(batches);
    if cut > batches.len() / 2 {
        Steady::Never
    } else {
        Steady::From(cut)
    }
}

/// Returns the number of batches to cut; the smallest of equally good ones. One pass from the end, with Welford's
/// update of mean and squares.
fn best_cut(batches: &[f64]) -> usize {
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (cut, value) in batches.iter().enumerate().rev() {
        let left = batches.len() - cut;
        let step = value - mean;
        mean += step / count(left);
        squares += step * (value - mean);
        let statistic = squares / count(left).powi(2);
        if left >= LEAST_LEFT && statistic <= best.0 {
            best = (statistic, cut);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each batch mean five times.
    fn series(batches: &[f64]) -> Vec<f64> {
        batches.iter().flat_map(|mean| [*mean; BATCH]).collect()
    }

    #[test]
    fn the_statistic_by_definition() {
        // The same minimum as the direct formula, on values without a pattern.
        let batches: Vec<f64> = (0..80_u32)
            .map(|i| f64::from(i * 7919 % 101) + 400.0 / f64::from(i + 1))
            .collect();
        let direct = |cut: usize| {
            let left = &batches[cut..];
            let mean = left.iter().sum::<f64>() / count(left.len());
            left.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / count(left.len()).powi(2)
        };
        let least = (0..=batches.len() - LEAST_LEFT)
            .min_by(|a, b| direct(*a).total_cmp(&direct(*b)))
            .unwrap();
        assert_eq!(best_cut(&batches), least);
        assert!((1..40).contains(&least), "{least}");
    }

    #[test]
    fn a_step_is_cut_where_it_ends() {
        let mut batches = vec![10.0; 60];
        batches[..7].fill(50.0);
        assert_eq!(mser5(&series(&batches)), Steady::From(35));
    }

    #[test]
    fn an_even_series_loses_nothing() {
        assert_eq!(mser5(&series(&[3.0; 50])), Steady::From(0));
        let alternating: Vec<f64> = (0..60).map(|i| f64::from(i % 2)).collect();
        assert_eq!(mser5(&series(&alternating)), Steady::From(0));
    }

    #[test]
    fn a_series_that_only_settles_late_never_does() {
        let mut batches: Vec<f64> = (0..60).map(|i| f64::from(100 - i)).collect();
        batches[45..].fill(0.0);
        assert_eq!(mser5(&series(&batches)), Steady::Never);
        // A steady climb has no steady part: longer cuts keep lowering the statistic.
        let climb: Vec<f64> = (0..60).map(f64::from).collect();
        assert_eq!(mser5(&series(&climb)), Steady::Never);
    }

    #[test]
    fn few_or_unusable_values_are_not_judged() {
        assert_eq!(
            mser5(&series(&[1.0; 49])),
            Steady::NotJudged { batches: 49 }
        );
        assert_eq!(mser5(&[]), Steady::NotJudged { batches: 0 });
        let mut holed = series(&[1.0; 60]);
        holed[7] = f64::NAN;
        assert_eq!(mser5(&holed), Steady::NotJudged { batches: 60 });
    }
}
