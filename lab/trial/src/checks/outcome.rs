//! How a check comes out, with its figures and their limits, its evidence, and its advice.

use lab_plan::checks::{self, Cause, InForce, Limit};

use super::facts::Facts;
use crate::format;
use crate::model::{Check, CheckOutcome, Figure};

impl Facts<'_> {
    /// A limit as the study has it.
    pub(super) fn limit(&self, limit: &Limit) -> InForce {
        self.study.checks.of(limit)
    }

    /// A figure, in the limit's unit, beside the limit as the study has it.
    pub(super) fn held(&self, value: f64, limit: &Limit) -> Figure {
        held(value, limit, self.limit(limit))
    }
}

/// A figure beside a limit in force.
#[must_use]
pub fn held(value: f64, limit: &Limit, in_force: InForce) -> Figure {
    let finite = |limit: f64| limit.is_finite().then_some(limit);
    Figure {
        key: limit.key,
        value,
        unit: limit.unit,
        // A limit that only invalidates.
        warn: finite(in_force.warn).filter(|warn| *warn < in_force.invalid),
        invalid: finite(in_force.invalid),
    }
}

/// One that the measurement passes.
#[must_use]
pub fn pass(name: &'static str, evidence: String) -> Check {
    check(name, CheckOutcome::Pass, evidence, "")
}

/// One that has nothing to judge by.
pub fn not_judged(name: &'static str, why: impl Into<String>) -> Check {
    check(name, CheckOutcome::NotJudged, why.into(), "")
}

/// One that warns.
#[must_use]
pub fn warn(name: &'static str, evidence: String, advice: &str) -> Check {
    check(name, CheckOutcome::Warn, evidence, advice)
}

pub(super) fn invalid(name: &'static str, evidence: String, advice: &str) -> Check {
    check(name, CheckOutcome::Invalid, evidence, advice)
}

/// A check whose outcome is known; advice is for what doesn't pass.
#[must_use]
pub fn check(name: &'static str, outcome: CheckOutcome, evidence: String, advice: &str) -> Check {
    let told = outcome >= CheckOutcome::Warn;
    Check {
        name,
        outcome,
        evidence,
        advice: told.then(|| advice.to_owned()),
        cause: checks::check(name)
            .map(|check| check.cause)
            .filter(|_| told),
        figures: Vec::new(),
    }
}

/// A check that is as good as the worst of its figures.
pub(super) fn judged(
    name: &'static str,
    figures: Vec<Figure>,
    evidence: String,
    advice: &str,
) -> Check {
    let worst = figures.iter().map(Figure::outcome).max();
    let outcome = worst.unwrap_or(CheckOutcome::NotJudged);
    check(name, outcome, evidence, advice).by(figures)
}

impl Check {
    /// With the figures that it judged by. Limits that they are beyond stand in the evidence.
    #[must_use]
    pub fn by(mut self, figures: Vec<Figure>) -> Self {
        if self.outcome >= CheckOutcome::Warn {
            let mut beyond: Vec<String> = figures.iter().filter_map(beyond).collect();
            beyond.dedup();
            if !beyond.is_empty() {
                self.evidence.push_str(&format!(" ({})", beyond.join("; ")));
            }
        }
        self.figures = figures;
        self
    }

    /// With another cause than the usual one.
    pub(super) fn caused_by(mut self, cause: Cause) -> Self {
        self.cause = self.cause.map(|_| cause);
        self
    }
}

/// The limit that a figure is beyond, in words.
fn beyond(figure: &Figure) -> Option<String> {
    let text = |limit: f64| format::limit(limit, figure.unit);
    match figure.outcome() {
        CheckOutcome::Invalid => Some(format!("limit {}", text(figure.invalid?))),
        CheckOutcome::Warn => Some(format!("warns beyond {}", text(figure.warn?))),
        CheckOutcome::Pass | CheckOutcome::NotJudged => None,
    }
}
