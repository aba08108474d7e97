//! Thresholds: judgements on the server, per trial. An empty metric fails (k6#4283).
//!
//! Limits on times are about all attempts: a failed one is slower than any limit.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use lab_archive::Kind;
use lab_archive::model::Unanswered;
use lab_plan::{Aggregate, Comparison, Metric, Threshold};
use lab_stats::needed_sample;

use crate::attempts::AllAttempts;
use crate::format::{count, duration, plural_count, still_unanswered};
use crate::model::{Attempt, BEYOND, Bound, ThresholdResult};
use crate::number::as_f64;
use crate::sums::Sums;

/// Requests that are in no response time: unanswered ones, and those of sessions turned away.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LeftOut {
    count: u64,
    /// Infinite for a session turned away: it is never answered.
    oldest_ms: f64,
    dropped: u64,
}

impl LeftOut {
    pub(crate) fn of(unanswered: Option<&Unanswered>, sums: &Sums) -> Option<Self> {
        let dropped = sums.whole.dropped;
        let (count, oldest_ms) = unanswered.map_or((0, 0.0), |left| (left.count, left.oldest_ms));
        (count + dropped > 0).then(|| Self {
            count: count + dropped,
            oldest_ms: if dropped > 0 {
                f64::INFINITY
            } else {
                oldest_ms
            },
            dropped,
        })
    }

    fn words(&self) -> String {
        match self.dropped {
            0 => still_unanswered(self.count, self.oldest_ms),
            dropped => format!(
                "{} that arrived {} turned away",
                plural_count(dropped, "session"),
                if dropped == 1 { "was" } else { "were" }
            ),
        }
    }
}

/// What the thresholds of a trial are held against.
pub(crate) struct Measured<'a> {
    pub(crate) sums: &'a Sums,
    pub(crate) throughput_per_s: Option<f64>,
    pub(crate) left_out: Option<LeftOut>,
    /// By step of which a request was given up at the time limit.
    pub(crate) bounds: &'a BTreeMap<String, Bound>,
    /// The longest that a request may take, ms.
    pub(crate) timeout_ms: f64,
}

pub(crate) fn judge(threshold: &Threshold, of: &Measured<'_>) -> ThresholdResult {
    let measured = match bound_of(threshold, of.bounds) {
        None => measured(threshold, of),
        Some(bound) => bounded(threshold, of.sums, bound),
    };
    let result = judge_one(threshold, measured, of.sums);
    let hidden = |left: &LeftOut| result.holds && hides(threshold, of, left);
    match of.left_out.filter(hidden) {
        None => result,
        Some(left) => ThresholdResult {
            holds: false,
            reason: Some(format!("{}: with them it doesn't hold", left.words())),
            ..result
        },
    }
}

/// Of operations of which some took longer than the load's time limit, most figures aren't known, so
/// no limit on them is known to hold. A quantile is where it lies among the times that are known.
fn bounded(threshold: &Threshold, sums: &Sums, bound: Bound) -> Result<f64, String> {
    quantile_below(threshold, sums, bound).ok_or_else(|| {
        format!(
            "{} of {} took over {}",
            count(bound.over),
            plural_count(bound.of, "operation"),
            duration(bound.time_limit_ms)
        )
    })
}

/// The bound of what a threshold on times is about.
fn bound_of(threshold: &Threshold, bounds: &BTreeMap<String, Bound>) -> Option<Bound> {
    if !matches!(threshold.metric, Metric::ResponseTime | Metric::ServiceTime) {
        return None;
    }
    match &threshold.step {
        Some(step) => bounds.get(step).copied(),
        None => bounds.values().copied().reduce(Bound::and),
    }
}

/// The quantile that a threshold asks for, ms, where fewer operations than are above it took longer
/// than the time limit.
fn quantile_below(threshold: &Threshold, sums: &Sums, bound: Bound) -> Option<f64> {
    let p = quantile_of(threshold.aggregate)?;
    let attempts = attempts_of(threshold, sums);
    let times = attempts.times();
    let known = as_f64(times.len());
    let among_known = p * (known + as_f64(bound.over)) / known;
    let at = (among_known < 1.0).then(|| attempts.at(among_known));
    at.and_then(value)
}

