//! Ends a trial early to protect the system: evaluates the study's abort limits on the merged windows as they arrive.
//! It judges no trial: an aborted trial is invalid.

use std::time::Duration;

use lab_counts::{Attempts, NoFigure, StepWindow, Value};
use lab_driver::Window;
use lab_study::model::Abort;

/// A limit is evaluated so many times within its duration: single windows are short, and a short one may have few
/// responses.
const LOOKS: u32 = 10;

/// The limits of a trial, each with the counts since its last evaluation.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    limits: Vec<Limit<'a>>,
    /// Number of steps of the sessions; the probe follows them.
    steps: usize,
    /// Requests in flight, none of which has been answered since then.
    silence: Option<Silence>,
    timeout_ms: f64,
}

#[derive(Debug, Clone, Copy)]
struct Silence {
    since: Duration,
    under_way: u64,
}

#[derive(Debug)]
struct Limit<'a> {
    abort: &'a Abort,
    /// Since when the limit is exceeded.
    since: Option<Duration>,
    seen: Seen,
}

/// Counts of several windows.
#[derive(Debug, Default)]
struct Seen {
    start: Option<Duration>,
    length: Duration,
    sum: StepWindow,
}

impl<'a> Watch<'a> {
    /// `steps` is the number of steps without the probe; no request may take longer than `timeout_ms`.
    pub(crate) fn new(aborts: &'a [Abort], steps: usize, timeout_ms: f64) -> Self {
        let limit = |abort| Limit {
            abort,
            since: None,
            seen: Seen::default(),
        };
        Self {
            limits: aborts.iter().map(limit).collect(),
            steps,
            silence: None,
            timeout_ms,
        }
    }

    /// Adds a window. Returns a sentence when a limit has been exceeded for long enough.
    pub(crate) fn window(&mut self, window: &Window) -> Option<String> {
        let steps = &window.steps[..self.steps.min(window.steps.len())];
        if steps.iter().any(answered) {
            self.silence = None;
        }
        let limits = self.limits.iter_mut();
        let ended = limits.map(|limit| limit.window(window, steps, self.silence, self.timeout_ms));
        // Each limit takes the window, whatever another one reports.
        let ended = ended.fold(None, Option::or);
        let under_way = window.counts.under_way;
        if under_way > 0 {
            self.silence.get_or_insert(Silence {
                since: window.end,
                under_way,
            });
        }
        ended
    }
}

/// Returns true if any message was answered or failed.
fn answered(step: &StepWindow) -> bool {
    let counts = &step.counts;
    counts.ok + counts.failed() + counts.hops + counts.retried.total() > 0
}

impl Limit<'_> {
    fn window(
        &mut self,
        window: &Window,
        steps: &[StepWindow],
        silence: Option<Silence>,
        timeout_ms: f64,
    ) -> Option<String> {
        let lasts = Duration::from_millis(self.abort.for_ms);
        self.seen.add(window, steps);
        if self.seen.length < lasts / LOOKS {
            return None;
        }
        let mut attempts = self.seen.attempts(timeout_ms);
        if let Some(silence) = silence {
            let age = window.end.saturating_sub(silence.since).as_micros() as u64;
            let recorded = attempts.unanswered.record_n(age.max(1), silence.under_way);
            recorded.expect("a growing histogram holds any age");
        }
        let when = &self.abort.when;
        let value = match attempts.figure(when.metric, when.aggregate) {
            Ok(Value::Known(value) | Value::AtLeast(value)) => value,
            Ok(Value::Beyond) => f64::INFINITY,
            // The next windows add to these.
            Err(NoFigure::TooFew { .. }) => return None,
            // A period without requests is no data, and changes nothing.
            Err(_) => {
                self.seen = Seen::default();
                return None;
            }
        };
        let seen = std::mem::take(&mut self.seen);
        if !when.holds(value) {
            self.since = None;
            return None;
        }
        let began = *self.since.get_or_insert(seen.start.unwrap_or_default());
        let lasted = window.end.saturating_sub(began);
        (lasted >= lasts).then(|| words(self.abort, window.end))
    }
}

impl Seen {
    fn add(&mut self, window: &Window, steps: &[StepWindow]) {
        self.start.get_or_insert(window.start);
        self.length += window.end.saturating_sub(window.start);
        for step in steps {
            self.sum += step;
        }
    }

