//! Checks: is this trial valid? Each has its evidence in numbers and its advice in words.
//!
//! A slow server and a bad measurement are never the same thing: if load is missing because the server was slow, while
//! the generator was healthy, the check warns and the trial stays valid. Errors are data and never more than a warning.
//! Titles, causes, limits, and advice are defined in the plan ([`lab_plan::checks`]).

mod agents;
mod arrivals;
mod cause;
mod environment;
mod facts;
mod generator;
mod load;
mod outcome;
mod probe;
mod profile;
mod records;
mod skips;
mod stages;
mod steady;
mod waits;

pub(crate) use cause::cause;
pub(crate) use facts::Facts;
pub use outcome::{check, held, not_judged, pass, warn};
pub(crate) use steady::steady_state;

use lab_archive::PreparationCause;
use lab_archive::model::TrialEnd;
use lab_plan::checks::{Cause, CheckId};

use crate::model::{Check, CheckOutcome};
use outcome::invalid;

/// Returns all checks, in the order of the table. A trial whose system or generator failed has a single check: the
/// others would only describe the consequences.
pub(crate) fn all(facts: &Facts<'_>) -> Vec<Check> {
    match ended_early(&facts.data.record.end) {
        Some(check) => vec![check],
        None => {
            let ids = CheckId::ALL.iter();
            ids.filter_map(|id| judge(*id, facts)).collect()
        }
    }
}

/// Runs one check; `None` if it doesn't apply to the trial, or is not about a single trial.
fn judge(id: CheckId, facts: &Facts<'_>) -> Option<Check> {
    match id {
        CheckId::SystemUnderTest
        | CheckId::Preparation
        | CheckId::LoadGenerator
        | CheckId::Agents
        | CheckId::Abort => ended_early(&facts.data.record.end).filter(|check| check.id == id),
        CheckId::Arrivals => arrivals::arrivals(facts),
        CheckId::Sequence => arrivals::sequence(facts),
        CheckId::DeliveredLoad => load::delivered(facts),
        CheckId::Stages => stages::stages(facts),
        CheckId::Populations => stages::populations(facts),
        CheckId::Requests => Some(load::transactions(facts)),
        CheckId::MixOfSteps => Some(load::mix(facts)),
        CheckId::Waits => Some(waits::waits(facts)),
        CheckId::LatenessOfSends => Some(generator::lateness(facts)),
        CheckId::LoopLag => generator::loop_lag(facts),
        CheckId::RunQueueDelay => Some(generator::run_queue(facts)),
        CheckId::GeneratorCpu => Some(generator::cpu(facts)),
        CheckId::StolenCpu => Some(environment::steal(facts)),
        CheckId::OtherPrograms => Some(environment::others(facts)),
        CheckId::MemoryPressure => Some(environment::memory(facts)),
        CheckId::ClockJumps => Some(environment::clocks(facts)),
        CheckId::Limits => Some(environment::limits(facts)),
        CheckId::AgentsClocks => agents::clocks(facts),
        CheckId::TailSample => Some(steady::tail(facts)),
        CheckId::ClockAndWindows => Some(records::clock(facts)),
        CheckId::RecordsAgree => Some(records::agreement(facts)),
        CheckId::Counters => Some(records::monitor(facts)),
        CheckId::ProfileSamples => profile::samples(facts),
        CheckId::ProfileStacks => profile::stacks(facts),
        CheckId::ProfileNames => profile::names(facts),
        CheckId::SamplingCost => profile::cost(facts),
        CheckId::Setup => Some(records::setup(facts)),
        CheckId::Errors => Some(records::errors(facts)),
        CheckId::Unanswered => Some(records::unanswered(facts)),
        CheckId::SkippedSteps => Some(records::skipped(facts)),
        CheckId::Probe => probe::probe(facts),
        CheckId::Loops => records::loops(facts),
        // Judged over the trials of a cell, the attempts at a trial, the two of a duet, or the run.
        CheckId::SteadyState
        | CheckId::Attempt
        | CheckId::Partner
        | CheckId::SameStartingState
        | CheckId::OrderOfTrials => None,
    }
}

