//! Checks: is this trial a measurement? Each has its evidence in numbers and its advice in words.
//!
//! A slow server and a bad measurement are never the same thing: load that is missing because the
//! server was slow, while the generator was healthy, is a warning and the trial stays valid. Errors
//! are data and never more than a warning.

mod arrivals;
mod circumstances;
mod generator;
mod load;
mod records;
mod run;
mod steady;
mod waits;

pub(crate) use run::of_run;
pub(crate) use steady::{TAIL, steady_state};

use std::collections::BTreeMap;

use lab_archive::TrialData;
use lab_archive::model::TrialEnd;
use lab_study::model::Study;
use lab_study::plan::{LoadKind, Trial};

use crate::counters::Monitored;
use crate::model::{Check, CheckOutcome};
use crate::sums::{Names, Sums};
use crate::trial::Predicted;

/// What checks look at.
pub(crate) struct Facts<'a> {
    pub(crate) planned: &'a Trial,
    /// The plan's steps by name.
    pub(crate) predicted: &'a BTreeMap<String, Predicted>,
    pub(crate) study: &'a Study,
    /// What the study's waits and pace are divided by.
    pub(crate) speed: f64,
    pub(crate) names: &'a Names<'a>,
    pub(crate) data: &'a TrialData,
    pub(crate) sums: &'a Sums,
    /// Cores of the machine.
    pub(crate) cores: u32,
    /// Counters over the hold.
    pub(crate) monitored: &'a Monitored,
    /// Seconds of one of the system's cores per request, over the number of its cores.
    pub(crate) demand_s: Option<f64>,
}

/// All checks, in the order that a reader wants them. A trial whose system or generator failed has one check:
/// the others would only describe the ruins.
pub(crate) fn all(facts: &Facts<'_>) -> Vec<Check> {
    if let TrialEnd::SystemFailed { message } = &facts.data.record.end {
        return vec![invalid(
            "system under test",
            format!("it failed: {}", first_line(message)),
            "Read the end of system.log in the trial's folder, mend the system, and run again.",
        )];
    }
    if let TrialEnd::GeneratorFailed { message } = &facts.data.record.end {
        return vec![invalid(
            "load generator",
            format!("it failed: {}", first_line(message)),
            "A part of the load was missing. Mend what the message names, and run again.",
        )];
    }
    let health = generator::health(facts);
    let kind = facts.planned.load.kind;
    let mut checks = Vec::new();
    checks.extend(arrivals::arrivals(facts));
    checks.extend(arrivals::sequence(facts));
    if !matches!(kind, LoadKind::Sequence { .. }) {
        checks.push(load::delivered(facts, &health));
    }
    checks.extend([
        load::transactions(facts, &health),
        load::mix(facts, &health),
        waits::waits(facts),
    ]);
    if !matches!(kind, LoadKind::Sequence { .. }) {
        checks.extend(waits::little(facts));
    }
    // What follows from a fixed number of users says nothing where sessions come on their own.
    if kind == LoadKind::Users {
        checks.extend(waits::bound(facts));
    }
    checks.extend(health.checks);
    checks.extend(circumstances::all(facts));
    checks.extend([
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

fn not_judged(name: &'static str, why: impl Into<String>) -> Check {
    Check {
        name,
        outcome: CheckOutcome::NotJudged,
        evidence: why.into(),
        advice: None,
    }
}

/// A check whose outcome is known; advice is for what doesn't pass.
fn check(name: &'static str, outcome: CheckOutcome, evidence: String, advice: &str) -> Check {
    Check {
        name,
        outcome,
        evidence,
        advice: (outcome >= CheckOutcome::Warn).then(|| advice.to_owned()),
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
