//! The checks on a measurement: what each asks, where the cause lies if it fails, and the limits that
//! it judges by, which a study may set. Data only: who judges is elsewhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the cause of a failed check lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Neither in the system nor in the generator: other programs, a hypervisor, a clock that was set.
    Outside,
    /// In the load generator, or in its records.
    Generator,
    /// In the system under test, or in what it shares with others so that they can't be told apart.
    System,
    /// In what the study or the workload asks for.
    Study,
}

impl Cause {
    /// As tables and results have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Generator => "generator",
            Self::System => "system",
            Self::Study => "study",
        }
    }
}

/// What a limit is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Per cent; 100 is all of it.
    Percent,
    /// Milliseconds.
    Milliseconds,
}

/// A limit of a check. A figure beyond it warns, or makes the trial no measurement.
#[derive(Debug, PartialEq)]
pub struct Limit {
    /// Its name under `checks:` of a study.
    pub key: &'static str,
    /// What is held against it.
    pub figure: &'static str,
    /// Of the figure and of both limits.
    pub unit: Unit,
    /// Beyond this the check warns, unless a study says otherwise.
    pub warn: Option<f64>,
    /// Beyond this the trial is no measurement, unless a study says otherwise.
    pub invalid: Option<f64>,
}

/// A check.
#[derive(Debug)]
pub struct Check {
    /// As reports name it.
    pub name: &'static str,
    /// What it asks.
    pub asks: &'static str,
    /// Where the cause lies as a rule; a trial may tell more.
    pub cause: Cause,
    /// Its limits that are numbers; some checks have none.
    pub limits: &'static [&'static Limit],
}

/// Limits that a study sets itself, by [`Limit::key`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(pub BTreeMap<String, Set>);

/// A limit that a study sets; what it leaves out stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// In the place of [`Limit::warn`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn: Option<f64>,
    /// In the place of [`Limit::invalid`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<f64>,
}

/// A limit in force; infinite where there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InForce {
    /// Beyond this the check warns.
    pub warn: f64,
    /// Beyond this the trial is no measurement.
    pub invalid: f64,
}

impl Limits {
    /// Whether the study leaves all limits as they are.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A limit as the study has it. What makes a trial invalid never warns at more than that.
    #[must_use]
    pub fn of(&self, limit: &Limit) -> InForce {
        let set = self.0.get(limit.key).copied().unwrap_or_default();
        let invalid = set.invalid.or(limit.invalid).unwrap_or(f64::INFINITY);
        let warn = set.warn.or(limit.warn).unwrap_or(f64::INFINITY);
        InForce {
            warn: warn.min(invalid),
            invalid,
        }
    }
}

/// The limit of that name.
#[must_use]
pub fn limit(key: &str) -> Option<&'static Limit> {
    limits().find(|limit| limit.key == key)
}

/// All limits, in the order of the checks.
pub fn limits() -> impl Iterator<Item = &'static Limit> {
    let all = CHECKS.iter().flat_map(|check| check.limits);
    all.copied()
}

/// The check of that name.
#[must_use]
pub fn check(name: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.name == name)
}

const fn percent(
    key: &'static str,
    figure: &'static str,
    warn: Option<f64>,
    invalid: Option<f64>,
) -> Limit {
    in_unit(Unit::Percent, key, figure, (warn, invalid))
}

const fn ms(
    key: &'static str,
    figure: &'static str,
    warn: Option<f64>,
    invalid: Option<f64>,
) -> Limit {
    in_unit(Unit::Milliseconds, key, figure, (warn, invalid))
}

const fn in_unit(
    unit: Unit,
    key: &'static str,
    figure: &'static str,
    (warn, invalid): (Option<f64>, Option<f64>),
) -> Limit {
    Limit {
        key,
        figure,
        unit,
        warn,
        invalid,
    }
}

