//! Computes figures from attempts: the one rule for failed, unanswered, and turned-away requests.
//!
//! "95 % are answered within 300 ms" means 95 % of all requests made. So a failed request and a session turned away are
//! slower than any limit, and a request without a response is slower than its age: a time censored there. Times of the
//! answered requests alone would improve with each request that a server refuses at once.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_stats::{histogram, needed_sample, quantile, ratio};

use crate::{Aggregate, Hist, Metric, StepCounts};

/// The longest time that is recorded; a longer one counts as this.
pub const LONGEST: Duration = Duration::from_hours(24);

/// Represents an attempt that is slower than any limit, µs.
const BEYOND_US: u64 = 2 * LONGEST.as_micros() as u64;
/// Values above this represent such an attempt, within the histogram's precision.
const ANSWERED_US: u64 = BEYOND_US / 4 * 3;

/// All attempts within one [`crate::Scope`], and their outcomes.
#[derive(Debug, Clone)]
pub struct Attempts {
    /// Counts of the hold.
    pub hold: StepCounts,
    /// Counts of the whole trial, ramp included.
    pub whole: StepCounts,
    /// Response times of requests in the hold that met their `expect`, µs.
    pub response: Hist,
    /// Their service times, µs; `None` where both are the same.
    pub service: Option<Hist>,
    /// Times to the first event and between events in the hold, µs.
    pub events: [Option<Hist>; crate::EVENTS],
    /// For transactions: times with the think times within them, and the same so far for unfinished ones, µs.
    pub elapsed: Option<Box<[Hist; 2]>>,
    /// Ages of the requests that have no response, µs.
    pub unanswered: Hist,
    /// Requests in the hold that were abandoned at the load's time limit, and this limit. They are in no other count.
    pub over_limit: (u64, f64),
    /// Requests sent again on a new connection, over the whole trial.
    pub stale_retries: u64,
    /// Length of the hold, ms.
    pub span_ms: f64,
    /// The timeout of a request, ms.
    pub timeout_ms: f64,
}

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A number in the metric's unit.
    Known(f64),
    /// An unknown time: the figure falls on requests without a response, which have waited for this long, ms.
    AtLeast(f64),
    /// The figure falls on a failed attempt: slower than any limit.
    Beyond,
}

/// Why there is no figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoFigure {
    /// No request ended in the hold.
    NoResponse,
    /// There were no requests.
    NoRequests,
    /// Too few attempts for this quantile.
    TooFew {
        /// Attempts.
        attempts: u64,
        /// Attempts that the quantile needs.
        needed: u64,
    },
    /// The figure depends on times that are longer than the load's time limit.
    OverLimit {
        /// Requests that took longer.
        over: u64,
        /// All requests.
        of: u64,
        /// The time limit, ms.
        limit_ms: f64,
    },
    /// The metric has no such figure.
    Undefined,
}

impl fmt::Display for NoFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResponse => f.write_str("no response in the hold"),
            Self::NoRequests => f.write_str("no requests"),
            Self::TooFew { attempts, needed } => {
                write!(f, "{attempts} responses, {needed} needed for this quantile")
            }
            Self::OverLimit { over, of, limit_ms } => {
                write!(f, "{over} of {of} operations took over {limit_ms} ms")
            }
            Self::Undefined => f.write_str("the metric has no such figure"),
        }
    }
}

impl Default for Attempts {
    /// No attempts.
    fn default() -> Self {
        Self {
            hold: StepCounts::default(),
            whole: StepCounts::default(),
            response: Hist::default(),
            service: None,
            events: [None, None],
            elapsed: None,
            unanswered: Hist::default(),
            over_limit: (0, 0.0),
            stale_retries: 0,
            span_ms: 0.0,
            timeout_ms: 0.0,
        }
    }
}

impl Attempts {
    /// The figure of a metric.
    ///
    /// # Errors
    /// Why there is none. A limit on a missing figure does not hold.
    pub fn figure(&self, metric: Metric, aggregate: Aggregate) -> Result<Value, NoFigure> {
        match metric {
            Metric::Throughput => self.throughput(),
            Metric::ErrorRate => rate(
                self.whole.failed() + self.whole.turned_away,
                self.whole.ok + self.whole.failed() + self.whole.turned_away,
            ),
            Metric::Resends => rate(self.stale_retries, self.whole.ended()),
            Metric::ResponseTime
            | Metric::ServiceTime
            | Metric::FirstEvent
            | Metric::BetweenEvents
            | Metric::TransactionTime
            | Metric::TransactionElapsed => self.time(metric, aggregate),
            // It has numbers, not attempts.
            Metric::Measure => Err(NoFigure::Undefined),
        }
    }

