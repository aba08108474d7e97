//! Merging HdrHistograms and reading quantiles from the merged one.
//!
//! Histograms are merged, never their percentiles: the mean of two p95s is the p95 of nothing. Source: Tene, "How NOT
//! to Measure Latency"; locust#331 and artillery#3750 show the consequences otherwise. Values have the caller's unit.

use hdrhistogram::Histogram;

pub use crate::sparse::MergeError;
use crate::sparse::Sparse;
use crate::support::supports;

/// Significant digits of a merged histogram: values are exact to 0.1 %.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Merges histograms one by one; the order doesn't matter.
#[derive(Debug, Clone)]
pub struct Merger {
    merged: Histogram<u64>,
}

impl Default for Merger {
    fn default() -> Self {
        let merged = Histogram::new(SIGNIFICANT_DIGITS)
            .expect("three significant digits is within the library's range of 0 to 5");
        Self { merged }
    }
}

impl Merger {
    /// Adds all values of `histogram`.
    ///
    /// # Errors
    /// [`MergeError::TooLarge`] if it holds a value that can't be indexed on this platform.
    pub fn add(&mut self, histogram: &Histogram<u64>) -> Result<(), MergeError> {
        self.merged.add(histogram).map_err(|_| MergeError::TooLarge)
    }

    /// Adds all values of a sparse histogram.
    ///
    /// # Errors
    /// As [`Merger::add`].
    pub fn add_sparse(&mut self, counts: &Sparse) -> Result<(), MergeError> {
        counts.add_to(&mut self.merged)
    }

    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.merged.reset();
    }

    /// Returns the merged values so far.
    #[must_use]
    pub fn merged(&self) -> &Histogram<u64> {
        &self.merged
    }

    /// Returns the merged histogram.
    #[must_use]
    pub fn into_merged(self) -> Histogram<u64> {
        self.merged
    }
}

/// Returns the `p`-quantile (`0 < p < 1`), or `None` if the sample is too small to support it; see [`crate::support`].
#[must_use]
pub fn quantile(histogram: &Histogram<u64>, p: f64) -> Option<u64> {
    supports(histogram.len(), p).then(|| histogram.value_at_quantile(p).min(histogram.max()))
}

/// Returns the mean, or `None` for an empty histogram.
#[must_use]
pub fn mean(histogram: &Histogram<u64>) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.mean())
}

/// Returns the smallest value, or `None` for an empty histogram.
#[must_use]
pub fn min(histogram: &Histogram<u64>) -> Option<u64> {
    (!histogram.is_empty()).then(|| histogram.min())
}

/// Returns the largest value, or `None` for an empty histogram.
#[must_use]
pub fn max(histogram: &Histogram<u64>) -> Option<u64> {
    (!histogram.is_empty()).then(|| histogram.max())
}

/// Returns the sum of all values, within the histogram's precision.
#[must_use]
pub fn sum(histogram: &Histogram<u64>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let count = histogram.len() as f64;
    mean(histogram).map_or(0.0, |mean| mean * count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let empty = Merger::default().into_merged();
        assert_eq!(quantile(&empty, 0.5), None);
        assert_eq!(mean(&empty), None);
        assert_eq!(min(&empty), None);
        assert_eq!(max(&empty), None);
        assert!(sum(&empty).abs() < f64::EPSILON);
    }

    #[test]
    fn quantiles_of_the_first_thousand() {
        let mut merger = Merger::default();
        let mut one = Histogram::new(3).unwrap();
        for value in 1..=1000 {
            one.record(value).unwrap();
        }
        merger.add(&one).unwrap();
        let merged = merger.merged();
        assert_eq!(quantile(merged, 0.5), Some(500));
        assert_eq!(quantile(merged, 0.95), Some(950));
        assert_eq!(quantile(merged, 0.99), Some(990));
        assert_eq!(
            quantile(merged, 0.999),
            None,
            "1,000 values don't support p99.9"
        );
        assert_eq!(mean(merged), Some(500.5));
        assert_eq!((min(merged), max(merged)), (Some(1), Some(1000)));
        assert!((sum(merged) - 500_500.0).abs() < 1e-6);
    }
}
