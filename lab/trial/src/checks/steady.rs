//! Did the trial reach a steady state, and are there enough responses for their tail?

use lab_plan::checks::CheckId;
use lab_plan::{LoadKind, LoadSpec};
use lab_stats::mser::{self, BATCH};
use lab_stats::support::{LEAST_BATCHES, is_spread};
use lab_stats::{Steady, needed_sample};

use super::facts::Facts;
use super::outcome::{not_judged, pass, warn};
use crate::format::{count, duration};
use crate::model::Check;
use crate::warmup::Warmup;

/// Quantiles that reports show, the rarest last.
const QUANTILES: [(f64, &str); 4] = [(0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")];

/// Judges MSER-5 on throughput and response time, over the trials of a cell, and the warm-up cut.
pub(crate) fn steady_state(warmup: &Warmup, load: &LoadSpec, hold_ms: f64) -> Check {
    let id = CheckId::SteadyState;
    if matches!(load.kind, LoadKind::Sequence { .. }) {
        return not_judged(id, "a sequence has none");
    }
    if load.changes() {
        let by = if !load.stages.is_empty() {
            "stages"
        } else if load.mix.iter().any(|one| one.after_ms > 0) {
            "populations that come later"
        } else {
            "its timeline"
        };
        return not_judged(
            id,
            format!("the load changes by {by}, so nothing is cut off as warm-up"),
        );
    }
    let hold = duration(hold_ms);
    let of = match warmup.trials {
        _ if warmup.by_another => {
            ", as another cell needs it that this one is compared with".to_owned()
        }
        0 | 1 => String::new(),
        n => format!(", by the mean of {n} trials of the cell"),
    };
    match (warmup.throughput, warmup.response) {
        (Steady::Never, response) => {
            let what = if response == Steady::Never {
                "throughput and response"
            } else {
                "throughput"
            };
            none(id, what, &of)
        }
        (_, Steady::Never) => none(id, "response", &of),
        (Steady::NotJudged { batches }, _) => not_judged(
            id,
            format!(
                "{batches} usable batches of five windows, {} needed",
                mser::LEAST_BATCHES
            ),
        ),
        (Steady::From(_), response) => {
            let cut = if warmup.cut_ms > 0.0 {
                format!(
                    "the first {} of {hold} are warm-up and count in no figure",
                    duration(warmup.cut_ms)
                )
            } else {
                format!("no warm-up in the hold of {hold}")
            };
            let unjudged = if matches!(response, Steady::NotJudged { .. }) {
                "; by throughput alone, responses are too few"
            } else {
                ""
            };
            pass(id, format!("{cut}{of}{unjudged}"))
        }
    }
}

fn none(id: CheckId, what: &str, of: &str) -> Check {
    let evidence =
        format!("no steady state in {what}: the best cut lies in the last half of the hold{of}");
    warn(id, evidence)
}

/// Checks which quantiles the responses support: enough of them, and those beyond the quantile from enough batches of
/// five windows, since requests that wait for the same stall are one event.
pub(super) fn tail(facts: &Facts<'_>) -> Check {
    let id = CheckId::TailSample;
    let n = facts.sums.response.len();
    let needs = |p: f64| needed_sample(p).unwrap_or(u64::MAX);
    let supported = QUANTILES.iter().rev().find(|(p, _)| n >= needs(*p));
    let missing = QUANTILES.iter().find(|(p, _)| n < needs(*p));
    let mut evidence = format!("{} responses in the hold", count(n));
    if let Some((p, quantile)) = supported {
        evidence.push_str(&format!(
            " support {quantile} ({} needed)",
            count(needs(*p))
        ));
    }
    if let Some((p, quantile)) = missing {
        evidence.push_str(&format!(
            "; {quantile} is not told ({} needed)",
            count(needs(*p))
        ));
    }
    let clumped = QUANTILES.iter().filter(|(p, _)| is_clumped(facts, *p));
    let clumped: Vec<(f64, &str)> = clumped.copied().collect();
    if let Some((_, quantile)) = clumped.first() {
        evidence.push_str(&format!(
            "; what is beyond {quantile} came in fewer than {LEAST_BATCHES} of the hold's batches"
        ));
    }
    let is_p95_clumped = clumped.first().is_some_and(|(p, _)| *p <= 0.95);
    match (n < needs(0.95), is_p95_clumped) {
        (true, _) => warn(id, evidence),
        (false, true) => warn(id, evidence).advise(
            "One or two stretches of the hold decide the p95: look at what happened then, or make the hold longer.",
        ),
        (false, false) => pass(id, evidence),
    }
}

/// Returns true if a quantile has enough values, but those beyond it are in too few batches.
fn is_clumped(facts: &Facts<'_>, p: f64) -> bool {
    let times = &facts.sums.response;
    let Some(quantile) = lab_stats::quantile(times, p) else {
        return false;
    };
    let beyond = times.len() - times.count_between(0, quantile);
    let longest: Vec<u64> = facts.sums.window_longest.values().copied().collect();
    let batches = longest.chunks(BATCH);
    let has_batches = batches.len() >= 2 * LEAST_BATCHES;
    let batches = batches.filter_map(|batch| batch.iter().copied().max());
    has_batches && !is_spread(batches, times.highest_equivalent(quantile), beyond)
}
