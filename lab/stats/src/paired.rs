//! Comparison of two variants, paired by block: the sign-flip permutation test and its inversion.
//!
//! Each block has both variants once, so an effect of the block on both cancels in the ratio. The input is one log
//! ratio per block, whatever the number of requests: the trial is the unit (Abedi & Brecht, ICPE 2017). The test
//! assumes only that, without a difference, a block's log ratio is equally likely to have the other sign; no
//! distribution. With k blocks p can't fall below 2/2^k: 0.0625 for five, 0.031 for six.

use crate::number::count;
use crate::signs;

/// Sums that differ by less than this part of their scale are equal: the rounding error.
const TIE: f64 = 1e-9;

/// Returns `ln(b ÷ a)`; `None` unless both are positive and finite.
#[must_use]
pub fn log_ratio(a: f64, b: f64) -> Option<f64> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    (usable(a) && usable(b)).then(|| (b / a).ln())
}

/// Returns the arithmetic mean; of log ratios, the log of the geometric mean ratio. `None` without values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}

/// Returns the two-sided p of the sign-flip permutation test that `differences` have the centre 0, by their mean. 1
/// without values.
///
/// Exact up to [`signs::EXACT_BLOCKS`] values, else from patterns drawn with `seed`. Source: Fisher,
/// *The Design of Experiments*, 1935, section 21; Good, *Permutation, Parametric and Bootstrap
/// Tests*, 3rd ed., section 3.2.
#[must_use]
pub fn sign_flip_p(differences: &[f64], seed: u64) -> f64 {
    max_t(&[differences.iter().copied().map(Some).collect()], seed)
        .first()
        .map_or(1.0, |adjusted| adjusted.single)
}

/// Ends of an interval; an end is infinite if too few blocks bound it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lower end, or −∞.
    pub low: f64,
    /// Upper end, or +∞.
    pub high: f64,
}

impl Bounds {
    /// Returns true if both ends are finite.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// Returns both ends, if they are finite.
    #[must_use]
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.is_bounded().then_some((self.low, self.high))
    }
}

/// Returns the centres that [`sign_flip_p`] doesn't reject at `alpha`: an interval of confidence 1 − alpha or slightly
/// more. Unbounded if the test can't reject any, that is for k values with 2/2^k > alpha.
///
/// For a centre θ below the mean, a pattern that flips the subset F exceeds the observed statistic exactly if the mean
/// of F or that of the others is at most θ. So p(θ) = (1 + number of subset means ≤ θ) ÷ patterns, and the ends are
/// order statistics of the subset means: an exact inversion, which bisection would only approximate. Source: Hartigan,
/// "Using Subsample Values as Typical Values", JASA 64 (1969).
#[must_use]
pub fn interval(differences: &[f64], alpha: f64, seed: u64) -> Bounds {
    let n = differences.len();
    let total: f64 = differences.iter().sum();
    let mut flipped = vec![false; n];
    let (mut sum, mut size) = (0.0, 0_usize);
    let mut means: Vec<f64> = Vec::new();
    let patterns = signs::walk(n, seed, |changed| {
        for block in changed {
            let sign = if flipped[*block] { -1.0 } else { 1.0 };
            flipped[*block] = !flipped[*block];
            sum += sign * differences[*block];
            size = if flipped[*block] { size + 1 } else { size - 1 };
        }
        if size > 0 {
            means.push(sum / count(size));
        }
        if size < n && size > 0 {
            means.push((total - sum) / count(n - size));
        }
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "alpha lies in 0…1, so this is at most the number of patterns"
    )]
    let rank = (alpha.clamp(0.0, 1.0) * count(patterns)).floor() as usize;
    if rank == 0 || rank > means.len() {
        return Bounds {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
    }
    let last = means.len() - rank;
    let low = *means.select_nth_unstable_by(rank - 1, f64::total_cmp).1;
    let high = *means.select_nth_unstable_by(last, f64::total_cmp).1;
    Bounds { low, high }
}

/// The p of one comparison, alone and adjusted for all comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjusted {
    /// p of this comparison alone.
    pub single: f64,
    /// p that controls the probability of any false difference among all comparisons.
    pub joint: f64,
}

