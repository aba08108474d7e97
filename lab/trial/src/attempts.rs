//! Times over all attempts, failed ones included: a failed attempt is slower than any limit.
//!
//! Who asks that 95 % are answered within 300 ms means 95 % of what was asked for. Times of the
//! answered ones alone would praise a server for each request that it refuses at once. It knows no
//! threshold.

use hdrhistogram::Histogram;
use lab_stats::histogram::mean;
use lab_stats::{quantile, ratio};

use crate::model::{Attempt, Attempts};
use crate::number::as_f64;

/// Stands for a failed attempt, µs: twice the longest time that the driver records.
const FAILED_US: u64 = 2 * 3_600_000_000;
/// What is above is a failed attempt, within the histogram's precision.
const ANSWERED_US: u64 = FAILED_US / 4 * 3;

/// Answered and failed attempts together.
pub(crate) struct AllAttempts {
    times: Histogram<u64>,
    failed: u64,
    /// 0 without any.
    mean_answered_ms: f64,
}

impl AllAttempts {
    /// The times of those answered, and the number of those that failed.
    pub(crate) fn new(answered: &Histogram<u64>, failed: u64) -> Self {
        let mut times = answered.clone();
        times.auto(true);
        if failed > 0 {
            times
                .record_n(FAILED_US, failed)
                .expect("a growing histogram holds two hours");
        }
        Self {
            times,
            failed,
            mean_answered_ms: mean(answered).unwrap_or_default() / 1000.0,
        }
    }

    /// All of them; a failed one counts as far beyond any limit.
    pub(crate) fn times(&self) -> &Histogram<u64> {
        &self.times
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The `p`-quantile over all.
    pub(crate) fn at(&self, p: f64) -> Attempt {
        match quantile(&self.times, p) {
            None => Attempt::Unsupported,
            Some(us) if us > ANSWERED_US => Attempt::Beyond,
            Some(us) => Attempt::Ms(as_f64(us) / 1000.0),
        }
    }

    /// The shortest; beyond any limit where all failed.
    pub(crate) fn min(&self) -> Attempt {
        match self.times.len() {
            0 => Attempt::Unsupported,
            all if all == self.failed => Attempt::Beyond,
            _ => Attempt::Ms(as_f64(self.times.min()) / 1000.0),
        }
    }

    /// The longest; beyond any limit as soon as one failed.
    pub(crate) fn max(&self) -> Attempt {
        match self.failed {
            0 if self.is_empty() => Attempt::Unsupported,
            0 => Attempt::Ms(as_f64(self.times.max()) / 1000.0),
            _ => Attempt::Beyond,
        }
    }

    /// The mean, ms, where a failed attempt counts as `timeout_ms`, the longest that it could have
    /// taken: the penalised average of PAR-1 scores (Hutter et al., "ParamILS", JAIR 36, 2009). A mean
    /// has no place for what is merely beyond any limit.
    pub(crate) fn mean(&self, timeout_ms: f64) -> Option<f64> {
        let answered = self.times.len() - self.failed;
        let sum = self.mean_answered_ms * as_f64(answered) + timeout_ms * as_f64(self.failed);
        ratio(sum, as_f64(self.times.len()))
    }

    /// What a report shows of them.
    pub(crate) fn summary(&self) -> Attempts {
        Attempts {
            count: self.times.len(),
            failed: self.failed,
            p50: self.at(0.5),
            p90: self.at(0.9),
            p95: self.at(0.95),
            p99: self.at(0.99),
            p999: self.at(0.999),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(times: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        for us in times {
            histogram.record(*us).unwrap();
        }
        histogram
    }

    fn ms(of: Attempt) -> f64 {
        match of {
            Attempt::Ms(ms) => ms,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failed_attempts_come_last() {
        let answered = histogram(&[10_000; 90]);
        let all = AllAttempts::new(&answered, 10);
        assert!((ms(all.at(0.5)) - 10.0).abs() < 0.01);
        assert!((ms(all.at(0.9)) - 10.0).abs() < 0.01, "the 90th of 100");
        assert_eq!(all.at(0.95), Attempt::Beyond);
        assert_eq!(all.at(0.99), Attempt::Unsupported, "299 are needed");
        assert_eq!(all.max(), Attempt::Beyond);
        assert_eq!((all.summary().count, all.summary().failed), (100, 10));
        let mean = all.mean(60_000.0).unwrap();
        assert!((mean - (90.0 * 10.0 + 10.0 * 60_000.0) / 100.0).abs() < 0.1);
    }

    #[test]
    fn nine_of_ten_refused_at_once_leave_no_quantile() {
        let all = AllAttempts::new(&histogram(&[1_000; 100]), 900);
        for p in [0.5, 0.9, 0.95, 0.99] {
            assert_eq!(all.at(p), Attempt::Beyond, "p{p}");
        }
        let none = AllAttempts::new(&histogram(&[]), 0);
        assert!(none.is_empty() && none.max() == Attempt::Unsupported);
        assert_eq!(none.mean(1.0), None);
    }

    proptest! {
        /// Without failures nothing changes; with them no quantile gets better.
        #[test]
        fn failures_never_flatter(times in prop::collection::vec(1_u64..3_600_000_000, 60..200), failed in 0_u64..100) {
            let answered = histogram(&times);
            let (without, with) = (AllAttempts::new(&answered, 0), AllAttempts::new(&answered, failed));
            for p in [0.5, 0.9, 0.95] {
                let alone = ms(without.at(p));
                prop_assert!((alone - as_f64(quantile(&answered, p).unwrap()) / 1000.0).abs() < 1e-9);
                prop_assert!(with.at(p) == Attempt::Beyond || ms(with.at(p)) >= alone);
            }
            prop_assert!(with.mean(4e6).unwrap() >= without.mean(4e6).unwrap());
        }
    }
}