fn quantile_of(aggregate: Aggregate) -> Option<f64> {
    match aggregate {
        Aggregate::Percentile(percent) => Some(percent / 100.0),
        Aggregate::Median => Some(0.5),
        Aggregate::Mean | Aggregate::Min | Aggregate::Max | Aggregate::Rate => None,
    }
}

/// Whether a limit on response times holds only because unanswered requests have none. They aren't
/// known one by one: if the oldest is older than the limit, all count as slower than it,
/// and in an average as having taken as long, up to the timeout.
fn hides(threshold: &Threshold, of: &Measured<'_>, left: &LeftOut) -> bool {
    let upper = matches!(
        threshold.comparison,
        Comparison::Less | Comparison::LessOrEqual
    );
    let time = matches!(threshold.metric, Metric::ResponseTime | Metric::ServiceTime);
    // Which step they belong to isn't known.
    if !upper || !time || threshold.step.is_some() || left.oldest_ms <= threshold.limit {
        return false;
    }
    let attempts = attempts_of(threshold, of.sums);
    let times = attempts.times();
    let within = match threshold.aggregate {
        Aggregate::Max => 1.0,
        Aggregate::Mean => {
            let (known, more) = (as_f64(times.len()), as_f64(left.count));
            let each = left.oldest_ms.min(of.timeout_ms);
            let all = |mean: f64| (mean * known + each * more) / (known + more);
            let mean = attempts.mean(of.timeout_ms).map(all);
            return mean.is_some_and(|mean| !compare(threshold, mean));
        }
        other => match quantile_of(other) {
            Some(p) => p,
            None => return false,
        },
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates; limits are positive"
    )]
    let limit_us = (threshold.limit * 1000.0) as u64;
    let slower = times.len() - times.count_between(0, limit_us).min(times.len()) + left.count;
    as_f64(slower) > (1.0 - within) * as_f64(times.len() + left.count)
}

/// The figure, infinite where a failed attempt stands for it; or why there is none.
fn measured(threshold: &Threshold, of: &Measured<'_>) -> Result<f64, String> {
    let sums = of.sums;
    match threshold.metric {
        metric if metric.is_time() => time(threshold, &attempts_of(threshold, sums), of.timeout_ms),
        Metric::ErrorRate => error_rate(threshold, sums),
        Metric::Resends => {
            let (resent, requests) = (sums.whole.stale_retries, sums.whole.sent());
            let rate = lab_stats::ratio(as_f64(resent), as_f64(requests));
            rate.ok_or_else(|| "no requests".to_owned())
        }
        _ => throughput(threshold, sums, of.throughput_per_s),
    }
}

/// What was measured beside the limit, or why nothing was.
fn judge_one(threshold: &Threshold, measured: Result<f64, String>, sums: &Sums) -> ThresholdResult {
    let holds = measured
        .as_ref()
        .is_ok_and(|value| compare(threshold, *value));
    let value = measured.as_ref().ok().copied();
    let beyond = value.is_some_and(f64::is_infinite);
    let failed = || {
        let (failed, of) = (
            failed_of(threshold, sums),
            attempts_of(threshold, sums).times().len(),
        );
        format!(
            "{BEYOND}: {} of {} failed",
            count(failed),
            plural_count(of, "attempt")
        )
    };
    ThresholdResult {
        text: threshold.text.clone(),
        metric: threshold.metric,
        step: threshold.step.clone(),
        stage: threshold.stage.clone(),
        population: threshold.population.clone(),
        tag: threshold.tag.clone(),
        value: value.filter(|_| !beyond),
        limit: threshold.limit,
        holds,
        beyond,
        implied: threshold.implied,
        reason: measured.err().or_else(|| beyond.then(failed)),
    }
}

fn compare(threshold: &Threshold, value: f64) -> bool {
    let limit = threshold.limit;
    match threshold.comparison {
        Comparison::Less => value < limit,
        Comparison::LessOrEqual => value <= limit,
        Comparison::Greater => value > limit,
        Comparison::GreaterOrEqual => value >= limit,
    }
}

