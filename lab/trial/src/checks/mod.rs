//! Checks: is this trial a measurement? Each has its evidence in numbers and its advice in words.
//!
//! A slow server and a bad measurement are never the same thing: load that is missing because the
//! server was slow, while the generator was healthy, is a warning and the trial stays valid. Errors
//! are data and never more than a warning. The limits are the plan's ([`lab_plan::checks`]).

mod agents;
mod arrivals;
mod cause;
mod circumstances;
mod facts;
mod generator;
mod load;
mod outcome;
mod probe;
mod records;
mod skips;
mod stages;
mod steady;
mod waits;

pub(crate) use cause::cause;
pub(crate) use facts::Facts;
pub use outcome::{check, held, not_judged, pass, warn};
pub(crate) use steady::{TAIL, steady_state};

use lab_archive::PreparationCause;
use lab_archive::model::TrialEnd;
use lab_plan::LoadKind;
use lab_plan::checks::Cause;

use crate::model::{Check, CheckOutcome};
use outcome::invalid;

/// All checks, in the order that a reader wants them. A trial whose system or generator failed has one check:
/// the others would only describe the ruins.
pub(crate) fn all(facts: &Facts<'_>) -> Vec<Check> {
    if let TrialEnd::SystemFailed { message } = &facts.data.record.end {
        // What it printed last stands below the first line.
        let has_log =
            message.contains("its last lines:") || message.contains("; it printed nothing");
        let advice = match has_log {
            true => {
                "Read the end of system.log in the trial's folder, mend the system, and run again."
            }
            false => {
                "Mend the system, or what it is asked: `plimsoll try` shows one user's requests and \
                 answers."
            }
        };
        let evidence = format!("it failed: {}", first_line(message));
        return vec![invalid("system under test", evidence, advice)];
    }
    if let Some(check) = part_missing(&facts.data.record.end) {
        return vec![check];
    }
    let health = generator::health(facts);
    let kind = facts.planned.load.kind;
    let mut checks = Vec::new();
    checks.extend(arrivals::arrivals(facts));
    checks.extend(arrivals::sequence(facts));
    if !matches!(kind, LoadKind::Sequence { .. }) {
        checks.push(load::delivered(facts, &health));
    }
    checks.extend(stages::stages(facts, &health));
    checks.extend(stages::populations(facts, &health));
    checks.extend([
        load::transactions(facts, &health),
        load::mix(facts, &health),
        waits::waits(facts),
    ]);
    if !matches!(kind, LoadKind::Sequence { .. }) {
        checks.extend(waits::little(facts));
    }
    // What follows from a fixed number of users says nothing where sessions come on their own, or users
    // come and go; and those of several populations ask different things of the server.
    let load = &facts.planned.load;
    if kind == LoadKind::Users && load.stages.is_empty() && load.mix.is_empty() {
        checks.extend(waits::bound(facts));
    }
    let [lateness, rest @ ..] = health.checks;
    checks.push(lateness);
    checks.extend(health.loop_lag);
    checks.extend(rest);
    checks.extend(circumstances::all(facts));
    checks.extend(agents::clocks(facts));
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
    checks.extend(probe::probe(facts));
    checks.extend(records::loops(facts));
    checks
}

/// The one check of a trial whose preparation failed, whose load was incomplete, or that ended early.
fn part_missing(end: &TrialEnd) -> Option<Check> {
    match end {
        TrialEnd::PreparationFailed { message, cause } => Some(
            invalid(
                "preparation",
                first_line(message).to_owned(),
                "No load was offered, so this says nothing about the system under load. Fix what the \
                 message names, and resume the run: `plimsoll try` prepares the system for one user.",
            )
            .caused_by(match cause {
                PreparationCause::System => Cause::System,
                PreparationCause::Study => Cause::Study,
            }),
        ),
        TrialEnd::GeneratorFailed { message } => Some(invalid(
            "load generator",
            format!("it failed: {}", first_line(message)),
            "A part of the load was missing. Mend what the message names, and run again.",
        )),
        TrialEnd::AgentLost { message } => Some(invalid(
            "agents",
            first_line(message).to_owned(),
            "A part of the load was missing: it is never moved to others. Look at that agent's machine \
             and its network, and run again.",
        )),
        // What was passed is the system's doing, and no noise.
        TrialEnd::Aborted { message } => Some(
            invalid(
                "abort",
                first_line(message).to_owned(),
                "A trial that was ended early is no measurement, whatever it had shown till then: offer \
                 less load, or allow more under `abort_on`.",
            )
            .caused_by(Cause::System),
        ),
        TrialEnd::Complete | TrialEnd::SystemFailed { .. } => None,
    }
}

/// The check that a later measurement of the same trial fails.
#[must_use]
pub fn later_attempt(first: u32) -> Check {
    invalid(
        "attempt",
        format!("trial {first} is a measurement already"),
        "Of several attempts at a trial, the first measurement counts, whatever came out.",
    )
}

/// The check that a trial of a duet fails whose partner is no measurement, for the reason that the
/// partner has.
#[must_use]
pub fn partner_is_none(partner: u32, cause: Option<Cause>) -> Check {
    let check = invalid(
        "partner",
        format!("trial {partner}, which ran at the same time, is no measurement"),
        "Two trials of a duet count together: see the checks of the other one.",
    );
    check.caused_by(cause.unwrap_or(Cause::Outside))
}

/// What makes answers late at one side of a duet does so at the other, and the sides are swapped by
/// block: in what is compared it is noise, which the intervals tell. So it only warns, and with it what
/// the generator suffered while something outside competed with it. Whether there was any.
pub(crate) fn of_both_sides(checks: &mut [Check]) -> bool {
    let told = |check: &Check| check.cause == Some(Cause::Outside);
    let competes = checks.iter().any(told);
    let mut relaxed = false;
    for check in checks.iter_mut() {
        let of_generator = competes && check.cause == Some(Cause::Generator);
        let spoils_times = spoils_times_only(check.name) || of_generator;
        if check.outcome == CheckOutcome::Invalid && spoils_times {
            check.outcome = CheckOutcome::Warn;
            relaxed = true;
        }
    }
    relaxed
}

/// Whether what fails this check makes answers late and hardly makes the system work more.
#[must_use]
pub fn spoils_times_only(name: &str) -> bool {
    matches!(
        name,
        "stolen CPU"
            | "other programs"
            | "lateness of sends"
            | "loop lag"
            | "run-queue delay"
            | "clock and windows"
    )
}

/// What went wrong, without the lines that the system printed last.
#[must_use]
pub fn first_line(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    line.trim_end_matches("; its last lines:")
}