/// Westfall–Young step-down max-T over several comparisons, signs flipped jointly per block.
///
/// A row is one comparison: its log ratio per block, `None` if a block has no valid pair. The statistic is |Σd| ÷ √Σd²,
/// which is monotonic in Student's t and whose scale no flip changes. Since all comparisons of a block flip together,
/// their common parts (a shared baseline, or p50 and the mean) aren't charged several times. Source: Westfall & Young,
/// *Resampling-Based Multiple Testing*, 1993, algorithm 4.1, with sign flips for its permutations.
#[must_use]
pub fn max_t(comparisons: &[Vec<Option<f64>>], seed: u64) -> Vec<Adjusted> {
    let scale = |row: &Vec<Option<f64>>| row.iter().flatten().map(|d| d * d).sum::<f64>().sqrt();
    let scales: Vec<f64> = comparisons.iter().map(scale).collect();
    max_t_scaled(comparisons, &scales, seed)
}

/// As [`max_t`], with |Σd| ÷ scale as the statistic. Sign flips must not change a scale. A row with scale 0 shows
/// nothing.
#[must_use]
pub fn max_t_scaled(comparisons: &[Vec<Option<f64>>], scales: &[f64], seed: u64) -> Vec<Adjusted> {
    let blocks = comparisons.iter().map(Vec::len).max().unwrap_or_default();
    let scaled = |at: usize, block: usize| match comparisons[at].get(block) {
        Some(Some(difference)) if scales[at] > 0.0 => difference / scales[at],
        _ => 0.0,
    };
    let statistic = |at: usize| {
        (0..blocks)
            .map(|block| scaled(at, block))
            .sum::<f64>()
            .abs()
    };
    let statistics: Vec<f64> = (0..comparisons.len()).map(statistic).collect();
    let mut order: Vec<usize> = (0..comparisons.len()).collect();
    order.sort_by(|a, b| statistics[*b].total_cmp(&statistics[*a]));
    let by_block = (0..blocks).map(|block| order.iter().map(|at| scaled(*at, block)).collect());
    let mut rows = Rows::new(by_block.collect(), order.len());
    let patterns = signs::walk(blocks, seed, |changed| rows.visit(changed));
    let mut adjusted = vec![
        Adjusted {
            single: 1.0,
            joint: 1.0
        };
        order.len()
    ];
    let mut joint = 0.0_f64;
    for (at, row) in order.into_iter().zip(rows.rows) {
        // The joint p of a comparison is never below that of one with a larger statistic.
        joint = joint.max(count(row.reached_by_any) / count(patterns));
        adjusted[at] = Adjusted {
            single: count(row.reached_alone) / count(patterns),
            joint,
        };
    }
    adjusted
}

/// Comparisons during the walk over the patterns, the largest statistic first.
struct Rows {
    /// Differences ÷ scale, by block and row.
    by_block: Vec<Vec<f64>>,
    /// The pattern's sign of each block.
    signs: Vec<f64>,
    rows: Vec<Row>,
}

struct Row {
    /// Σd ÷ scale with the pattern's signs.
    sum: f64,
    seen: f64,
    reached_alone: usize,
    reached_by_any: usize,
}

impl Rows {
    fn new(by_block: Vec<Vec<f64>>, rows: usize) -> Self {
        let row = |at: usize| {
            let sum = by_block.iter().map(|block| block[at]).sum::<f64>();
            Row {
                sum,
                seen: sum.abs(),
                reached_alone: 0,
                reached_by_any: 0,
            }
        };
        Self {
            rows: (0..rows).map(row).collect(),
            signs: vec![1.0; by_block.len()],
            by_block,
        }
    }

