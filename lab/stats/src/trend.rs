//! Tests for a trend over the order of measurement.
//!
//! Positions within a group are exchangeable if order doesn't matter: randomisation within a block guarantees that,
//! whatever the distribution. It knows no trials and no metrics.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::number::count;
use crate::unpaired::shuffle;

/// Random orders: a p of 0.01 then has a standard error of 0.001.
pub const ORDERS: usize = 10_000;

/// Sums that differ by less than this part of their scale are equal: the rounding error.
const TIE: f64 = 1e-9;

/// A trend as tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Change of the values per position, by least squares.
    pub per_position: f64,
    /// Two-sided p that the order within the groups doesn't matter.
    pub p: f64,
}

/// Tests for a trend over positions: each group has values in the order of measurement, and only the order within a
/// group counts. `None` without a group of two, or if all values of each group are equal.
///
/// The statistic is Σ (position − mean position) × value, summed over groups; values are shuffled within groups, with
/// `seed`; the observed order counts as one (Phipson & Smyth, "Permutation P-values Should Never Be Zero", 2010).
#[must_use]
pub fn trend(groups: &[Vec<f64>], seed: u64) -> Option<Trend> {
    let spread: f64 = groups.iter().map(|group| squares(group)).sum();
    let positions: f64 = groups
        .iter()
        .map(|group| position_squares(group.len()))
        .sum();
    if positions <= 0.0 || spread <= 0.0 {
        return None;
    }
    let scale = (spread * positions).sqrt();
    let seen = statistic(groups);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut shuffled = groups.to_vec();
    let mut reached = 1_usize;
    for _ in 0..ORDERS {
        for group in &mut shuffled {
            shuffle(group, &mut random);
        }
        reached += usize::from(statistic(&shuffled).abs() >= seen.abs() - TIE * scale);
    }
    Some(Trend {
        per_position: seen / positions,
        p: count(reached) / count(ORDERS + 1),
    })
}

fn statistic(groups: &[Vec<f64>]) -> f64 {
    groups
        .iter()
        .map(|group| {
            let middle = (count(group.len()) - 1.0) / 2.0;
            let values = group.iter().enumerate();
            values
                .map(|(at, value)| (count(at) - middle) * value)
                .sum::<f64>()
        })
        .sum()
}

fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / count(values.len().max(1));
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Σ (position − mean position)², n(n² − 1) ÷ 12.
fn position_squares(n: usize) -> f64 {
    count(n) * (count(n).powi(2) - 1.0) / 12.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_climb_is_one() {
        let climb = vec![vec![1.0, 2.0, 3.0, 4.0]; 6];
        let found = trend(&climb, 1).unwrap();
        assert!(
            (found.per_position - 1.0).abs() < 1e-9 && found.p < 0.001,
            "{found:?}"
        );
        let level = vec![vec![1.0, 2.0, 2.0, 1.0]; 6];
        assert!(trend(&level, 1).unwrap().p > 0.9);
    }

    #[test]
    fn a_difference_between_groups_is_none() {
        let steps: Vec<Vec<f64>> = (0..6).map(|i| vec![f64::from(i) * 100.0; 4]).collect();
        assert_eq!(trend(&steps, 1), None);
        assert_eq!(trend(&[vec![1.0], vec![2.0]], 1), None);
        assert_eq!(trend(&[], 1), None);
    }

    #[test]
    fn p_is_that_of_all_orders() {
        // Of the 24 orders of 1, 2, 3, 4 two have |Σ| = 5, the largest: 2 ÷ 24.
        let p = trend(&[vec![1.0, 2.0, 3.0, 4.0]], 3).unwrap().p;
        assert!((p - 2.0 / 24.0).abs() < 0.01, "{p}");
    }
}
