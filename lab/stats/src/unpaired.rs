//! Two groups of trials without common blocks, such as two runs: the permutation test of their labels and its
//! inversion.
//!
//! If the groups don't differ, any other split of the same units into groups of these sizes was equally likely. A unit
//! is a block of a run with all its measurements: common effects on a block's trials move with it, so several
//! comparisons are tested jointly. Source: Fisher, *The Design of Experiments*, 1935, section 21; Pitman, "Significance
//! Tests Which May be Applied to Samples from any Populations", JRSS Supplement 4 (1937).

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::number::count;
use crate::paired::{Adjusted, Bounds};

/// Up to this many splits all of them are used: nine units against nine are 48,620.
pub const EXACT_SPLITS: u64 = 50_000;

/// Random splits beyond that: a p of 0.05 then has a standard error of 0.0015.
pub const SAMPLED_SPLITS: usize = 20_000;

/// Sums that differ by less than this part of their scale are equal: the rounding error.
const TIE: f64 = 1e-9;

/// Returns the number of splits of `a + b` units into groups of these sizes; `None` beyond 2⁶⁴.
#[must_use]
pub fn splits(a: usize, b: usize) -> Option<u64> {
    let mut ways = 1_u128;
    for i in 1..=a.min(b) as u128 {
        ways = ways * (a.max(b) as u128 + i) / i;
        if ways > u128::from(u64::MAX) {
            return None;
        }
    }
    u64::try_from(ways).ok()
}

/// Returns the smallest two-sided p that groups of these sizes can reach; 1 for an empty group.
#[must_use]
pub fn least_p(a: usize, b: usize) -> f64 {
    if a == 0 || b == 0 {
        return 1.0;
    }
    // Two of the splits are the extremes, the observed one and the one that swaps all units.
    splits(a, b).map_or(0.0, |ways| (2.0 / ways_f64(ways)).min(1.0))
}

/// Returns how many units each of two equal groups needs for a p of `alpha` or less.
#[must_use]
pub fn least_units(alpha: f64) -> usize {
    (1..40)
        .find(|n| least_p(*n, *n) <= alpha)
        .unwrap_or(usize::MAX)
}

/// One measure over the units of both groups: those of *a*, then those of *b*; `None` if a unit has none.
pub type Row = Vec<Option<f64>>;

/// Westfall–Young step-down max-T over several measures, labels permuted jointly per unit. The first `a` units of each
/// row are the first group.
///
/// The statistic is the difference of the groups' means over the standard deviation of all values, which no split
/// changes. Exact up to [`EXACT_SPLITS`] splits, else from random splits with `seed`; the observed split counts as one
/// of them (Phipson & Smyth, 2010). Source: Westfall & Young, *Resampling-Based Multiple Testing*, 1993, algorithm 4.1.
#[must_use]
pub fn max_t(rows: &[Row], a: usize, seed: u64) -> Vec<Adjusted> {
    let units = rows.iter().map(Vec::len).max().unwrap_or_default();
    let scales: Vec<f64> = rows.iter().map(|row| deviation(row)).collect();
    let statistic = |at: usize, in_a: &[bool]| {
        let difference = difference(&rows[at], in_a);
        difference.map_or(0.0, |d| {
            if scales[at] > 0.0 {
                d.abs() / scales[at]
            } else {
                0.0
            }
        })
    };
    let first: Vec<bool> = (0..units).map(|unit| unit < a).collect();
    let seen: Vec<f64> = (0..rows.len()).map(|at| statistic(at, &first)).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|x, y| seen[*y].total_cmp(&seen[*x]));
    let mut reached = vec![(0_usize, 0_usize); rows.len()];
    let all = walk(units, a.min(units), seed, |in_a| {
        let mut largest = 0.0_f64;
        for at in order.iter().rev() {
            let now = statistic(*at, in_a);
            largest = largest.max(now);
            reached[*at].0 += usize::from(now >= seen[*at] - TIE);
            reached[*at].1 += usize::from(largest >= seen[*at] - TIE);
        }
    });
    let mut adjusted = vec![
        Adjusted {
            single: 1.0,
            joint: 1.0
        };
        rows.len()
    ];
    let mut joint = 0.0_f64;
    for at in order {
        joint = joint.max(count(reached[at].1) / count(all));
        adjusted[at] = Adjusted {
            single: count(reached[at].0) / count(all),
            joint,
        };
    }
    adjusted
}

