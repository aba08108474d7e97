//! Differences of many counts over few blocks: the selection of columns to test, and their statistic.
//!
//! A column has the counts of one thing, such as the samples of one function. A study has six to twelve blocks and
//! hundreds of columns. With so few blocks √Σd² is a poor measure of noise: among hundreds of columns one hardly varies
//! by chance. But Poisson noise is a lower bound of a count's variance, and all columns together show how much larger
//! the variance is. So the variance of a column is moderated towards that, as if it had been seen in some more blocks
//! (Smyth, "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray Experiments",
//! 2004; Love, Huber & Anders, "Moderated estimation of fold change and dispersion", 2014).
//!
//! Swapping the variants of a block changes the signs of its differences, and no other result of this module.
//! [`crate::paired::max_t_scaled`] tests the differences.

use std::collections::BTreeMap;

pub use crate::common_factor::Pair;
use crate::number::count;
use crate::verdict::LEAST_BLOCKS;

/// Fewer samples per trial show nothing, and each column reduces the power of the others.
pub const LEAST_SAMPLES: f64 = 5.0;
/// Maximum columns of a comparison.
pub const MOST_COLUMNS: usize = 2_000;
/// The weight of the prior variance, in blocks.
const PRIOR_BLOCKS: f64 = 8.0;
/// The median of Σd² ÷ Σv over blocks of Poisson counts, for six to twelve blocks.
const MEDIAN_OF_POISSON: f64 = 0.92;
/// Smaller differences are below the resolution of sampling: functions vary by more from trial to trial.
const LEAST_PART: f64 = 0.0003;

/// Returns the columns to test, the largest first, as groups of equal ones.
///
/// They have [`LEAST_SAMPLES`] a trial on average over both variants, and are the [`MOST_COLUMNS`] largest. Equal columns
/// are one test: a function that is only called by one other has the same samples as its path.
#[must_use]
pub fn tested(columns: &[Vec<Pair>]) -> Vec<Vec<usize>> {
    let samples = |column: &Vec<Pair>| column.iter().map(|pair| pair.a + pair.b).sum::<f64>();
    let mut groups: BTreeMap<Vec<(u64, u64)>, Vec<usize>> = BTreeMap::new();
    for (at, column) in columns.iter().enumerate() {
        if !has_enough(column) {
            continue;
        }
        let bits = |pair: &Pair| (pair.a.to_bits(), pair.b.to_bits());
        groups
            .entry(column.iter().map(bits).collect())
            .or_default()
            .push(at);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.sort_by(|a, b| {
        let (a, b) = (a[0], b[0]);
        let larger = samples(&columns[b]).total_cmp(&samples(&columns[a]));
        larger.then(a.cmp(&b))
    });
    groups.truncate(MOST_COLUMNS);
    groups
}

/// Returns true if a column has [`LEAST_SAMPLES`] a trial on average over both variants.
#[must_use]
pub fn has_enough(column: &[Pair]) -> bool {
    let samples: f64 = column.iter().map(|pair| pair.a + pair.b).sum();
    !column.is_empty() && samples >= LEAST_SAMPLES * 2.0 * count(column.len())
}

/// Differences of columns, and the scales of their statistics.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Moderated {
    /// By column and block, without the common factor, in samples.
    pub differences: Vec<Vec<f64>>,
    /// By column: the statistic is |Σd| ÷ scale.
    pub scales: Vec<f64>,
    /// Variance of the counts relative to Poisson's; 1 or more.
    pub dispersion: f64,
}

/// Returns the differences of columns, where `factor` is the log of each block's common factor.
#[must_use]
pub fn moderated(columns: &[&[Pair]], factor: &[f64]) -> Moderated {
    let of = |column: &&[Pair]| (differences(column, factor), poisson(column, factor));
    let (differences, poisson): (Vec<Vec<f64>>, Vec<f64>) = columns.iter().map(of).unzip();
    moderated_by(differences, &poisson, factor.len())
}

/// The same of differences by column and block. `variances` are the sums over blocks of the variance that each column
/// has by chance alone: of counts, the counts; of sums of single values, the sums of their squares.
#[must_use]
pub fn moderated_by(differences: Vec<Vec<f64>>, variances: &[f64], blocks: usize) -> Moderated {
    let squares: Vec<f64> = differences
        .iter()
        .map(|row| row.iter().map(|d| d * d).sum())
        .collect();
    let dispersion = dispersion(&squares, variances);
    let prior = PRIOR_BLOCKS / count(blocks.max(1));
    let scale = |(squares, variance): (&f64, &f64)| {
        ((prior * dispersion * variance + squares) / (prior + 1.0)).sqrt()
    };
    Moderated {
        scales: squares.iter().zip(variances).map(scale).collect(),
        differences,
        dispersion,
    }
}

/// Returns the difference of a column by block, with both sides scaled to the middle of the common factor.
#[must_use]
pub fn differences(column: &[Pair], factor: &[f64]) -> Vec<f64> {
    let difference = |(pair, factor): (&Pair, &f64)| {
        pair.b * (-factor / 2.0).exp() - pair.a * (factor / 2.0).exp()
    };
    column.iter().zip(factor).map(difference).collect()
}

