//! Histograms with bounds at powers of 2^(1/16), for monitoring systems.
//!
//! A bucket is 4.4 % wide, so that the error of a quantile is at most 2.2 %; that is schema 4 of Prometheus's native
//! histograms and scale 4 of OpenTelemetry's exponential ones, which are the same buckets counted from different ends.
//! Every eighth bound is a power of √2: the classic histogram of [`CLASSIC`] bounds is an exact sum of these buckets.
//! They add up over time, steps, and generators.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::sparse::Sparse;

/// Buckets per power of two are two to this power.
pub const SCALE: i32 = 4;

/// The first and the last bound of a classic histogram in seconds, as twice their exponents of 2: 0.12 ms and 64 s.
pub const CLASSIC: std::ops::RangeInclusive<i32> = -26..=12;

/// The same for numbers that are no times: 1/8 and 2^30.
pub const CLASSIC_NUMBERS: std::ops::RangeInclusive<i32> = -6..=60;

/// Buckets between two classic bounds.
const PER_HALF: i32 = 1 << (SCALE - 1);

/// Times in seconds, or other numbers, for which *seconds* stands for their own unit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exponential {
    /// Values that were recorded as 0.
    zeros: u64,
    /// Counts by bucket: number `i` holds values over 2^((i−1)/16) s, and up to 2^(i/16) s.
    buckets: BTreeMap<i32, u64>,
    sum_s: f64,
    /// Whether the values are other numbers than times.
    is_numbers: bool,
}

/// Recorded values, in order.
pub trait Medians {
    /// Calls `each` with the median of each group of values that are equal within the precision, and its count.
    fn medians(&self, each: impl FnMut(u64, u64));
}

impl Medians for Histogram<u64> {
    fn medians(&self, mut each: impl FnMut(u64, u64)) {
        for value in self.iter_recorded() {
            let median = self.median_equivalent(value.value_iterated_to());
            each(median, value.count_at_value());
        }
    }
}

impl Medians for Sparse {
    fn medians(&self, mut each: impl FnMut(u64, u64)) {
        self.iter().for_each(|one| each(one.median(), one.count));
    }
}

impl Exponential {
    /// Adds all values of a histogram of times in µs.
    pub fn add_us(&mut self, times: &impl Medians) {
        times.medians(|us, count| self.add((us, 1e6), count));
    }

    /// Creates a histogram of numbers that are no times.
    #[must_use]
    pub fn numbers() -> Self {
        Self {
            is_numbers: true,
            ..Self::default()
        }
    }

    /// Creates an empty histogram of the same kind.
    #[must_use]
    pub fn emptied(&self) -> Self {
        match self.is_numbers {
            true => Self::numbers(),
            false => Self::default(),
        }
    }

    /// Adds all values of a histogram of numbers in thousandths.
    pub fn add_thousandths(&mut self, numbers: &impl Medians) {
        numbers.medians(|number, count| self.add((number, 1e3), count));
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "times in µs and numbers in thousandths stay below 2^52"
    )]
    fn add(&mut self, (parts, of_one): (u64, f64), count: u64) {
        if parts == 0 {
            self.zeros += count;
            return;
        }
        let seconds = parts as f64 / of_one;
        *self.buckets.entry(bucket(seconds)).or_default() += count;
        self.sum_s += seconds * count as f64;
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.zeros + self.buckets.values().sum::<u64>()
    }

    /// Returns their sum in seconds.
    #[must_use]
    pub fn sum_s(&self) -> f64 {
        self.sum_s
    }

    /// Returns the number of zeros.
    #[must_use]
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// Returns counts of the non-empty buckets by index, in order: index `i` ends at 2^(i/16) s.
    pub fn buckets(&self) -> impl Iterator<Item = (i32, u64)> {
        self.buckets.iter().map(|(at, count)| (*at, *count))
    }

    /// Returns the bound in seconds and the number of values up to it, for each of the [`CLASSIC`] bounds, or of the
    /// [`CLASSIC_NUMBERS`].
    pub fn classic(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = self.zeros;
        let mut rest = self.buckets().peekable();
        let bounds = match self.is_numbers {
            true => CLASSIC_NUMBERS,
            false => CLASSIC,
        };
        bounds.map(move |half| {
            while let Some((_, count)) = rest.next_if(|(at, _)| *at <= half * PER_HALF) {
                sum += count;
            }
            ((f64::from(half) / 2.0).exp2(), sum)
        })
    }
}

/// Returns the bucket of a time. A bound belongs to the bucket that it ends.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a logarithm of a time is small"
)]
fn bucket(seconds: f64) -> i32 {
    (seconds.log2() * f64::from(1 << SCALE)).ceil() as i32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Exponential {
        let mut histogram = Histogram::new(3).unwrap();
        values.iter().for_each(|us| histogram.record(*us).unwrap());
        let mut times = Exponential::default();
        times.add_us(&histogram);
        times
    }

    #[test]
    fn a_second_ends_bucket_0_and_a_half_ends_bucket_minus_16() {
        let at = |us| of(&[us]).buckets().next().unwrap().0;
        assert_eq!((at(490_000), at(1_030_000)), (-16, 1));
        assert_eq!(bucket(1.0), 0);
        assert_eq!(bucket(64.0), 96);
        assert_eq!(of(&[0, 0]).zeros(), 2);
        assert_eq!(of(&[]).count(), 0);
    }

    proptest! {
        #[test]
        fn no_value_is_lost_and_each_lies_within_its_bucket(
            values in proptest::collection::vec(0u64..100_000_000, 0..200),
        ) {
            let times = of(&values);
            prop_assert_eq!(times.count(), values.len() as u64);
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let sum = values.iter().sum::<u64>() as f64 / 1e6;
            prop_assert!((times.sum_s() - sum).abs() <= sum * 1e-3 + 1e-9);
            let mut sorted: Vec<u64> = values.iter().copied().filter(|us| *us > 0).collect();
            sorted.sort_unstable();
            let mut rest = sorted.into_iter();
            for (at, count) in times.buckets() {
                let end = (f64::from(at) / 16.0).exp2();
                let begin = (f64::from(at - 1) / 16.0).exp2();
                for us in rest.by_ref().take(usize::try_from(count).unwrap()) {
                    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                    let s = us as f64 / 1e6;
                    // The source histogram is exact to 0.1 %.
                    prop_assert!(s > begin * 0.998 && s < end * 1.002, "{s} in {begin}..{end}");
                }
            }
        }

        #[test]
        fn classic_counts_rise_to_what_the_last_bound_holds(
            values in proptest::collection::vec(0u64..100_000_000, 0..200),
        ) {
            let times = of(&values);
            let counts: Vec<u64> = times.classic().map(|(_, count)| count).collect();
            prop_assert!(counts.is_sorted());
            let over: u64 = times.buckets().filter(|(at, _)| *at > 96).map(|(_, n)| n).sum();
            prop_assert_eq!(counts.last().unwrap() + over, times.count());
        }

        #[test]
        fn the_order_of_adding_does_not_matter(
            one in proptest::collection::vec(0u64..100_000_000, 0..50),
            other in proptest::collection::vec(0u64..100_000_000, 0..50),
        ) {
            let together = of(&[one.clone(), other.clone()].concat());
            let mut histogram = Histogram::new(3).unwrap();
            other.iter().for_each(|us| histogram.record(*us).unwrap());
            let mut summed = of(&one);
            summed.add_us(&histogram);
            prop_assert_eq!(summed.count(), together.count());
            prop_assert_eq!(summed.buckets().collect::<Vec<_>>(), together.buckets().collect::<Vec<_>>());
        }
    }
}