/// The attempts of the threshold's step, or of all: from the planned send, or from the actual one.
fn attempts_of(threshold: &Threshold, sums: &Sums) -> AllAttempts {
    let failed = failed_of(threshold, sums);
    match times_of(threshold, sums) {
        Some(times) => AllAttempts::new(times, failed),
        None => AllAttempts::new(&lab_stats::Merger::default().into_merged(), failed),
    }
}

/// Failed attempts in the hold. An answer without a first event is one, and so is the next event of an
/// answer that broke off.
fn failed_of(threshold: &Threshold, sums: &Sums) -> u64 {
    let Some(name) = &threshold.step else {
        return sums.hold.errors();
    };
    let Some(step) = sums.hold.steps.get(name) else {
        return 0;
    };
    match threshold.metric {
        Metric::FirstEvent => {
            let answers = step.ok.saturating_sub(step.redirects) + step.errors + step.over_limit;
            let first = times_of(threshold, sums).map_or(0, Histogram::len);
            answers.saturating_sub(first)
        }
        Metric::BetweenEvents => step.errors + step.over_limit,
        _ => step.errors,
    }
}

/// The histogram of the threshold's step, or of all: from the planned send, from the actual one, or of
/// events.
fn times_of<'a>(threshold: &Threshold, sums: &'a Sums) -> Option<&'a Histogram<u64>> {
    let of_service = threshold.metric == Metric::ServiceTime;
    let event = match threshold.metric {
        Metric::FirstEvent => Some(Kind::FirstEvent),
        Metric::BetweenEvents => Some(Kind::BetweenEvents),
        _ => None,
    };
    if let Some(kind) = event {
        let key = (threshold.step.clone()?, kind);
        return sums.step_phases.get(&key);
    }
    match &threshold.step {
        None if of_service => Some(sums.service.as_ref().unwrap_or(&sums.response)),
        None => Some(&sums.response),
        Some(step) if of_service => sums.step_service.get(step).or_else(|| sums.steps.get(step)),
        Some(step) => sums.steps.get(step),
    }
}

fn time(threshold: &Threshold, attempts: &AllAttempts, timeout_ms: f64) -> Result<f64, String> {
    if attempts.is_empty() {
        return Err("no response in the hold".to_owned());
    }
    let of = match threshold.aggregate {
        Aggregate::Percentile(percent) => return at(attempts, percent / 100.0),
        Aggregate::Median => return at(attempts, 0.5),
        Aggregate::Mean => attempts
            .mean(timeout_ms)
            .map_or(Attempt::Unsupported, Attempt::Ms),
        Aggregate::Min => attempts.min(),
        Aggregate::Max => attempts.max(),
        Aggregate::Rate => return Err("a time has no rate".to_owned()),
    };
    value(of).ok_or_else(|| "no response in the hold".to_owned())
}

/// Infinite beyond any limit.
fn value(of: Attempt) -> Option<f64> {
    match of {
        Attempt::Ms(ms) => Some(ms),
        Attempt::Beyond => Some(f64::INFINITY),
        Attempt::Unsupported => None,
    }
}

fn at(attempts: &AllAttempts, p: f64) -> Result<f64, String> {
    value(attempts.at(p)).ok_or_else(|| match needed_sample(p) {
        Some(needed) => format!(
            "{} responses, {needed} needed for this quantile",
            attempts.times().len()
        ),
        None => "not a quantile".to_owned(),
    })
}

fn error_rate(threshold: &Threshold, sums: &Sums) -> Result<f64, String> {
    let (ok, errors) = match &threshold.step {
        None => (sums.whole.ok(), sums.whole.errors()),
        Some(step) => sums
            .whole
            .steps
            .get(step)
            .map_or((0, 0), |sum| (sum.ok, sum.errors)),
    };
    lab_stats::ratio(as_f64(errors), as_f64(ok + errors)).ok_or_else(|| "no requests".to_owned())
}

fn throughput(
    threshold: &Threshold,
    sums: &Sums,
    throughput_per_s: Option<f64>,
) -> Result<f64, String> {
    let measured = match &threshold.step {
        None => throughput_per_s,
        Some(step) => sums
            .hold
            .steps
            .get(step)
            .and_then(|sum| sums.hold.per_s(sum.ok)),
    };
    measured.ok_or_else(|| "nothing in the hold".to_owned())
}
