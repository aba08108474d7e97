//! How a check comes out, with its evidence and its advice.

use crate::model::{Check, CheckOutcome};

pub(super) fn pass(name: &'static str, evidence: String) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Pass,
        evidence,
        advice: None,
    }
}

pub(super) fn not_judged(name: &'static str, why: impl Into<String>) -> Check {
    Check {
        name,
        outcome: CheckOutcome::NotJudged,
        evidence: why.into(),
        advice: None,
    }
}

/// A check whose outcome is known; advice is for what doesn't pass.
pub(super) fn check(
    name: &'static str,
    outcome: CheckOutcome,
    evidence: String,
    advice: &str,
) -> Check {
    Check {
        name,
        outcome,
        evidence,
        advice: (outcome >= CheckOutcome::Warn).then(|| advice.to_owned()),
    }
}

pub(super) fn warn(name: &'static str, evidence: String, advice: &str) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Warn,
        evidence,
        advice: Some(advice.to_owned()),
    }
}

pub(super) fn invalid(name: &'static str, evidence: String, advice: &str) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Invalid,
        evidence,
        advice: Some(advice.to_owned()),
    }
}

/// `value` beyond `warn_above` warns, beyond `invalid_above` invalidates.
pub(super) fn graded(value: f64, warn_above: f64, invalid_above: f64) -> CheckOutcome {
    if value > invalid_above {
        CheckOutcome::Invalid
    } else if value > warn_above {
        CheckOutcome::Warn
    } else {
        CheckOutcome::Pass
    }
}
