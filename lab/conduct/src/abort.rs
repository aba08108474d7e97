//! What ends a trial before its time, to protect the system: limits that the study sets, held against the
//! merged windows as they come. It judges no trial: one that it ends is no measurement.

use std::time::Duration;

use hdrhistogram::Histogram;
use lab_driver::{StepWindow, Window, new_histogram};
use lab_study::model::{Abort, Aggregate, Comparison, Metric, Threshold};

/// A limit is looked at so many times while it has to be passed: single windows are short, and in a short
/// one there may be few answers.
const LOOKS: u32 = 10;

/// The limits of a trial, each with what has come since it was looked at.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    limits: Vec<Limit<'a>>,
    /// Steps of the sessions; the probe's come behind.
    steps: usize,
}

#[derive(Debug)]
struct Limit<'a> {
    abort: &'a Abort,
    /// Since when it is passed.
    since: Option<Duration>,
    seen: Seen,
}

/// What came in some windows.
#[derive(Debug)]
struct Seen {
    start: Option<Duration>,
    length: Duration,
    ok: Histogram<u64>,
    service: Histogram<u64>,
    failed: u64,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(aborts: &'a [Abort], steps: usize) -> Self {
        let limit = |abort| Limit {
            abort,
            since: None,
            seen: Seen::nothing(),
        };
        Self {
            limits: aborts.iter().map(limit).collect(),
            steps,
        }
    }

    /// Takes a window in. A sentence when a limit has been passed for long enough. A time in which nothing
    /// was answered says nothing, and changes nothing.
    pub(crate) fn window(&mut self, window: &Window) -> Option<String> {
        let steps = &window.steps[..self.steps.min(window.steps.len())];
        let limits = self.limits.iter_mut();
        let ended = limits.map(|limit| limit.window(window, steps));
        // Each limit takes the window in, whatever another one says.
        ended.fold(None, Option::or)
    }
}

impl Limit<'_> {
    fn window(&mut self, window: &Window, steps: &[StepWindow]) -> Option<String> {
        let lasts = Duration::from_millis(self.abort.for_ms);
        self.seen.add(window, steps);
        if self.seen.length < lasts / LOOKS {
            return None;
        }
        let seen = std::mem::replace(&mut self.seen, Seen::nothing());
        let value = figure(&self.abort.when, &seen)?;
        if !is_passed(&self.abort.when, value) {
            self.since = None;
            return None;
        }
        let began = *self.since.get_or_insert(seen.start.unwrap_or_default());
        let lasted = window.end.saturating_sub(began);
        (lasted >= lasts).then(|| words(self.abort, window.end))
    }
}

impl Seen {
    fn nothing() -> Self {
        Self {
            start: None,
            length: Duration::ZERO,
            ok: new_histogram(),
            service: new_histogram(),
            failed: 0,
        }
    }

    fn add(&mut self, window: &Window, steps: &[StepWindow]) {
        self.start.get_or_insert(window.start);
        self.length += window.end.saturating_sub(window.start);
        for step in steps {
            // Histograms of one make take each other's values.
            let _always = self.ok.add(&step.ok);
            let _always = self.service.add(&step.service);
            self.failed += step.failed();
        }
    }
}

fn words(limit: &Abort, at: Duration) -> String {
    format!(
        "`abort_on` ended it {:.1} s after the load began, for `{}` had been so for {} s",
        at.as_secs_f64(),
        limit.when.text,
        Duration::from_millis(limit.for_ms).as_secs_f64()
    )
}

fn is_passed(limit: &Threshold, value: f64) -> bool {
    match limit.comparison {
        Comparison::Less => value < limit.limit,
        Comparison::LessOrEqual => value <= limit.limit,
        Comparison::Greater => value > limit.limit,
        Comparison::GreaterOrEqual => value >= limit.limit,
    }
}

/// The figure in the limit's unit; `None` where nothing was answered.
fn figure(limit: &Threshold, seen: &Seen) -> Option<f64> {
    let ok = seen.ok.len();
    let answered = ok + seen.failed;
    match limit.metric {
        Metric::Throughput => lab_stats::ratio(ok as f64, seen.length.as_secs_f64()),
        _ if answered == 0 => None,
        Metric::ErrorRate => Some(seen.failed as f64 / answered as f64),
        // Only a step with a plan has service times of its own.
        Metric::ServiceTime if !seen.service.is_empty() => {
            time(limit.aggregate, &seen.service, seen.failed)
        }
        _ => time(limit.aggregate, &seen.ok, seen.failed),
    }
}

