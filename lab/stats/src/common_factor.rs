//! The factor that all counts of a block have in common: how much larger *b*'s counts are in every column alike.
//!
//! Two trials differ as a whole: by the clock frequency, by other programs, by how the system was built. That
//! difference masks those of single columns, so it is estimated and removed. Columns that differ for a reason of their
//! own must not count: the estimate is a median, and the outlying columns are excluded. A plain weighted median of all
//! columns fails if one large column differs.
//!
//! Every step treats *a* and *b* alike: swapping the variants of a block changes the sign of its factor and nothing
//! else, so a permutation test of the residuals stays exact.

use crate::number::count;

/// With fewer samples per trial a column's ratio is too uncertain.
const LEAST_SAMPLES: f64 = 20.0;
/// With fewer columns a factor can't be called common.
const LEAST_COLUMNS: usize = 10;
/// The number of iterations that select the outlying columns.
const ROUNDS: usize = 2;

/// Samples of one column in one block, scaled to the same work of both variants.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pair {
    /// Samples of the baseline.
    pub a: f64,
    /// Samples of the compared variant.
    pub b: f64,
}

impl Pair {
    /// Returns ln(b ÷ a), bounded if one of them is 0.
    fn log_ratio(self) -> f64 {
        ((self.b + 0.5) / (self.a + 0.5)).ln()
    }

    /// Returns the variance of [`Self::log_ratio`] for Poisson counts.
    fn variance(self) -> f64 {
        1.0 / (self.a + 0.5) + 1.0 / (self.b + 0.5)
    }
}

/// Returns the log of the common factor, by block; 0 if too few columns have enough samples.
///
/// `columns` have a pair per block, all the same blocks, and must not contain each other: the self samples of functions.
#[must_use]
pub fn common_factor(columns: &[&[Pair]]) -> Vec<f64> {
    let blocks = columns.first().map_or(0, |column| column.len());
    let is_large = |column: &&[Pair]| {
        let samples: f64 = column.iter().map(|pair| pair.a + pair.b).sum();
        samples >= LEAST_SAMPLES * 2.0 * count(blocks)
    };
    let columns: Vec<&[Pair]> = columns.iter().copied().filter(is_large).collect();
    if columns.len() < LEAST_COLUMNS {
        return vec![0.0; blocks];
    }
    let mut factor: Vec<f64> = (0..blocks)
        .map(|block| median(columns.iter().map(|column| column[block].log_ratio())))
        .collect();
    for _ in 0..ROUNDS {
        let calm = without_strays(&columns, &factor);
        factor = (0..blocks)
            .map(|block| weighted(calm.iter().map(|column| column[block])))
            .collect();
    }
    factor
}

/// Returns the three quarters of the columns with log ratios nearest to the factor, relative to Poisson variance.
fn without_strays<'a>(columns: &[&'a [Pair]], factor: &[f64]) -> Vec<&'a [Pair]> {
    let stray = |column: &[Pair]| -> f64 {
        let of =
            |(pair, factor): (&Pair, &f64)| (pair.log_ratio() - factor).powi(2) / pair.variance();
        column.iter().zip(factor).map(of).sum()
    };
    let mut by_stray: Vec<(f64, &[Pair])> = columns.iter().map(|one| (stray(one), *one)).collect();
    by_stray.sort_by(|a, b| a.0.total_cmp(&b.0));
    by_stray.truncate(columns.len() - columns.len() / 4);
    by_stray.into_iter().map(|(_, column)| column).collect()
}

/// Returns the weighted median of log ratios. Weights are the inverse variances, at most twice the median weight, so
/// that no large column decides alone.
fn weighted(pairs: impl Iterator<Item = Pair>) -> f64 {
    let weighed = |pair: Pair| (pair.log_ratio(), 1.0 / pair.variance());
    let mut values: Vec<(f64, f64)> = pairs.map(weighed).collect();
    let most = 2.0 * median(values.iter().map(|(_, weight)| *weight));
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let from_below = reaches_half(values.iter(), most);
    let from_above = reaches_half(values.iter().rev(), most);
    // Both directions count alike, so that swapping the variants only changes the sign.
    f64::midpoint(from_below, from_above)
}

/// Returns the first value at which half of the weight is reached.
fn reaches_half<'a>(values: impl Iterator<Item = &'a (f64, f64)> + Clone, most: f64) -> f64 {
    let weight = |value: &(f64, f64)| value.1.min(most);
    let half = values.clone().map(weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let mut reached = values.skip_while(|value| {
        sum += weight(value);
        sum < half
    });
    reached.next().map_or(0.0, |value| value.0)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty columns of two blocks: *b* has 10 % more in the first and 20 % less in the second.
    fn columns() -> Vec<Vec<Pair>> {
        let column = |n: u32| {
            let a = 100.0 + f64::from(n);
            vec![Pair { a, b: 1.1 * a }, Pair { a, b: 0.8 * a }]
        };
        (0..40).map(column).collect()
    }

    fn factor(columns: &[Vec<Pair>]) -> Vec<f64> {
        common_factor(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn finds_the_factor_of_each_block() {
        let found = factor(&columns());
        assert!((found[0] - 1.1_f64.ln()).abs() < 2e-3, "{found:?}");
        assert!((found[1] - 0.8_f64.ln()).abs() < 2e-3, "{found:?}");
    }

    #[test]
    fn one_large_column_does_not_move_it() {
        let mut with = columns();
        with.push(vec![Pair { a: 1e6, b: 1.5e6 }; 2]);
        with.extend((0..6).map(|_| vec![Pair { a: 300.0, b: 600.0 }; 2]));
        let found = factor(&with);
        assert!((found[0] - 1.1_f64.ln()).abs() < 2e-3, "{found:?}");
    }

    #[test]
    fn exchanged_variants_change_the_sign_only() {
        let mut columns = columns();
        for (n, column) in columns.iter_mut().enumerate() {
            column[0].b += f64::from(u32::try_from(n * n % 17).unwrap());
            column[1].a += f64::from(u32::try_from(n * n % 23).unwrap());
        }
        let found = factor(&columns);
        for column in &mut columns {
            let Pair { a, b } = column[1];
            column[1] = Pair { a: b, b: a };
        }
        let exchanged = factor(&columns);
        assert!((found[0] - exchanged[0]).abs() < 1e-15);
        assert!((found[1] + exchanged[1]).abs() < 1e-15);
    }

    #[test]
    fn few_columns_have_nothing_in_common() {
        assert_eq!(factor(&columns()[..9]), [0.0, 0.0]);
        let small = vec![vec![Pair { a: 10.0, b: 20.0 }; 2]; 40];
        assert_eq!(factor(&small), [0.0, 0.0]);
        assert!(common_factor(&[]).is_empty());
    }
}
