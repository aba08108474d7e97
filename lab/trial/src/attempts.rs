//! The attempts within each scope of a trial, from the sums of its windows and histograms.

use lab_archive::Kind;
use lab_archive::model::Unanswered;
use lab_counts::{Aggregate, Attempts, Hist, Metric, Scope, Value};
use lab_stats::histogram::MergeError;

use crate::model::{self, Attempt};
use crate::number::as_f64;
use crate::sums::Sums;

/// Inputs from a trial's record and plan, apart from its sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits<'a> {
    /// Requests without a response at the end.
    pub(crate) unanswered: Option<&'a Unanswered>,
    /// The longest that a request may take, ms.
    pub(crate) timeout_ms: f64,
    /// The load's time limit, ms.
    pub(crate) time_limit_ms: Option<f64>,
}

/// Returns the attempts of a scope with these `sums`.
///
/// # Errors
/// [`MergeError`].
pub(crate) fn attempts(
    scope: &Scope,
    sums: &Sums,
    limits: Limits<'_>,
) -> Result<Attempts, MergeError> {
    let narrowed;
    let sums = match scope {
        Scope::Step(name) => {
            narrowed = sums.of_steps(std::slice::from_ref(name))?;
            &narrowed
        }
        Scope::All
        | Scope::Stage(_)
        | Scope::Population(_)
        | Scope::Tag(_)
        | Scope::Transaction(_)
        | Scope::Measure(_) => sums,
    };
    let (mut hold, mut whole) = (sums.hold.step(), sums.whole.step());
    let mut unanswered = Hist::from(sums.unanswered()?);
    if matches!(scope, Scope::All | Scope::Stage(_)) {
        // Archives of earlier versions have these counts for all steps together.
        if whole.turned_away == 0 {
            hold.turn_away(sums.whole.dropped);
            whole.turn_away(sums.whole.dropped);
        }
        if let Some(left) = limits.unanswered.filter(|_| whole.unanswered == 0) {
            unanswered = evenly(left);
        }
    }
    let event = |kind| {
        let step = scope.step()?.to_owned();
        sums.step_phases.get(&(step, kind)).cloned().map(Hist::from)
    };
    Ok(Attempts {
        over_limit: (hold.over_limit, limits.time_limit_ms.unwrap_or_default()),
        hold: hold.counts().clone(),
        whole: whole.counts().clone(),
        response: sums.response.clone().into(),
        service: sums.service.clone().map(Hist::from),
        elapsed: None,
        events: [event(Kind::FirstEvent), event(Kind::BetweenEvents)],
        unanswered,
        stale_retries: sums.whole.stale_retries,
        span_ms: sums.hold.span_ms,
        timeout_ms: limits.timeout_ms,
    })
}

/// Returns ages of requests if only the oldest one's is known: evenly spread up to it.
fn evenly(left: &Unanswered) -> Hist {
    let mut ages = Hist::default();
    for nth in 1..=left.count.min(MAX_SPREAD) {
        let part = as_f64(nth) / as_f64(left.count.min(MAX_SPREAD));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates; ages are positive"
        )]
        let us = (left.oldest_ms * part * 1000.0).max(1.0) as u64;
        let share = left.count / MAX_SPREAD.min(left.count);
        ages.record_n(us, share)
            .expect("a growing histogram holds any age");
    }
    ages
}

/// Steps of the spread: more would take time without a visible effect.
const MAX_SPREAD: u64 = 1000;

/// Returns a report's figures of all attempts.
pub(crate) fn summary(of: &Attempts) -> model::Attempts {
    let at = |percent| match of.figure(Metric::ResponseTime, Aggregate::Percentile(percent)) {
        Ok(Value::Known(ms)) => Attempt::Ms(ms),
        Ok(Value::Beyond | Value::AtLeast(_)) => Attempt::Beyond,
        Err(_) => Attempt::Unsupported,
    };
    let mean = match of.figure(Metric::ResponseTime, Aggregate::Mean) {
        Ok(Value::Known(ms) | Value::AtLeast(ms)) => Some(ms),
        Ok(Value::Beyond) | Err(_) => None,
    };
    model::Attempts {
        mean,
        count: of.count(Metric::ResponseTime),
        failed: of.failed(Metric::ResponseTime),
        p50: at(50.0),
        p90: at(90.0),
        p95: at(95.0),
        p99: at(99.0),
        p999: at(99.9),
    }
}
