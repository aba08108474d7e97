//! The plan's prediction of a trial's steps, and its comparison with the result.

use std::collections::BTreeMap;

use lab_plan::{Span, Trial};

use crate::number::as_f64;
use crate::sums::StepSum;

/// The plan's prediction for the steps of one name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Predicted {
    pub(crate) requests: u64,
    pub(crate) waits: u64,
    pub(crate) wait_ms: Option<f64>,
    /// Whether the server's responses decide the number.
    pub(crate) open: bool,
}

/// Returns the plan's steps, those of one name together.
pub(crate) fn by_name(planned: &Trial) -> BTreeMap<String, Predicted> {
    let mut by_name: BTreeMap<String, Predicted> = BTreeMap::new();
    for step in planned.prediction.iter().flat_map(|plan| &plan.steps) {
        let sum = by_name.entry(step.name.clone()).or_default();
        let before = sum.wait_ms.unwrap_or_default() * as_f64(sum.waits);
        sum.requests += step.requests;
        sum.waits += step.waits;
        sum.open |= step
            .range
            .is_some_and(|range| range.high - range.low >= 1.0);
        let after = before + step.mean_wait_ms * as_f64(step.waits);
        sum.wait_ms = (sum.waits > 0).then(|| after / as_f64(sum.waits));
    }
    by_name
}

/// Returns the ratio of a stretch's result to the plan's prediction: 1 if responses decide and it lies within the
/// possible range.
pub(crate) fn part(of: f64, predicted: f64, range: Option<Span>) -> f64 {
    match range {
        None => of / predicted,
        Some(range) if of < range.low => of / range.low,
        Some(range) if of > range.high => of / range.high.max(f64::MIN_POSITIVE),
        Some(_) => 1.0,
    }
}

/// Returns the mean wait as it really lasted.
pub(crate) fn mean_wait_ms(step: &StepSum) -> Option<f64> {
    lab_stats::ratio(as_f64(step.wait_sum_us) / 1000.0, as_f64(step.waits))
}