    /// The number of failed attempts in the hold, by the metric's own definition: a response without a first event is a
    /// failure of [`Metric::FirstEvent`], and so is the next event of a response that broke off.
    #[must_use]
    pub fn failed(&self, metric: Metric) -> u64 {
        let failed = self.hold.failed() + self.hold.turned_away;
        match metric {
            Metric::FirstEvent => {
                let first = self.events[0].as_ref().map_or(0, |times| times.len());
                let ended = self.hold.ok.saturating_sub(self.hold.redirects) + failed;
                (ended + self.over_limit.0).saturating_sub(first)
            }
            Metric::BetweenEvents => failed + self.over_limit.0,
            _ => failed,
        }
    }

    /// Attempts in the hold that have a time, and those that failed.
    #[must_use]
    pub fn count(&self, metric: Metric) -> u64 {
        self.times(metric).map_or(0, |times| times.len()) + self.failed(metric)
    }

    fn throughput(&self) -> Result<Value, NoFigure> {
        let seconds = self.span_ms / 1000.0;
        let per_s = ratio(as_f64(self.hold.ok), seconds).filter(|_| seconds > 0.0);
        per_s.map(Value::Known).ok_or(NoFigure::NoResponse)
    }

    /// The value of a failed transaction in a mean: the timeout of a request, or the longest time of a transaction if
    /// that is longer. Many requests and think times have no common limit.
    fn longest_ms(&self, metric: Metric) -> f64 {
        let known = self.times(metric).map_or(0, |times| times.max());
        let so_far = match &self.elapsed {
            Some(elapsed) if metric == Metric::TransactionElapsed => elapsed[1].max(),
            _ => self.unanswered.max(),
        };
        self.timeout_ms.max(as_f64(known.max(so_far)) / 1000.0)
    }

    fn times(&self, metric: Metric) -> Option<&Hist> {
        match metric {
            Metric::ServiceTime => Some(self.service.as_ref().unwrap_or(&self.response)),
            Metric::FirstEvent => self.events[0].as_ref(),
            Metric::BetweenEvents => self.events[1].as_ref(),
            Metric::TransactionElapsed => self.elapsed.as_ref().map(|both| &both[0]),
            _ => Some(&self.response),
        }
    }

    fn time(&self, metric: Metric, aggregate: Aggregate) -> Result<Value, NoFigure> {
        let sample = Sample {
            known: self.times(metric).cloned().unwrap_or_default(),
            failed: self.failed(metric),
            over_limit: match metric {
                Metric::ResponseTime
                | Metric::ServiceTime
                | Metric::TransactionTime
                | Metric::TransactionElapsed => self.over_limit,
                _ => (0, 0.0),
            },
            unanswered: match (metric, &self.elapsed) {
                (Metric::TransactionElapsed, Some(elapsed)) => &elapsed[1],
                _ => &self.unanswered,
            },
            timeout_ms: match metric {
                time if time.is_of_transactions() => self.longest_ms(metric),
                _ => self.timeout_ms,
            },
        };
        match (aggregate, aggregate.quantile()) {
            (_, Some(p)) => sample.quantile(p),
            (Aggregate::Mean, _) => sample.mean(),
            (Aggregate::Min, _) => sample.min(),
            (Aggregate::Max, _) => sample.max(),
            _ => Err(NoFigure::Undefined),
        }
    }
}

fn rate(some: u64, all: u64) -> Result<Value, NoFigure> {
    let rate = ratio(as_f64(some), as_f64(all));
    rate.map(Value::Known).ok_or(NoFigure::NoRequests)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Times in order: the known ones, those over the time limit, those beyond any limit.
struct Sample<'a> {
    known: Hist,
    failed: u64,
    over_limit: (u64, f64),
    unanswered: &'a Hist,
    timeout_ms: f64,
}