/// Returns the single check of a trial whose system failed, whose load was partly missing, or that was ended early.
fn ended_early(end: &TrialEnd) -> Option<Check> {
    let (id, message) = match end {
        TrialEnd::Complete => return None,
        TrialEnd::SystemFailed { message } => (CheckId::SystemUnderTest, message),
        TrialEnd::PreparationFailed { message, .. } => (CheckId::Preparation, message),
        TrialEnd::GeneratorFailed { message } => (CheckId::LoadGenerator, message),
        TrialEnd::AgentLost { message } => (CheckId::Agents, message),
        TrialEnd::Aborted { message } => (CheckId::Abort, message),
    };
    let what = first_line(message);
    let evidence = match end {
        TrialEnd::SystemFailed { .. } | TrialEnd::GeneratorFailed { .. } => {
            format!("it failed: {what}")
        }
        TrialEnd::Complete
        | TrialEnd::PreparationFailed { .. }
        | TrialEnd::AgentLost { .. }
        | TrialEnd::Aborted { .. } => what.to_owned(),
    };
    let check = invalid(id, evidence);
    // The system's last output follows the first line.
    let has_log = message.contains("its last lines:") || message.contains("; it printed nothing");
    Some(match end {
        TrialEnd::SystemFailed { .. } if has_log => check.advise(
            "Read the end of system.log in the trial's folder, fix the system, and run again.",
        ),
        TrialEnd::PreparationFailed { cause, .. } => check.caused_by(match cause {
            PreparationCause::System => Cause::System,
            PreparationCause::Study => Cause::Study,
        }),
        _ => check,
    })
}

/// Returns the check that fails because the same trial was measured again later.
#[must_use]
pub fn later_attempt(first: u32) -> Check {
    let evidence = format!("trial {first} is a measurement already");
    invalid(CheckId::Attempt, evidence)
}

/// Returns the check that a duet's trial fails if its peer is invalid, with the peer's cause.
#[must_use]
pub fn partner_is_none(partner: u32, cause: Option<Cause>) -> Check {
    let evidence = format!("trial {partner}, which ran at the same time, is no measurement");
    let check = invalid(CheckId::Partner, evidence);
    match cause {
        Some(cause) => check.caused_by(cause),
        None => check,
    }
}

/// Relaxes failures to warnings if they affect both sides of a duet. A cause of late responses at one side also acts on
/// the other, and the sides are swapped by block: in the comparison it is noise, which the intervals contain. The same
/// applies to generator failures while an outside program competed with it. Returns true if there were any.
pub(crate) fn of_both_sides(checks: &mut [Check]) -> bool {
    let told = |check: &Check| check.cause == Some(Cause::Outside);
    let competes = checks.iter().any(told);
    let mut relaxed = false;
    for check in checks.iter_mut() {
        let of_generator = competes && check.cause == Some(Cause::Generator);
        let spoils_times = spoils_times_only(check.id) || of_generator;
        if check.outcome == CheckOutcome::Invalid && spoils_times {
            check.outcome = CheckOutcome::Warn;
            relaxed = true;
        }
    }
    relaxed
}

/// Returns true if a failure of this check delays responses and hardly increases the system's work.
#[must_use]
pub fn spoils_times_only(id: CheckId) -> bool {
    match id {
        CheckId::StolenCpu
        | CheckId::OtherPrograms
        | CheckId::LatenessOfSends
        | CheckId::LoopLag
        | CheckId::RunQueueDelay
        | CheckId::ClockAndWindows => true,
        CheckId::SystemUnderTest
        | CheckId::Preparation
        | CheckId::LoadGenerator
        | CheckId::Agents
        | CheckId::Abort
        | CheckId::Attempt
        | CheckId::Partner
        | CheckId::Arrivals
        | CheckId::Sequence
        | CheckId::DeliveredLoad
        | CheckId::Stages
        | CheckId::Populations
        | CheckId::Requests
        | CheckId::MixOfSteps
        | CheckId::Waits
        | CheckId::GeneratorCpu
        | CheckId::MemoryPressure
        | CheckId::ClockJumps
        | CheckId::AgentsClocks
        | CheckId::Limits
        | CheckId::SteadyState
        | CheckId::TailSample
        | CheckId::RecordsAgree
        | CheckId::Counters
        | CheckId::ProfileSamples
        | CheckId::ProfileStacks
        | CheckId::ProfileNames
        | CheckId::SamplingCost
        | CheckId::Setup
        | CheckId::Errors
        | CheckId::Unanswered
        | CheckId::SkippedSteps
        | CheckId::Probe
        | CheckId::Loops
        | CheckId::SameStartingState
        | CheckId::OrderOfTrials => false,
    }
}

/// Returns the error message, without the system's last output.
#[must_use]
pub fn first_line(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    line.trim_end_matches("; its last lines:")
}
