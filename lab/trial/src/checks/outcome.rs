//! Constructors of a check's outcome, with its figures and their limits, its evidence, and its advice.

use lab_plan::checks::{Cause, CheckId, InForce, Limit};

use super::facts::Facts;
use crate::format;
use crate::model::{Check, CheckOutcome, Figure};

impl Facts<'_> {
    /// Returns a limit as set by the study.
    pub(super) fn limit(&self, limit: &Limit) -> InForce {
        self.study.checks.of(limit)
    }

    /// Returns a figure, in the limit's unit, with the limit as set by the study.
    pub(super) fn held(&self, value: f64, limit: &Limit) -> Figure {
        held(value, limit, self.limit(limit))
    }
}

/// Returns a figure with a limit in force.
#[must_use]
pub fn held(value: f64, limit: &Limit, in_force: InForce) -> Figure {
    let finite = |limit: f64| limit.is_finite().then_some(limit);
    Figure {
        key: limit.key,
        value,
        unit: limit.unit,
        // A hard limit never warns.
        warn: finite(in_force.warn).filter(|warn| *warn < in_force.invalid),
        invalid: finite(in_force.invalid),
    }
}

/// Returns a passed check.
#[must_use]
pub fn pass(id: CheckId, evidence: String) -> Check {
    check(id, CheckOutcome::Pass, evidence)
}

/// Returns a skipped check without data.
pub fn not_judged(id: CheckId, why: impl Into<String>) -> Check {
    check(id, CheckOutcome::NotJudged, why.into())
}

/// Returns a check that warns.
#[must_use]
pub fn warn(id: CheckId, evidence: String) -> Check {
    check(id, CheckOutcome::Warn, evidence)
}

pub(super) fn invalid(id: CheckId, evidence: String) -> Check {
    check(id, CheckOutcome::Invalid, evidence)
}

/// Returns a check with a known outcome, with the cause and the advice of the table.
#[must_use]
pub fn check(id: CheckId, outcome: CheckOutcome, evidence: String) -> Check {
    let row = (outcome >= CheckOutcome::Warn).then(|| id.row());
    Check {
        id,
        outcome,
        evidence,
        advice: row.map(|row| row.advice.to_owned()),
        cause: row.map(|row| row.cause),
        figures: Vec::new(),
    }
}

/// Returns a check with the outcome of its worst figure.
pub(super) fn judged(id: CheckId, figures: Vec<Figure>, evidence: String) -> Check {
    let worst = figures.iter().map(Figure::outcome).max();
    let outcome = worst.unwrap_or(CheckOutcome::NotJudged);
    check(id, outcome, evidence).by(figures)
}

impl Check {
    /// Sets the judged figures. The evidence includes the limits that they exceed.
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

    /// Replaces the table's cause, unless the check passes.
    pub(super) fn caused_by(mut self, cause: Cause) -> Self {
        self.cause = self.cause.map(|_| cause);
        self
    }

    /// Replaces the table's advice, unless the check passes.
    pub(super) fn advise(mut self, advice: &str) -> Self {
        self.advice = self.advice.map(|_| advice.to_owned());
        self
    }
}

/// Describes the limit that a figure exceeds.
fn beyond(figure: &Figure) -> Option<String> {
    let text = |limit: f64| format::limit(limit, figure.unit);
    match figure.outcome() {
        CheckOutcome::Invalid => Some(format!("limit {}", text(figure.invalid?))),
        CheckOutcome::Warn => Some(format!("warns beyond {}", text(figure.warn?))),
        CheckOutcome::Pass | CheckOutcome::NotJudged => None,
    }
}
