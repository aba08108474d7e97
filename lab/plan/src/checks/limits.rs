//! The numeric limits of checks, and the keys of those that are no longer judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Percent; 100 is the whole.
    Percent,
    /// Milliseconds.
    Milliseconds,
}

/// A limit of a check. A figure above it warns, or makes the trial invalid.
#[derive(Debug, PartialEq)]
pub struct Limit {
    /// Its name under `checks:` of a study.
    pub key: &'static str,
    /// The figure that it limits.
    pub figure: &'static str,
    /// Unit of the figure and of both limits.
    pub unit: Unit,
    /// The check warns above this, unless a study sets its own.
    pub warn: Option<f64>,
    /// The trial is invalid above this, unless a study sets its own.
    pub invalid: Option<f64>,
}

/// Keys that studies may still have and that are no longer judged, each with the reason.
pub const RETIRED: &[(&str, &str)] = &[
    (
        "littles_law",
        "load that is missing shows in `delivered_load`, `requests`, and `waits`",
    ),
    (
        "closed_system_bound",
        "load that is missing shows in `delivered_load`, `requests`, and `waits`",
    ),
    ("hand_over", "`held_up` counts all stalls of the generator"),
];

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
/// Load in a stage of a changing load.
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
/// If response times count from the plan, lateness is part of them: it must be small relative to the measured service
/// time. Lateness below a millisecond has no limit: it is normal for machines.
pub const LATENESS_OF_SERVICE: Limit = percent(
    "lateness_of_service",
    "of arrivals: lateness of sends, p99, of the median service time (0 up to 1 ms late)",
    Some(10.0),
    Some(100.0),
);
/// The delay of the generator's reads is part of every measured time. Up to 0.1 ms is normal for any machine.
pub const LOOP_LAG: Limit = percent(
    "loop_lag",
    "what reading late added to the mean, p50, or p95 of service times, of that figure",
    Some(10.0),
    Some(30.0),
);
/// A p99 is easily affected by unrelated events.
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
/// CPU time that a hypervisor gave to other guests.
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
/// Half of the shortest round-trip time: the error of a common start of agents.
pub const AGENT_CLOCK_BOUND: Limit = ms(
    "agent_clock_bound",
    "how far off an agent's clock may be from what is known of it",
    Some(5.0),
    Some(100.0),
);
/// The best of 64 measurements, a second apart, are compared with each other. Between two of them quartz drifts by up to
/// 50 ppm, which is 3.2 ms, and NTP slews by up to 500 ppm (adjtimex(2)), which is 32 ms: neither is a step.
pub const AGENT_CLOCK_STEP: Limit = ms(
    "agent_clock_step",
    "step of an agent's clock between two measurements, beyond what is unknown of both",
    Some(5.0),
    Some(50.0),
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
/// A record is invalid if more of the trial than this has no window, or is covered twice.
pub const WINDOW_GAPS: Limit = percent(
    "window_gaps",
    "trial without a window, or covered twice",
    Some(0.0),
    Some(1.0),
);
/// Ramp and hold may be this much longer or shorter than planned.
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
/// Samples of a profile. The kernel has interrupts off while it switches threads. A timer that expires then is late and
/// hits the next thread. A server with many switches has up to 15 % fewer samples (measured on a Go server).
pub const PROFILE_SAMPLES: Limit = percent(
    "profile_samples",
    "difference between the number of samples and the number expected (CPU time × rate)",
    Some(25.0),
    None,
);
/// Records that the kernel dropped.
pub const PROFILE_LOST: Limit = percent(
    "profile_lost",
    "samples that the kernel dropped",
    Some(1.0),
    None,
);
/// Stacks that break.
pub const PROFILE_STACKS: Limit = percent(
    "profile_stacks",
    "samples whose stacks don't reach the start of their thread",
    Some(5.0),
    None,
);
/// Functions without names.
pub const PROFILE_NAMES: Limit = percent(
    "profile_names",
    "samples of functions without a name",
    Some(10.0),
    None,
);
/// The cost of sampling; a study's `budget` replaces the limit.
pub const SAMPLING_COST: Limit = percent(
    "sampling_cost",
    "CPU per transaction that sampling costs the system, at least",
    Some(2.0),
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
/// Requests in flight for less than this at the end are normal.
pub const UNANSWERED: Limit = ms(
    "unanswered",
    "age of the oldest request without an answer at the end (or ten times p99, if that is more)",
    Some(1000.0),
    None,
);
/// More are a fault of the workload or of the server's responses.
pub const SKIPPED_STEPS: Limit =
    percent("skipped_steps", "steps that were skipped", Some(0.5), None);
/// A store's files grow in steps.
pub const STARTING_STATE: Limit = percent(
    "starting_state",
    "data that trials of a cell begin with, off the first one's",
    Some(5.0),
    None,
);