/// Evenly spaced arrivals.
pub const ARRIVALS: Limit = percent(
    "arrivals",
    "arrivals off their plan, beyond what chance makes",
    None,
    Some(0.5),
);
/// Load in the hold.
pub const DELIVERED_LOAD: Limit = percent(
    "delivered_load",
    "load delivered in the hold, off the load offered",
    Some(2.0),
    Some(2.0),
);
/// Load in a stage of a load that changes.
pub const STAGE_LOAD: Limit = percent(
    "stage_load",
    "load delivered in a stage, below the load offered in it",
    Some(2.0),
    Some(5.0),
);
/// Load of a population, which may be a small part of all.
pub const POPULATION_LOAD: Limit = percent(
    "population_load",
    "load delivered by a population, below the load that it was to offer",
    Some(2.0),
    Some(5.0),
);
/// Requests of the trial.
pub const REQUESTS: Limit = percent(
    "requests",
    "requests of the trial, off their prediction",
    Some(1.0),
    Some(1.0),
);
/// Faban's mix audit.
pub const MIX_OF_STEPS: Limit = percent(
    "mix_of_steps",
    "share of a step, off its planned share",
    Some(5.0),
    Some(5.0),
);
/// Faban's think-time audit.
pub const WAITS: Limit = percent(
    "waits",
    "mean wait before a step, off its plan",
    None,
    Some(5.0),
);
/// Little's law holds within a few per cent; beyond the second limit one of its sides is wrong.
pub const LITTLES_LAW: Limit = percent(
    "littles_law",
    "users counted, off users computed, beyond what chance, unanswered requests, and sessions that became more make",
    Some(3.0),
    Some(5.0),
);
/// CPU counters have whole ticks and their own windows.
pub const CLOSED_SYSTEM_BOUND: Limit = percent(
    "closed_system_bound",
    "users × CPU demand that the responses are too short for",
    None,
    Some(5.0),
);
/// The upper limit is Hyperfoil's (over 100 ms late is an error).
pub const LATENESS: Limit = ms(
    "lateness",
    "lateness of sends, p99 (the latest, where they are too few)",
    Some(10.0),
    Some(100.0),
);
/// A p99 hides a stall that hit less than every hundredth send.
pub const LATENESS_TAIL: Limit = ms(
    "lateness_tail",
    "lateness of sends, p99.9; the latest of all warns",
    Some(100.0),
    Some(100.0),
);
/// Where response times count from the plan, lateness is part of them: it must be small beside the
/// service time that is measured. Of a millisecond no limit speaks: that is what machines do.
pub const LATENESS_OF_SERVICE: Limit = percent(
    "lateness_of_service",
    "of arrivals: lateness of sends, p99, of the median service time (0 up to 1 ms late)",
    Some(10.0),
    Some(100.0),
);
/// How late the generator reads is part of every time that it measures. Up to 0.1 ms any machine is late.
pub const LOOP_LAG: Limit = percent(
    "loop_lag",
    "what reading late added to the mean, p50, or p95 of service times, of that figure",
    Some(10.0),
    Some(30.0),
);
/// A p99 is easily spoiled where nothing else is.
pub const LOOP_LAG_TAIL: Limit = percent(
    "loop_lag_tail",
    "what reading late added to the p99 of service times, of that figure",
    Some(10.0),
    None,
);
/// Part of the time that worker threads waited for a CPU (`/proc/PID/task/TID/schedstat`).
pub const RUN_QUEUE_DELAY: Limit = percent(
    "run_queue_delay",
    "hold in which the generator's threads waited for a CPU",
    Some(5.0),
    Some(20.0),
);
/// A worker core busier than this over five seconds is under 20 % idle (Hyperfoil's limit).
pub const GENERATOR_CPU: Limit = percent(
    "generator_cpu",
    "CPU of the generator's busiest core over five seconds",
    Some(80.0),
    None,
);
/// CPU time that a hypervisor gave to others.
pub const STOLEN_CPU: Limit = percent(
    "stolen_cpu",
    "CPU that the hypervisor gave to others, of all cores",
    Some(1.0),
    Some(10.0),
);
/// CPU that other programs used.
pub const OTHER_PROGRAMS: Limit = percent(
    "other_programs",
    "CPU that other programs used, of all cores",
    Some(5.0),
    Some(20.0),
);
/// It may be the system's own fault, so by default it never invalidates.
pub const MEMORY_PRESSURE: Limit = percent(
    "memory_pressure",
    "time in which some task waited for memory",
    Some(1.0),
    None,
);
/// NTP slews by at most 500 ppm (adjtimex(2)); a clock that jumps by more than a second was set, or
/// the machine slept.
pub const CLOCK_JUMPS: Limit = ms(
    "clock_jumps",
    "calendar's clock off the monotonic one, beyond a slew of 0.05 %",
    Some(10.0),
    Some(1000.0),
);
/// Half of the shortest way there and back: agents begin together no better than that.
pub const AGENT_CLOCK_BOUND: Limit = ms(
    "agent_clock_bound",
    "how far off an agent's clock may be from what is known of it",
    Some(5.0),
    Some(100.0),
);
/// Clocks drift by parts of a millisecond between two measurements.
pub const AGENT_CLOCK_STEP: Limit = ms(
    "agent_clock_step",
    "step of an agent's clock between two measurements, beyond what is unknown of both",
    Some(0.0),
    Some(5.0),
);
/// Of ports, files, and the like.
pub const LIMITS_NEAR: Limit = percent(
    "limits_near",
    "files or ports in use, of their limit (all of the generator's files: no measurement)",
    Some(90.0),
    None,
);
/// Part of the trial that a CPU quota may hold the generator back.
pub const GENERATOR_THROTTLED: Limit = percent(
    "generator_throttled",
    "trial in which a CPU quota held the generator back",
    Some(0.0),
    Some(1.0),
);
/// More of the trial than this without a window, or covered twice, is no record of it.
pub const WINDOW_GAPS: Limit = percent(
    "window_gaps",
    "trial without a window, or covered twice",
    Some(0.0),
    Some(1.0),
);
/// Ramp and hold may last this much longer or shorter than planned.
pub const ELAPSED: Limit = percent(
    "elapsed",
    "length of ramp and hold, off their plan",
    None,
    Some(2.0),
);
/// Part of the trial in which a loop of the generator stood still. What that does to sends and reads has limits of its
/// own (lateness, loop lag), so this one only refuses a trial that consists of stalls.
pub const HELD_UP: Limit = percent(
    "held_up",
    "trial in which a loop of the generator stood still, each time for over 50 ms",
    Some(1.0),
    Some(20.0),
);
/// A single stop.
pub const HAND_OVER: Limit = ms(
    "hand_over",
    "latest hand-over of a window",
    Some(250.0),
    None,
);
/// Samples must cover most of the hold.
pub const UNSAMPLED: Limit = percent(
    "unsampled",
    "hold without samples of the counters",
    Some(20.0),
    None,
);
/// A server that closes idle connections under more requests than this makes them take longer than
/// their recorded times.
pub const RESENT: Limit = percent("resent", "requests sent again", Some(0.1), None);
/// Requests under way for less than this at the end are the usual ones.
pub const UNANSWERED: Limit = ms(
    "unanswered",
    "age of the oldest request without an answer at the end (or ten times p99, if that is more)",
    Some(1000.0),
    None,
);
/// More are a fault of the workload or of the server's answers.
pub const SKIPPED_STEPS: Limit =
    percent("skipped_steps", "steps that were skipped", Some(0.5), None);