/// In ms. A failed request is slower than any limit.
fn time(aggregate: Aggregate, ok: &Histogram<u64>, failed: u64) -> Option<f64> {
    let ms = |us: u64| us as f64 / 1000.0;
    let quantile = |p: f64| {
        let rank = (p * (ok.len() + failed) as f64).ceil();
        match rank <= ok.len() as f64 {
            true => ms(ok.value_at_quantile(rank / ok.len() as f64)),
            false => f64::INFINITY,
        }
    };
    match aggregate {
        Aggregate::Percentile(percent) => Some(quantile(percent / 100.0)),
        Aggregate::Median => Some(quantile(0.5)),
        Aggregate::Max => Some(quantile(1.0)),
        Aggregate::Min => (!ok.is_empty()).then(|| ms(ok.min())),
        Aggregate::Mean => (!ok.is_empty()).then(|| ok.mean() / 1000.0),
        Aggregate::Rate => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abort(metric: Metric, aggregate: Aggregate, limit: f64) -> Abort {
        Abort {
            when: Threshold {
                metric,
                aggregate,
                comparison: Comparison::Greater,
                limit,
                text: "it".to_owned(),
                ..Threshold::implied_error_rate()
            },
            for_ms: 2000,
        }
    }

    /// A second with so many answers in 10 ms, and so many failures; the probe fails always.
    fn second(number: u64, ok: u64, failed: u64) -> Window {
        let mut window = Window::empty(2);
        window.start = Duration::from_secs(number);
        window.end = Duration::from_secs(number + 1);
        window.steps[0].ok.record_n(10_000, ok).unwrap();
        window.steps[0].errors[0] = failed;
        window.steps[1].errors[0] = 1000;
        window
    }

    /// After which of these seconds a trial is ended.
    fn ended(limits: &[Abort], seconds: &[(u64, u64)]) -> Option<usize> {
        let mut watch = Watch::new(limits, 1);
        let mut windows = (0..).zip(seconds);
        let after = windows
            .position(|(at, (ok, failed))| watch.window(&second(at, *ok, *failed)).is_some());
        after.map(|at| at + 1)
    }

    #[test]
    fn a_limit_has_to_be_passed_for_so_long_without_a_break() {
        let half = [abort(Metric::ErrorRate, Aggregate::Rate, 0.5)];
        assert_eq!(ended(&half, &[(9, 1), (1, 9), (1, 9), (1, 9)]), Some(3));
        assert_eq!(ended(&half, &[(1, 9), (9, 1), (1, 9), (9, 1)]), None);
        // Nothing answered says nothing.
        assert_eq!(ended(&half, &[(1, 9), (0, 0), (1, 9)]), Some(3));
        assert_eq!(ended(&half, &[(0, 0), (0, 0), (0, 0)]), None);
        assert_eq!(ended(&[], &[(0, 9), (0, 9), (0, 9)]), None);
    }

    #[test]
    fn what_came_in_short_windows_is_taken_together() {
        let half = [abort(Metric::ErrorRate, Aggregate::Rate, 0.5)];
        let mut watch = Watch::new(&half, 1);
        // Windows of 20 ms, every third of them with one answer that is well, and nothing else.
        let mut windows = (0..150_u32).map(|number| {
            let (ok, failed) = if number % 3 == 0 { (1, 0) } else { (0, 4) };
            let mut window = second(0, ok, failed);
            window.start = Duration::from_millis(20) * number;
            window.end = window.start + Duration::from_millis(20);
            window
        });
        let ended = windows.position(|window| watch.window(&window).is_some());
        assert_eq!(ended, Some(99), "after 2 s");
    }

    #[test]
    fn a_failed_request_is_slower_than_any_limit() {
        let slow = [abort(
            Metric::ResponseTime,
            Aggregate::Percentile(95.0),
            20.0,
        )];
        assert_eq!(ended(&slow, &[(99, 1), (99, 1), (99, 1)]), None);
        assert_eq!(ended(&slow, &[(90, 10), (90, 10)]), Some(2));
        let quick = [abort(
            Metric::ResponseTime,
            Aggregate::Percentile(95.0),
            5.0,
        )];
        assert_eq!(ended(&quick, &[(99, 1), (99, 1)]), Some(2));
    }

    #[test]
    fn throughput_may_be_too_little() {
        let mut little = abort(Metric::Throughput, Aggregate::Rate, 5.0);
        little.when.comparison = Comparison::Less;
        assert_eq!(ended(&[little], &[(9, 0), (4, 0), (0, 0)]), Some(3));
    }

    #[test]
    fn it_is_said_what_and_when() {
        let half = [abort(Metric::ErrorRate, Aggregate::Rate, 0.5)];
        let mut watch = Watch::new(&half, 1);
        assert_eq!(watch.window(&second(0, 0, 9)), None);
        let said = watch.window(&second(1, 0, 9)).unwrap();
        assert_eq!(
            said,
            "`abort_on` ended it 2.0 s after the load began, for `it` had been so for 2 s"
        );
    }
}
