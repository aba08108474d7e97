//! Times of a histogram for reports.

use hdrhistogram::Histogram;
use lab_stats::histogram::{max, mean, min};
use lab_stats::quantile;
use schemars::JsonSchema;
use serde::Serialize;

/// Statistics of times in ms, or of a measure in its unit. `null`: too few times, or some exceeded the time limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Times {
    /// The number of recorded times.
    pub count: u64,
    /// The mean.
    pub mean: Option<f64>,
    /// The minimum.
    pub min: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 90th percentile: 90 % of the times are not longer.
    pub p90: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    pub p999: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
}

impl Times {
    /// Returns the figures of a histogram of microseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |p| quantile(histogram, p).map(ms);
        Self {
            count: histogram.len(),
            mean: mean(histogram).map(|us| us / 1000.0),
            min: min(histogram).map(ms),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: max(histogram).map(ms),
        }
    }

    /// Reduces the times of answered operations to their number and minimum if others have only a bound: all other
    /// figures would describe the quick ones only.
    #[must_use]
    pub(crate) fn under(self, bound: Option<Bound>) -> Self {
        match bound {
            None => self,
            Some(_) => Self {
                count: self.count,
                min: self.min,
                ..Self::default()
            },
        }
    }
}

/// The number of operations that exceeded the load's time limit, and of all operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Bound {
    /// The time limit, in ms.
    pub time_limit_ms: f64,
    /// Operations that exceeded the limit.
    pub over: u64,
    /// All attempted operations, including those in `over`.
    pub of: u64,
}

impl Bound {
    /// Merges both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            over: self.over + other.over,
            of: self.of + other.of,
            ..self
        }
    }
}

/// The delays of sends or reads, in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Lateness {
    /// The number of recorded delays.
    pub count: u64,
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
}

impl Lateness {
    /// Returns the figures of a histogram of microseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            count: histogram.len(),
            p50: quantile(histogram, 0.5).map(ms),
            p99: quantile(histogram, 0.99).map(ms),
            max: max(histogram).map(ms),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of a trial stay far below 2^52"
)]
fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}