    fn attempts(&self, timeout_ms: f64) -> Attempts {
        let StepWindow { counts, times } = &self.sum;
        let service = (!times.service.is_empty()).then(|| times.service.clone());
        Attempts {
            hold: counts.clone(),
            whole: counts.clone(),
            response: times.ok.clone(),
            service,
            span_ms: self.length.as_secs_f64() * 1e3,
            timeout_ms,
            ..Attempts::default()
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

#[cfg(test)]
mod tests {
    use lab_counts::ErrorClass;
    use lab_study::model::{Aggregate, Comparison, Metric, Threshold};

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

    /// A second with `ok` responses in 10 ms, and `failed` failures; the probe always fails.
    fn second(number: u64, ok: u64, failed: u64) -> Window {
        let mut window = Window::empty(2);
        window.start = Duration::from_secs(number);
        window.end = Duration::from_secs(number + 1);
        window.steps[0].times.ok.record_n(10_000, ok).unwrap();
        window.steps[0].counts.ok = ok;
        window.steps[0].counts.errors[ErrorClass::Status] = failed;
        window.steps[1].counts.errors[ErrorClass::Status] = 1000;
        window
    }

    /// The second after which a trial is ended.
    fn ended_after(limits: &[Abort], seconds: &[(u64, u64)]) -> Option<usize> {
        let mut watch = Watch::new(limits, 1, 60_000.0);
        let mut windows = (0..).zip(seconds);
        let after = windows
            .position(|(at, (ok, failed))| watch.window(&second(at, *ok, *failed)).is_some());
        after.map(|at| at + 1)
    }

    #[test]
    fn a_limit_has_to_be_passed_for_so_long_without_a_break() {
        let half = [abort(Metric::ErrorRate, Aggregate::Rate, 0.5)];
        assert_eq!(
            ended_after(&half, &[(9, 1), (1, 9), (1, 9), (1, 9)]),
            Some(3)
        );
        assert_eq!(ended_after(&half, &[(1, 9), (9, 1), (1, 9), (9, 1)]), None);
        // No answer is no data.
        assert_eq!(ended_after(&half, &[(1, 9), (0, 0), (1, 9)]), Some(3));
        assert_eq!(ended_after(&half, &[(0, 0), (0, 0), (0, 0)]), None);
        assert_eq!(ended_after(&[], &[(0, 9), (0, 9), (0, 9)]), None);
    }

    #[test]
    fn what_came_in_short_windows_is_taken_together() {
        let half = [abort(Metric::ErrorRate, Aggregate::Rate, 0.5)];
        let mut watch = Watch::new(&half, 1, 60_000.0);
        // Windows of 20 ms, every third of them with one successful response, and nothing else.
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
        assert_eq!(ended_after(&slow, &[(99, 1), (99, 1), (99, 1)]), None);
        assert_eq!(ended_after(&slow, &[(90, 10), (90, 10)]), Some(2));
        let quick = [abort(
            Metric::ResponseTime,
            Aggregate::Percentile(95.0),
            5.0,
        )];
        assert_eq!(ended_after(&quick, &[(99, 1), (99, 1)]), Some(2));
    }

    #[test]
    fn a_system_that_answers_nothing_is_slower_than_its_silence() {
        for aggregate in [Aggregate::Mean, Aggregate::Max, Aggregate::Percentile(95.0)] {
            let slow = [abort(Metric::ResponseTime, aggregate, 1500.0)];
            let mut watch = Watch::new(&slow, 1, 60_000.0);
            let mut ended = None;
            for at in 0..9 {
                let mut window = second(at, if at < 2 { 200 } else { 0 }, 0);
                window.counts.under_way = 80;
                ended = ended.or(watch.window(&window).map(|_| at));
            }
            // In flight since the end of second 1; older than 1.5 s at the end of second 3, and for 2 s at that of 4.
            assert_eq!(ended, Some(4), "{aggregate:?}");
            // A user in a wait has no request in flight.
            assert_eq!(
                ended_after(&slow, &[(200, 0), (0, 0), (0, 0), (0, 0), (0, 0)]),
                None
            );
        }
    }

    #[test]
    fn failed_requests_count_in_means() {
        let slow = [abort(Metric::ResponseTime, Aggregate::Mean, 5_000.0)];
        assert_eq!(ended_after(&slow, &[(90, 10), (90, 10), (90, 10)]), Some(2));
    }

    #[test]
    fn throughput_may_be_too_little() {
        let mut little = abort(Metric::Throughput, Aggregate::Rate, 5.0);
        little.when.comparison = Comparison::Less;
        assert_eq!(ended_after(&[little], &[(9, 0), (4, 0), (0, 0)]), Some(3));
    }

    #[test]
    fn it_is_said_what_and_when() {
        let half = [abort(Metric::ErrorRate, Aggregate::Rate, 0.5)];
        let mut watch = Watch::new(&half, 1, 60_000.0);
        assert_eq!(watch.window(&second(0, 0, 9)), None);
        let said = watch.window(&second(1, 0, 9)).unwrap();
        assert_eq!(
            said,
            "`abort_on` ended it 2.0 s after the load began, for `it` had been so for 2 s"
        );
    }
}