impl Sample<'_> {
    fn ended(&self) -> u64 {
        self.known.len() + self.failed + self.over_limit.0
    }

    fn over_limit_error(&self) -> Result<(), NoFigure> {
        match self.over_limit {
            (0, _) => Ok(()),
            (over, limit_ms) => Err(NoFigure::OverLimit {
                over,
                of: self.ended(),
                limit_ms,
            }),
        }
    }

    /// The quantile of the product-limit estimate (Kaplan and Meier, JASA 53, 1958), in which a request without a
    /// response is a time censored at its age: it can raise the quantile and never lowers it.
    fn quantile(&self, p: f64) -> Result<Value, NoFigure> {
        let beyond = self.failed + self.over_limit.0;
        let mut all = self.known.clone();
        if beyond > 0 {
            all.record_n(BEYOND_US, beyond)
                .expect("a growing histogram holds two days");
        }
        let attempts = all.len() + self.unanswered.len();
        if attempts == 0 {
            return Err(NoFigure::NoResponse);
        }
        match needed_sample(p) {
            None => return Err(NoFigure::Undefined),
            Some(needed) if attempts < needed => {
                return Err(NoFigure::TooFew { attempts, needed });
            }
            Some(_) => {}
        }
        let at = match self.unanswered.is_empty() {
            true => quantile(&all, p),
            false => product_limit(&all, self.unanswered, p),
        };
        match at {
            Some(us) if us <= ANSWERED_US => Ok(Value::Known(as_f64(us) / 1000.0)),
            Some(_) => self.over_limit_error().map(|()| Value::Beyond),
            None => Ok(Value::AtLeast(as_f64(self.unanswered.max()) / 1000.0)),
        }
    }

    /// The mean, where a failed attempt counts as the timeout, the longest that it could have taken: the
    /// penalised average of PAR-1 scores (Hutter et al., "ParamILS", JAIR 36, 2009). A request without a
    /// response that is older than the mean of all others counts as its age.
    fn mean(&self) -> Result<Value, NoFigure> {
        self.over_limit_error()?;
        let known_ms = histogram::mean(&self.known).unwrap_or_default() / 1000.0;
        let sum = known_ms * as_f64(self.known.len()) + self.timeout_ms * as_f64(self.failed);
        let mean = ratio(sum, as_f64(self.ended()));
        let (mut sum, mut count) = (sum, self.ended());
        for age in self.unanswered.iter_recorded() {
            let age_ms = (as_f64(age.value_iterated_to()) / 1000.0).min(self.timeout_ms);
            if mean.is_none_or(|mean| age_ms > mean) {
                sum += age_ms * as_f64(age.count_at_value());
                count += age.count_at_value();
            }
        }
        let mean = ratio(sum, as_f64(count)).map(Value::Known);
        mean.ok_or(NoFigure::NoResponse)
    }

    fn min(&self) -> Result<Value, NoFigure> {
        match (self.known.is_empty(), self.failed) {
            (false, _) => Ok(Value::Known(as_f64(self.known.min()) / 1000.0)),
            (true, 0) => self.over_limit_error().and(Err(NoFigure::NoResponse)),
            (true, _) => self.over_limit_error().map(|()| Value::Beyond),
        }
    }

    /// A request without a response that is older than the longest known time replaces it with its age.
    fn max(&self) -> Result<Value, NoFigure> {
        if self.failed > 0 {
            return Ok(Value::Beyond);
        }
        self.over_limit_error()?;
        let known = (!self.known.is_empty()).then(|| self.known.max());
        let oldest = (!self.unanswered.is_empty()).then(|| self.unanswered.max());
        let max = known
            .max(oldest)
            .map(|us| Value::Known(as_f64(us) / 1000.0));
        max.ok_or(NoFigure::NoResponse)
    }
}

