//! Checks: is this trial a measurement? Each has its evidence in numbers and its advice in words.
//!
//! A slow server and a bad measurement are never the same thing: load that is missing because the
//! server was slow, while the generator was healthy, is a warning and the trial stays valid. Errors
//! are data and never more than a warning.

mod generator;
mod load;
mod records;
mod steady;
mod waits;

use std::collections::BTreeMap;

use lab_archive::TrialData;
use lab_archive::model::TrialEnd;
use lab_study::model::Study;
use lab_study::plan::Trial;

use super::sums::{Names, Sums};
use super::trial::Predicted;
use super::warmup::Warmup;
use crate::model::{Check, CheckOutcome};

/// What checks look at.
pub(super) struct Facts<'a> {
    pub(super) planned: &'a Trial,
    /// The plan's steps by name.
    pub(super) predicted: &'a BTreeMap<String, Predicted>,
    pub(super) study: &'a Study,
    /// What the study's waits and pace are divided by.
    pub(super) speed: f64,
    pub(super) names: &'a Names<'a>,
    pub(super) data: &'a TrialData,
    pub(super) sums: &'a Sums,
    /// The part of the hold that monitor samples cover.
    pub(super) coverage: f64,
    pub(super) warmup: &'a Warmup,
    /// Seconds of one of the system's cores per request, over the number of its cores.
    pub(super) demand_s: Option<f64>,
}

/// All checks, in the order that a reader wants them. A trial whose system failed has one check:
/// the others would only describe the ruins.
pub(super) fn all(facts: &Facts<'_>) -> Vec<Check> {
    if let TrialEnd::SystemFailed { message } = &facts.data.record.end {
        return vec![invalid(
            "system under test",
            format!("it failed: {}", first_line(message)),
            "Read the end of system.log in the trial's folder, mend the system, and run again.",
        )];
    }
    let health = generator::health(facts);
    let mut checks = vec![
        load::delivered(facts, &health),
        load::transactions(facts, &health),
        load::mix(facts, &health),
        waits::waits(facts),
    ];
    checks.extend(waits::little(facts));
    checks.extend(waits::bound(facts));
    checks.extend(health.checks);
    checks.extend([
        steady::steady_state(facts),
        steady::tail(facts),
        records::clock(facts),
        records::agreement(facts),
        records::monitor(facts),
        records::setup(facts),
        records::errors(facts),
        records::unanswered(facts),
        records::skipped(facts),
    ]);
    checks
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn pass(name: &'static str, evidence: String) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Pass,
        evidence,
        advice: None,
    }
}

fn warn(name: &'static str, evidence: String, advice: &str) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Warn,
        evidence,
        advice: Some(advice.to_owned()),
    }
}

fn invalid(name: &'static str, evidence: String, advice: &str) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Invalid,
        evidence,
        advice: Some(advice.to_owned()),
    }
}

/// `value` beyond `warn_above` warns, beyond `invalid_above` invalidates.
fn graded(value: f64, warn_above: f64, invalid_above: f64) -> CheckOutcome {
    if value > invalid_above {
        CheckOutcome::Invalid
    } else if value > warn_above {
        CheckOutcome::Warn
    } else {
        CheckOutcome::Pass
    }
}