/// A store's files grow in steps.
pub const STARTING_STATE: Limit = percent(
    "starting_state",
    "data that trials of a cell begin with, off the first one's",
    Some(5.0),
    None,
);

const fn asks(
    name: &'static str,
    asks: &'static str,
    cause: Cause,
    limits: &'static [&'static Limit],
) -> Check {
    Check {
        name,
        asks,
        cause,
        limits,
    }
}

/// Every check, in the order of a report.
pub const CHECKS: &[Check] = &[
    asks(
        "system under test",
        "Did the system start and stay up?",
        Cause::System,
        &[],
    ),
    asks(
        "preparation",
        "Were the users and the state that the load begins with prepared?",
        Cause::Study,
        &[],
    ),
    asks(
        "load generator",
        "Did every process of the generator stay up?",
        Cause::Generator,
        &[],
    ),
    asks(
        "agents",
        "Was every agent that drove a part of the load there to the end?",
        Cause::Outside,
        &[],
    ),
    asks(
        "attempt",
        "Is it the first measurement among the attempts at its trial? Others count nowhere.",
        Cause::Study,
        &[],
    ),
    asks(
        "arrivals",
        "Did sessions arrive as planned?",
        Cause::Generator,
        &[&ARRIVALS],
    ),
    asks(
        "sequence",
        "Did the sequence come to its end?",
        Cause::Study,
        &[],
    ),
    asks(
        "delivered load",
        "Was the planned load offered in the hold? Where only a slow server kept users from it, this \
         warns; so it does where steps found nothing meanwhile, if that is a small part of what is \
         missing.",
        Cause::Generator,
        &[&DELIVERED_LOAD],
    ),
    asks(
        "stages",
        "Was the planned load offered in each stage? Where only a slow server kept users from it, this \
         warns. (Of a load that changes.)",
        Cause::Generator,
        &[&STAGE_LOAD],
    ),
    asks(
        "populations",
        "Did each population offer its planned load, in each stage where there are any? Where only a slow \
         server kept users from it, this warns. (Of a mix.)",
        Cause::Generator,
        &[&POPULATION_LOAD],
    ),
    asks(
        "requests",
        "Were as many requests sent as predicted? Where only a slow server kept users from it, this \
         warns.",
        Cause::Generator,
        &[&REQUESTS],
    ),
    asks(
        "mix of steps",
        "Did each step have its share of the requests? Where slow answers cut cycles short, this \
         warns.",
        Cause::Generator,
        &[&MIX_OF_STEPS],
    ),
    asks(
        "waits",
        "Did users think as long as planned?",
        Cause::Generator,
        &[&WAITS],
    ),
    asks(
        "Little's law",
        "Do counted users agree with counted completions?",
        Cause::Generator,
        &[&LITTLES_LAW],
    ),
    asks(
        "closed-system bound",
        "Are responses as long as the CPU that they took demands?",
        Cause::Generator,
        &[&CLOSED_SYSTEM_BOUND],
    ),
    asks(
        "lateness of sends",
        "Were requests sent when they were meant to be?",
        Cause::Generator,
        &[&LATENESS, &LATENESS_TAIL, &LATENESS_OF_SERVICE],
    ),
    asks(
        "loop lag",
        "Did the generator read answers as soon as they were there?",
        Cause::Generator,
        &[&LOOP_LAG, &LOOP_LAG_TAIL],
    ),
    asks(
        "run-queue delay",
        "Did the generator get a CPU when it wanted one?",
        Cause::Generator,
        &[&RUN_QUEUE_DELAY],
    ),
    asks(
        "generator CPU",
        "Had the generator CPU to spare?",
        Cause::Generator,
        &[&GENERATOR_CPU],
    ),
    asks(
        "stolen CPU",
        "Did the hypervisor give this machine's CPU to others?",
        Cause::Outside,
        &[&STOLEN_CPU],
    ),
    asks(
        "other programs",
        "Did other programs compete for the CPU?",
        Cause::Outside,
        &[&OTHER_PROGRAMS],
    ),
    asks(
        "memory pressure",
        "Was the machine short of memory? The system may be the cause.",
        Cause::System,
        &[&MEMORY_PRESSURE],
    ),
    asks(
        "clock jumps",
        "Was the clock set, or did the machine sleep?",
        Cause::Outside,
        &[&CLOCK_JUMPS],
    ),
    asks(
        "agents' clocks",
        "Is it known well enough what the clocks of the agents are off?",
        Cause::Outside,
        &[&AGENT_CLOCK_BOUND, &AGENT_CLOCK_STEP],
    ),
    asks(
        "limits",
        "Was a limit of ports, files, listen queues, CPU quotas, or heat near or reached?",
        Cause::Generator,
        &[&LIMITS_NEAR, &GENERATOR_THROTTLED],
    ),
    asks(
        "steady state",
        "Did throughput and response reach a steady state (MSER-5)?",
        Cause::Study,
        &[],
    ),
    asks(
        "tail sample",
        "Are there enough responses to speak of their tail? Fewer than a p95 needs warn.",
        Cause::Study,
        &[],
    ),
    asks(
        "clock and windows",
        "Do windows cover the trial in time, without gaps?",
        Cause::Generator,
        &[&WINDOW_GAPS, &ELAPSED, &HELD_UP, &HAND_OVER],
    ),
    asks(
        "records agree",
        "Do counters and histograms count the same requests?",
        Cause::Generator,
        &[],
    ),
    asks(
        "counters",
        "Were host and processes sampled through the hold?",
        Cause::Generator,
        &[&UNSAMPLED],
    ),
    asks(
        "setup",
        "Did the setup go through? Any error warns.",
        Cause::System,
        &[],
    ),
    asks(
        "errors",
        "Did requests fail? They are data, and warn.",
        Cause::System,
        &[&RESENT],
    ),
    asks(
        "unanswered at the end",
        "Did requests get stuck in the server?",
        Cause::System,
        &[&UNANSWERED],
    ),
    asks(
        "probe",
        "Was the probe answered, to the end? What was not warns.",
        Cause::System,
        &[],
    ),
    asks(
        "skipped steps",
        "Did steps find items to work on?",
        Cause::Study,
        &[&SKIPPED_STEPS],
    ),
    asks(
        "same starting state",
        "Did the trials of a cell begin alike? (Of the run.)",
        Cause::System,
        &[&STARTING_STATE],
    ),
    asks(
        "order of trials",
        "Did it matter when a trial ran? p ≤ 0.05 warns. (Of the run.)",
        Cause::Outside,
        &[],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_limits_make_sense() {
        for (at, one) in CHECKS.iter().enumerate() {
            assert!(
                CHECKS[..at].iter().all(|other| other.name != one.name),
                "{} is there twice",
                one.name
            );
        }
        let all: Vec<&Limit> = limits().collect();
        for (at, one) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other.key != one.key));
            assert!(one.warn.is_some() || one.invalid.is_some(), "{}", one.key);
            let in_force = Limits::default().of(one);
            assert!(in_force.warn <= in_force.invalid, "{}", one.key);
            assert_eq!(one.invalid.unwrap_or(f64::INFINITY), in_force.invalid);
        }
        assert_eq!(limit("other_programs"), Some(&OTHER_PROGRAMS));
        assert!(limit("nothing").is_none());
        assert!(check("clock jumps").is_some_and(|check| check.cause == Cause::Outside));
    }

    #[test]
    fn what_a_study_sets_is_in_force_and_warns_no_later_than_it_invalidates() {
        let set = |warn, invalid| {
            let one = Set { warn, invalid };
            Limits(BTreeMap::from([("other_programs".to_owned(), one)])).of(&OTHER_PROGRAMS)
        };
        let pair = |in_force: InForce| (in_force.warn, in_force.invalid);
        assert_eq!(pair(set(None, Some(40.0))), (5.0, 40.0));
        assert_eq!(pair(set(Some(10.0), None)), (10.0, 20.0));
        assert_eq!(pair(set(None, Some(2.0))), (2.0, 2.0));
        assert_eq!(pair(set(None, None)), (5.0, 20.0));
    }
}
