//! Did the trial reach a steady state, and are there enough responses to speak of their tail?

use lab_plan::{LoadKind, LoadSpec};
use lab_stats::mser::LEAST_BATCHES;
use lab_stats::{Steady, needed_sample};

use super::facts::Facts;
use super::outcome::{not_judged, pass, warn};
use crate::format::{count, duration};
use crate::model::Check;
use crate::warmup::Warmup;

/// Quantiles that reports show, the rarest last.
const QUANTILES: [(f64, &str); 4] = [(0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")];

/// The name of the check on the tail.
pub(crate) const TAIL: &str = "tail sample";

/// MSER-5 on throughput and response, over the trials of a cell, and what was cut.
pub(crate) fn steady_state(warmup: &Warmup, load: &LoadSpec, hold_ms: f64) -> Check {
    let name = "steady state";
    if matches!(load.kind, LoadKind::Sequence { .. }) {
        return not_judged(name, "a sequence has none");
    }
    if load.changes() {
        let by = if load.stages.is_empty() {
            "its timeline"
        } else {
            "stages"
        };
        return not_judged(
            name,
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
            none(name, what, &of)
        }
        (_, Steady::Never) => none(name, "response", &of),
        (Steady::NotJudged { batches }, _) => not_judged(
            name,
            format!("{batches} usable batches of five windows, {LEAST_BATCHES} needed"),
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
            pass(name, format!("{cut}{of}{unjudged}"))
        }
    }
}

fn none(name: &'static str, what: &str, of: &str) -> Check {
    warn(
        name,
        format!("no steady state in {what}: the best cut lies in the last half of the hold{of}"),
        "Figures are over the whole hold and describe a server that was still changing: make the \
         hold longer, or look at what happens through the trial.",
    )
}

/// Which quantiles the number of responses supports.
pub(super) fn tail(facts: &Facts<'_>) -> Check {
    let name = TAIL;
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
    if n < needs(0.95) {
        let advice = "Too few responses for a p95: make the hold longer, or the users more.";
        warn(name, evidence, advice)
    } else {
        pass(name, evidence)
    }
}