/// The smallest time that a share of `p` doesn't exceed, µs, with times `ended` and times censored at `censored`; `None`
/// if the largest times are censored.
fn product_limit(ended: &Histogram<u64>, censored: &Histogram<u64>, p: f64) -> Option<u64> {
    let mut ages = censored.iter_recorded().peekable();
    let mut at_risk = ended.len() + censored.len();
    let mut longer = 1.0;
    for times in ended.iter_recorded() {
        let us = times.value_iterated_to();
        while let Some(age) = ages.next_if(|age| age.value_iterated_to() < us) {
            at_risk -= age.count_at_value();
        }
        longer *= 1.0 - as_f64(times.count_at_value()) / as_f64(at_risk);
        at_risk -= times.count_at_value();
        // Rounding must not move the quantile to the next time.
        if longer <= 1.0 - p + 1e-12 {
            return Some(us);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorClass;

    fn times(us: &[u64]) -> Hist {
        let mut histogram = Hist::default();
        for us in us {
            histogram.record(*us).unwrap();
        }
        histogram
    }

    /// These times of answered requests, µs, and `failed` failures.
    fn attempts(answered: &[u64], failed: u64) -> Attempts {
        let mut counts = StepCounts {
            ok: answered.len() as u64,
            ..StepCounts::default()
        };
        counts.errors[ErrorClass::Status] = failed;
        Attempts {
            hold: counts.clone(),
            whole: counts,
            response: times(answered),
            span_ms: 10_000.0,
            timeout_ms: 60_000.0,
            ..Attempts::default()
        }
    }

    fn p(percent: f64) -> Aggregate {
        Aggregate::Percentile(percent)
    }

    const TIME: Metric = Metric::ResponseTime;

    fn known(of: Result<Value, NoFigure>) -> f64 {
        match of {
            Ok(Value::Known(value)) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failed_attempts_come_last() {
        let all = attempts(&[10_000; 90], 10);
        assert!((known(all.figure(TIME, Aggregate::Median)) - 10.0).abs() < 0.01);
        assert!((known(all.figure(TIME, p(90.0))) - 10.0).abs() < 0.01);
        assert_eq!(all.figure(TIME, p(95.0)), Ok(Value::Beyond));
        assert_eq!(all.figure(TIME, Aggregate::Max), Ok(Value::Beyond));
        let too_few = NoFigure::TooFew {
            attempts: 100,
            needed: 299,
        };
        assert_eq!(all.figure(TIME, p(99.0)), Err(too_few));
        let mean = known(all.figure(TIME, Aggregate::Mean));
        assert!((mean - (90.0 * 10.0 + 10.0 * 60_000.0) / 100.0).abs() < 0.1);
        let refused = attempts(&[1_000; 100], 900);
        for percent in [50.0, 90.0, 95.0, 99.0] {
            assert_eq!(refused.figure(TIME, p(percent)), Ok(Value::Beyond));
        }
    }

    /// Every figure × every outcome of a tenth of the requests.
    #[test]
    fn every_way_to_miss_a_response_makes_figures_worse() {
        type Change = fn(&mut Attempts);
        let ways: [(&str, Change); 5] = [
            ("failed", |of| {
                of.hold.errors[ErrorClass::Timeout] += 40;
                of.whole.errors[ErrorClass::Timeout] += 40;
            }),
            ("turned away", |of| {
                of.hold.turned_away += 40;
                of.whole.turned_away += 40;
            }),
            ("unanswered", |of| {
                of.unanswered.record_n(50_000_000, 40).unwrap();
            }),
            ("retried", |of| {
                // Their times contain the wait.
                of.response.record_n(1_000_000, 40).unwrap();
                of.hold.retried[ErrorClass::Status] += 40;
            }),
            ("redirected", |of| {
                // Their times contain the redirect.
                of.response.record_n(20_000, 40).unwrap();
                of.hold.hops += 40;
            }),
        ];
        let base = attempts(&[10_000; 360], 0);
        for (way, change) in ways {
            let mut worse = base.clone();
            change(&mut worse);
            for metric in [Metric::ResponseTime, Metric::ServiceTime] {
                for aggregate in [p(95.0), p(99.0), Aggregate::Max, Aggregate::Mean] {
                    let before = known(base.figure(metric, aggregate));
                    let worse = match worse.figure(metric, aggregate) {
                        Ok(Value::Known(after)) => after > before * 1.05,
                        Ok(Value::Beyond | Value::AtLeast(_)) => true,
                        Err(_) => false,
                    };
                    assert!(worse, "{way}: {metric:?} {aggregate:?}");
                }
            }
            let rate = known(worse.figure(Metric::ErrorRate, Aggregate::Rate));
            let fails = matches!(way, "failed" | "turned away");
            assert_eq!(rate > 0.0, fails, "{way}");
            let throughput = known(worse.figure(Metric::Throughput, Aggregate::Rate));
            assert!((throughput - 36.0).abs() < 1e-9, "{way}");
        }
    }

    #[test]
    fn requests_over_the_time_limit_leave_no_figure_that_depends_on_them() {
        let mut all = attempts(&[10_000; 100], 0);
        all.over_limit = (10, 2000.0);
        assert!((known(all.figure(TIME, Aggregate::Median)) - 10.0).abs() < 0.01);
        let over = Err(NoFigure::OverLimit {
            over: 10,
            of: 110,
            limit_ms: 2000.0,
        });
        for aggregate in [p(95.0), Aggregate::Mean, Aggregate::Max] {
            assert_eq!(all.figure(TIME, aggregate), over);
        }
        assert!((known(all.figure(TIME, Aggregate::Min)) - 10.0).abs() < 0.01);
    }

    #[test]
    fn nothing_has_no_figure() {
        let none = Attempts::default();
        for aggregate in [p(50.0), Aggregate::Mean, Aggregate::Min, Aggregate::Max] {
            assert_eq!(none.figure(TIME, aggregate), Err(NoFigure::NoResponse));
        }
        let rate = none.figure(Metric::ErrorRate, Aggregate::Rate);
        assert_eq!(rate, Err(NoFigure::NoRequests));
        let throughput = none.figure(Metric::Throughput, Aggregate::Rate);
        assert_eq!(throughput, Err(NoFigure::NoResponse));
        // A step that only hangs is slower than any limit.
        let mut hanging = Attempts::default();
        hanging.unanswered.record_n(50_000_000, 100).unwrap();
        for quantile in [p(95.0), Aggregate::Median] {
            let figure = hanging.figure(TIME, quantile);
            assert!(matches!(figure, Ok(Value::AtLeast(ms)) if ms >= 50_000.0));
        }
    }

    #[test]
    fn young_requests_under_way_change_little() {
        // 1,000 answered within 10 … 1,000 ms, and 100 in flight, with ages of such requests.
        let answered: Vec<u64> = (1..=1000).map(|at| at * 1000).collect();
        let mut all = attempts(&answered, 0);
        let alone = known(all.figure(TIME, p(95.0)));
        for age in 1..=100 {
            all.unanswered.record(age * 5_000).unwrap();
        }
        let with = known(all.figure(TIME, p(95.0)));
        assert!(with >= alone && with < alone * 1.02, "{alone} {with}");
    }

    #[test]
    fn first_events_that_did_not_come_count_as_failed() {
        let mut all = attempts(&[10_000; 100], 5);
        all.events[0] = Some(times(&[2_000; 60]));
        assert_eq!(all.failed(Metric::FirstEvent), 45);
        let p95 = all.figure(Metric::FirstEvent, p(95.0));
        assert_eq!(p95, Ok(Value::Beyond));
    }

    proptest! {
        /// Without a miss the quantile is that of the histogram; no miss lowers a figure.
        #[test]
        fn misses_never_flatter(
            answered in prop::collection::vec(1_u64..3_600_000_000, 60..200),
            failed in 0_u64..100,
            ages in prop::collection::vec(1_u64..3_600_000_000, 0..50),
        ) {
            let without = attempts(&answered, 0);
            let mut with = attempts(&answered, failed);
            for age in &ages {
                with.unanswered.record(*age).unwrap();
            }
            for percent in [50.0, 90.0, 95.0] {
                let alone = known(without.figure(TIME, p(percent)));
                let plain = quantile(&times(&answered), percent / 100.0).unwrap();
                prop_assert!((alone - as_f64(plain) / 1000.0).abs() < 1e-9);
                match with.figure(TIME, p(percent)) {
                    Ok(Value::Known(after)) => prop_assert!(after >= alone),
                    Ok(Value::AtLeast(after)) => prop_assert!(after > 0.0),
                    other => prop_assert_eq!(other, Ok(Value::Beyond)),
                }
            }
            let mean = known(with.figure(TIME, Aggregate::Mean));
            prop_assert!(failed > 0 || mean >= known(without.figure(TIME, Aggregate::Mean)) - 1e-9);
        }
    }
}