/// Returns Σv for Poisson counts.
fn poisson(column: &[Pair], factor: &[f64]) -> f64 {
    let sum = |(pair, factor): (&Pair, &f64)| {
        pair.b * (-factor / 2.0).exp() + pair.a * (factor / 2.0).exp()
    };
    column.iter().zip(factor).map(sum).sum()
}

fn dispersion(squares: &[f64], poisson: &[f64]) -> f64 {
    let with_samples = squares
        .iter()
        .zip(poisson)
        .filter(|(_, poisson)| **poisson > 0.0);
    let mut ratios: Vec<f64> = with_samples.map(|(d, v)| d / v).collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
    (median / MEDIAN_OF_POISSON).max(1.0)
}

/// Returns the smallest difference of a function that a study shows in four of five cases, as a part of the whole;
/// `None` with fewer blocks than a verdict needs.
///
/// `share` is the function's part of the whole, `samples` those of a trial. The factors are those of simulations with
/// 400 columns, where functions vary by 1 % and trials by 2 % beside sampling (`examples/profile_differences.rs`).
/// Functions of a fifth of the whole or more need up to twice as much, since their noise comes mostly from trials, not
/// from sampling.
#[must_use]
pub fn detectable(share: f64, samples: f64, blocks: usize) -> Option<f64> {
    let usable = blocks >= LEAST_BLOCKS && samples > 0.0 && share > 0.0;
    let errors = if blocks == LEAST_BLOCKS { 7.0 } else { 5.5 };
    let sampling = || errors * (2.0 * share / (samples * count(blocks))).sqrt();
    // The minimum for a small function to be large enough to be tested.
    let to_be_tested = || 2.0 * LEAST_SAMPLES / samples - 2.0 * share;
    usable.then(|| sampling().max(to_be_tested()).max(LEAST_PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: f64, b: f64) -> Pair {
        Pair { a, b }
    }

    #[test]
    fn small_columns_are_left_out_and_equal_ones_are_one() {
        let columns = vec![
            vec![pair(4.0, 5.0); 6],
            vec![pair(5.0, 5.0); 6],
            vec![pair(50.0, 60.0); 6],
            vec![pair(5.0, 5.0); 6],
            vec![],
        ];
        assert_eq!(tested(&columns), [vec![2], vec![1, 3]]);
        let many: Vec<Vec<Pair>> = (0..2_100_u32)
            .map(|n| vec![pair(10.0 + f64::from(n), 10.0)])
            .collect();
        let kept = tested(&many);
        assert_eq!((kept.len(), &kept[0]), (MOST_COLUMNS, &vec![2_099]));
    }

    #[test]
    fn exchanged_variants_change_signs_only() {
        let one = [pair(10.0, 14.0), pair(20.0, 18.0), pair(9.0, 12.0)];
        let two = [pair(100.0, 141.0), pair(210.0, 180.0), pair(91.0, 120.0)];
        let factor = [0.1, -0.2, 0.05];
        let straight = moderated(&[&one, &two], &factor);
        let turn = |column: [Pair; 3]| {
            let [first, Pair { a, b }, last] = column;
            [first, pair(b, a), last]
        };
        let turned = moderated(&[&turn(one), &turn(two)], &[0.1, 0.2, 0.05]);
        for (straight, turned) in straight.differences.iter().zip(&turned.differences) {
            let expected = [straight[0], -straight[1], straight[2]];
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
            assert!(expected.iter().zip(turned).all(close));
        }
        assert!((straight.dispersion - turned.dispersion).abs() < 1e-12);
        for (a, b) in straight.scales.iter().zip(&turned.scales) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn variance_lies_between_what_was_seen_and_poissons() {
        // Two columns without variation keep the variance of counts, by eight blocks of sixteen.
        let calm = [pair(100.0, 100.0); 8];
        let found = moderated(&[&calm, &calm], &[0.0; 8]);
        assert!((found.dispersion - 1.0).abs() < 1e-12);
        assert!((found.scales[0] - (1600.0_f64 / 2.0).sqrt()).abs() < 1e-9);
        assert_eq!(moderated(&[], &[]).scales, Vec::<f64>::new());
    }

    #[test]
    fn more_samples_and_blocks_show_smaller_differences() {
        let part = |share, samples, blocks| detectable(share, samples, blocks).unwrap();
        assert!((part(0.01, 12_000.0, 8) - 0.002_51).abs() < 1e-5);
        assert!((part(0.01, 2_400.0, 6) - 0.008_25).abs() < 1e-5);
        assert!((part(0.000_1, 1e6, 12) - 0.000_3).abs() < 1e-12);
        assert!((part(0.001, 2_400.0, 8) - 0.002_17).abs() < 1e-5);
        assert_eq!(detectable(0.01, 2_400.0, 5), None);
        assert_eq!(detectable(0.01, 0.0, 8), None);
        assert_eq!(detectable(0.0, 2_400.0, 8), None);
    }
}