    /// Flips the signs of these blocks, and counts which statistics the new pattern reaches.
    fn visit(&mut self, changed: &[usize]) {
        for block in changed {
            let sign = &mut self.signs[*block];
            for (row, scaled) in self.rows.iter_mut().zip(&self.by_block[*block]) {
                row.sum -= 2.0 * *sign * scaled;
            }
            *sign = -*sign;
        }
        let mut largest = 0.0_f64;
        for row in self.rows.iter_mut().rev() {
            let now = row.sum.abs();
            largest = largest.max(now);
            row.reached_alone += usize::from(now >= row.seen - TIE);
            row.reached_by_any += usize::from(largest >= row.seen - TIE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn exact_p_of_few_blocks() {
        // All of one sign: only the pattern itself and its mirror image reach it, 2 ÷ 2^k.
        for (k, p) in [(5, 0.0625), (6, 0.031_25), (8, 0.007_812_5)] {
            let differences: Vec<f64> = (1..=k).map(|i| 0.02 + f64::from(i) / 1000.0).collect();
            assert!(close(sign_flip_p(&differences, 0), p), "{k} blocks");
        }
        // 1, 2, …, 6 with one sign flipped: the patterns whose flipped values sum to at most that value, counted by
        // hand. Flipped {1}: {} {1} → 2 of 32; {3}: {} {1} {2} {3} {1,2} → 5 of 32.
        let turned = |at: usize| {
            let mut values: Vec<f64> = (1..=6).map(f64::from).collect();
            values[at - 1] *= -1.0;
            sign_flip_p(&values, 0)
        };
        assert!(close(turned(1), 2.0 / 32.0), "{}", turned(1));
        assert!(close(turned(3), 5.0 / 32.0), "{}", turned(3));
    }

    #[test]
    fn nothing_to_tell_is_p_one() {
        assert!(close(sign_flip_p(&[], 0), 1.0));
        assert!(close(sign_flip_p(&[0.0; 8], 0), 1.0));
        assert!(close(sign_flip_p(&[1.0, -1.0], 0), 1.0));
    }

    #[test]
    fn ends_are_the_extremes_at_six_and_nowhere_at_five() {
        let six = [0.03, -0.01, 0.02, 0.05, 0.04, 0.01];
        let bounds = interval(&six, 0.05, 0);
        assert!(close(bounds.low, -0.01) && close(bounds.high, 0.05));
        let five = interval(&six[..5], 0.05, 0);
        assert_eq!((five.low, five.high), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(!five.is_bounded());
        assert!(!interval(&[], 0.05, 0).is_bounded());
        assert!(interval(&six[..5], 0.10, 0).is_bounded());
    }

    #[test]
    fn a_mean_in_a_drawn_sample_is_near_the_exact_one() {
        // 21 values: 11 of +1 and 10 of −1, so |Σ| ≥ 1 always.
        let odd: Vec<f64> = (0..21).map(|i| if i < 11 { 1.0 } else { -1.0 }).collect();
        assert!(close(sign_flip_p(&odd, 3), 1.0));
        // 16 of 21 positive: two-sided sign test, 2 · Σ_{i ≥ 16} C(21, i) ÷ 2^21 = 0.0266.
        let most: Vec<f64> = (0..21).map(|i| if i < 16 { 1.0 } else { -1.0 }).collect();
        let p = sign_flip_p(&most, 3);
        assert!((p - 0.0266).abs() < 0.003, "{p}");
    }

    #[test]
    fn together_never_surer_than_alone() {
        let rows = vec![
            vec![
                Some(0.05),
                Some(0.06),
                Some(0.05),
                Some(0.055),
                Some(0.06),
                Some(0.05),
            ],
            vec![
                Some(0.01),
                Some(-0.02),
                Some(0.03),
                None,
                Some(-0.01),
                Some(0.02),
            ],
            vec![Some(0.0); 6],
        ];
        let adjusted = max_t(&rows, 0);
        assert!(close(adjusted[0].single, 2.0 / 64.0));
        assert!(
            close(adjusted[0].joint, 2.0 / 64.0),
            "a consistent difference survives the company: {adjusted:?}"
        );
        assert!(adjusted.iter().all(|p| p.joint >= p.single - 1e-12));
        assert!(close(adjusted[2].joint, 1.0));
        // A duplicate comparison doesn't change p.
        let twice = max_t(&[rows[0].clone(), rows[0].clone()], 0);
        assert!(close(twice[1].joint, twice[1].single));
    }

    #[test]
    fn ratios_need_positive_values() {
        assert_eq!(log_ratio(0.0, 1.0), None);
        assert_eq!(log_ratio(1.0, f64::NAN), None);
        assert!(close(log_ratio(2.0, 1.0).unwrap(), -std::f64::consts::LN_2));
    }
}