/// Returns the differences (mean of `b` less mean of `a`) that the test doesn't reject at `alpha`. Unbounded if there
/// are too few values to reject any.
///
/// A split that swaps k values of each group, with Δ the sum of those from *b* less the sum of those from *a*, reaches
/// the statistic of a centre θ below the mean difference d from θ = min(Δ ÷ k, (2d − cΔ) ÷ (2 − ck)) on, c = 1/m + 1/n.
/// So the ends are order statistics of these: an exact inversion, which bisection would only approximate.
#[must_use]
pub fn interval(a: &[f64], b: &[f64], alpha: f64, seed: u64) -> Bounds {
    let unbounded = Bounds {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };
    if a.is_empty() || b.is_empty() {
        return unbounded;
    }
    let values: Vec<f64> = a.iter().chain(b).copied().collect();
    let (m, n) = (count(a.len()), count(b.len()));
    let c = 1.0 / m + 1.0 / n;
    let d = b.iter().sum::<f64>() / n - a.iter().sum::<f64>() / m;
    let (mut lows, mut highs, mut always) = (Vec::new(), Vec::new(), 0_usize);
    let all = walk(values.len(), a.len(), seed, |in_a| {
        let (mut moved, mut k) = (0.0, 0.0);
        for (at, (value, in_a)) in values.iter().zip(in_a).enumerate() {
            if at < a.len() && !in_a {
                moved -= value;
                k += 1.0;
            } else if at >= a.len() && *in_a {
                moved += value;
            }
        }
        if k < 0.5 || 2.0 - c * k < TIE {
            always += 1;
            return;
        }
        let (one, other) = (moved / k, (2.0 * d - c * moved) / (2.0 - c * k));
        lows.push(one.min(other));
        highs.push(one.max(other));
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "alpha lies in 0…1, so this is at most the number of splits"
    )]
    let rank = (alpha.clamp(0.0, 1.0) * count(all)).floor() as usize;
    if rank < always || rank - always >= lows.len() {
        return unbounded;
    }
    let at = rank - always;
    let last = highs.len() - 1 - at;
    Bounds {
        low: *lows.select_nth_unstable_by(at, f64::total_cmp).1,
        high: *highs.select_nth_unstable_by(last, f64::total_cmp).1,
    }
}

/// Walks over the splits of `units` into a first group of `a` and the rest, the observed one first, and returns their
/// number.
fn walk(units: usize, a: usize, seed: u64, mut visit: impl FnMut(&[bool])) -> usize {
    let mut in_a: Vec<bool> = (0..units).map(|unit| unit < a).collect();
    let ways = splits(a, units - a);
    if ways.is_none_or(|ways| ways > EXACT_SPLITS) {
        visit(&in_a);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..SAMPLED_SPLITS {
            shuffle(&mut in_a, &mut random);
            visit(&in_a);
        }
        return SAMPLED_SPLITS + 1;
    }
    // Combinations in lexicographic order, by the members of the first group.
    let mut members: Vec<usize> = (0..a).collect();
    let mut seen = 0;
    loop {
        in_a.fill(false);
        for member in &members {
            in_a[*member] = true;
        }
        visit(&in_a);
        seen += 1;
        let Some(at) = (0..a).rev().find(|at| members[*at] < units - a + at) else {
            return seen;
        };
        members[at] += 1;
        for next in at + 1..a {
            members[next] = members[next - 1] + 1;
        }
    }
}

/// Shuffles by Fisher and Yates.
pub(crate) fn shuffle<T>(values: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..values.len()).rev() {
        // The bias of the remainder is below 2⁻⁵⁰ for these lengths.
        #[expect(clippy::cast_possible_truncation, reason = "the remainder is an index")]
        let at = (random.next_u64() % (last as u64 + 1)) as usize;
        values.swap(last, at);
    }
}

/// Returns the mean of the second group less that of the first, of the present values.
fn difference(row: &[Option<f64>], in_a: &[bool]) -> Option<f64> {
    let (mut sums, mut counts) = ([0.0; 2], [0_usize; 2]);
    for (value, in_a) in row.iter().zip(in_a) {
        if let Some(value) = value {
            let group = usize::from(!in_a);
            sums[group] += value;
            counts[group] += 1;
        }
    }
    (counts[0] > 0 && counts[1] > 0)
        .then(|| sums[1] / count(counts[1]) - sums[0] / count(counts[0]))
}

/// Returns the standard deviation of all values.
fn deviation(row: &[Option<f64>]) -> f64 {
    let values: Vec<f64> = row.iter().flatten().copied().collect();
    let n = count(values.len().max(1));
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / n).sqrt();
    // Equal values differ by the rounding error.
    if deviation > TIE * mean.abs() {
        deviation
    } else {
        0.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "only its size matters")]
fn ways_f64(ways: u64) -> f64 {
    ways as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    fn row(a: &[f64], b: &[f64]) -> Row {
        a.iter().chain(b).copied().map(Some).collect()
    }

    #[test]
    fn splits_are_counted() {
        assert_eq!(
            [splits(4, 4), splits(3, 5), splits(0, 9)],
            [Some(70), Some(56), Some(1)]
        );
        assert_eq!(splits(400, 400), None);
        assert!(close(least_p(4, 4), 2.0 / 70.0) && close(least_p(3, 3), 0.1));
        assert!(close(least_p(0, 9), 1.0));
        assert_eq!(least_units(0.05), 4);
    }

    #[test]
    fn exact_p_of_separated_groups() {
        let one = max_t(
            &[row(&[1.0, 2.0, 3.0, 4.0], &[11.0, 12.0, 13.0, 14.0])],
            4,
            0,
        );
        assert!(close(one[0].single, 2.0 / 70.0) && close(one[0].joint, 2.0 / 70.0));
        // Pitman's way by hand: of 20 splits of 1, 2, 4 | 3, 5, 6 those with a difference of means of
        // 7/3 or more: {1,2,3}, {1,2,4}, {1,2,5}… sums of the first group ≤ 7 or ≥ 14: 6, 7, 14, 15.
        let two = max_t(&[row(&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0])], 3, 0);
        assert!(close(two[0].single, 4.0 / 20.0), "{two:?}");
    }

    #[test]
    fn nothing_to_tell_is_p_one() {
        let none = max_t(&[row(&[1.0; 4], &[1.0; 4]), vec![None; 8]], 4, 0);
        assert!(
            none.iter()
                .all(|p| close(p.single, 1.0) && close(p.joint, 1.0))
        );
        assert!(max_t(&[], 3, 0).is_empty());
    }

    #[test]
    fn a_copy_of_a_measure_costs_nothing() {
        let one = row(&[1.0, 2.0, 3.0, 4.0], &[4.5, 5.0, 6.0, 3.5]);
        let both = max_t(&[one.clone(), one], 4, 0);
        assert!(close(both[0].joint, both[0].single) && close(both[1].joint, both[0].single));
    }

    #[test]
    fn three_beside_three_bound_nothing() {
        let bounds = interval(&[1.0, 2.0, 3.0], &[5.0, 6.0, 7.0], 0.05, 0);
        assert!(!bounds.is_bounded());
        assert!(interval(&[1.0, 2.0, 3.0], &[5.0, 6.0, 7.0], 0.2, 0).is_bounded());
        assert!(!interval(&[], &[1.0], 0.05, 0).is_bounded());
    }

    #[test]
    fn many_units_are_sampled() {
        let a: Vec<f64> = (0..15).map(f64::from).collect();
        let b: Vec<f64> = (0..15).map(|i| f64::from(i) + 0.1).collect();
        let p = max_t(&[row(&a, &b)], 15, 7)[0].single;
        assert!(p > 0.9, "{p}");
        let bounds = interval(&a, &b, 0.05, 7);
        assert!(
            bounds.low < -2.0 && bounds.high > 2.2 && bounds.high < 5.0,
            "{bounds:?}"
        );
    }
}
