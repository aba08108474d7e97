//! The table of checks: for each its title, its question, the usual cause of a failure, its limits, and the advice for
//! a failure. A check that isn't in the table doesn't compile.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};

use super::limits::{
    AGENT_CLOCK_BOUND, AGENT_CLOCK_STEP, ARRIVALS, CLOCK_JUMPS, DELIVERED_LOAD, ELAPSED,
    GENERATOR_CPU, GENERATOR_THROTTLED, HELD_UP, LATENESS, LATENESS_OF_SERVICE, LATENESS_TAIL,
    LIMITS_NEAR, LOOP_LAG, LOOP_LAG_TAIL, Limit, MEMORY_PRESSURE, MIX_OF_STEPS, OTHER_PROGRAMS,
    POPULATION_LOAD, PROFILE_LOST, PROFILE_NAMES, PROFILE_SAMPLES, PROFILE_STACKS, REQUESTS,
    RESENT, RUN_QUEUE_DELAY, SAMPLING_COST, SKIPPED_STEPS, STAGE_LOAD, STARTING_STATE, STOLEN_CPU,
    UNANSWERED, UNSAMPLED, WAITS, WINDOW_GAPS,
};

/// Where the cause of a failed check lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Outside the system and the generator: other programs, a hypervisor, a clock that was set.
    Outside,
    /// In the load generator, or in its records.
    Generator,
    /// In the system under test, or in resources that it shares with others so that the two can't be separated.
    System,
    /// In the requirements of the study or the workload.
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

/// A row of the table.
#[derive(Debug)]
pub struct Check {
    /// The title in reports and results.
    pub title: &'static str,
    /// The question that it answers.
    pub asks: &'static str,
    /// Where the cause usually lies. A trial may show another cause.
    pub cause: Cause,
    /// Its numeric limits; some checks have none.
    pub limits: &'static [&'static Limit],
    /// What to do if it fails; a trial may give better advice.
    pub advice: &'static str,
}

macro_rules! checks {
    ($($(#[$doc:meta])* $id:ident {
        title: $title:literal,
        asks: $asks:literal,
        cause: $cause:ident,
        limits: [$($limit:ident),*],
        advice: $advice:literal,
    })*) => {
        /// A check, by its place in the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CheckId {
            $($(#[$doc])* $id,)*
        }

        impl CheckId {
            /// All checks, in the order of a report.
            pub const ALL: &'static [Self] = &[$(Self::$id),*];

            /// Its row of the table.
            #[must_use]
            pub const fn row(self) -> &'static Check {
                match self {
                    $(Self::$id => &Check {
                        title: $title,
                        asks: $asks,
                        cause: Cause::$cause,
                        limits: &[$(&$limit),*],
                        advice: $advice,
                    },)*
                }
            }
        }
    };
}

impl CheckId {
    /// The title in reports and results.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().title
    }
}

impl Serialize for CheckId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.title())
    }
}

impl JsonSchema for CheckId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CheckId".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        str::json_schema(generator)
    }
}

checks! {
    /// The system under test started and stayed up.
    SystemUnderTest {
        title: "system under test",
        asks: "Did the system start and stay up?",
        cause: System,
        limits: [],
        advice: "Fix the system, or what it is asked: `plimsoll try` shows one user's requests and answers.",
    }
    /// The system and the data were prepared before any load was offered.
    Preparation {
        title: "preparation",
        asks: "Were the users and the state that the load begins with prepared?",
        cause: Study,
        limits: [],
        advice: "No load was offered, so this says nothing about the system under load. Fix what the message names, \
                 and resume the run: `plimsoll try` prepares the system for one user.",
    }
    /// Every process of the generator stayed up.
    LoadGenerator {
        title: "load generator",
        asks: "Did every process of the generator stay up?",
        cause: Generator,
        limits: [],
        advice: "A part of the load was missing. Fix what the message names, and run again.",
    }
    /// No agent was lost.
    Agents {
        title: "agents",
        asks: "Did every agent that drove a part of the load stay connected to the end?",
        cause: Outside,
        limits: [],
        advice: "A part of the load was missing: it is never moved to other agents. Look at that agent's machine \
                 and its network, and run again.",
    }
    /// The study's `abort_on` did not end the trial.
    Abort {
        title: "abort",
        asks: "Did the trial stay within the study's `abort_on`?",
        cause: System,
        limits: [],
        advice: "A trial that was ended early is no measurement, whatever it had shown till then: offer less load, or \
                 allow more under `abort_on`.",
    }
    /// No earlier attempt at the trial is valid.
    Attempt {
        title: "attempt",
        asks: "Is it the first valid attempt at its trial? Later ones count nowhere.",
        cause: Study,
        limits: [],
        advice: "Of several attempts at a trial, the first measurement counts, whatever came out.",
    }
    /// Of a duet: the trial that ran at the same time is valid.
    Partner {
        title: "partner",
        asks: "Is the trial valid that ran at the same time? (Of a duet.)",
        cause: Outside,
        limits: [],
        advice: "Two trials of a duet count together: see the checks of the other one.",
    }
    /// Sessions arrived as planned.
    Arrivals {
        title: "arrivals",
        asks: "Did sessions arrive as planned?",
        cause: Generator,
        limits: [ARRIVALS],
        advice: "The generator doesn't follow its plan of arrivals.",
    }
    /// The sequence came to its end.
    Sequence {
        title: "sequence",
        asks: "Did the sequence come to its end?",
        cause: Study,
        limits: [],
        advice: "Its time was over before its last session was: give it a longer `hold`.",
    }
    /// Load in the hold.
    DeliveredLoad {
        title: "delivered load",
        asks: "Was the planned load offered in the hold? A slow server alone only warns, as do steps that found \
               nothing meanwhile, if they are a small part of what is missing. Users without a pace have no planned \
               load: what their waits for answers explain is not missing.",
        cause: Generator,
        limits: [DELIVERED_LOAD],
        advice: "Neither slow answers nor a late generator explain what is missing: the figures do not describe the \
                 planned load.",
    }
    /// Load in each stage.
    Stages {
        title: "stages",
        asks: "Was the planned load offered in each stage? A slow server alone only warns. (Of a load that changes.)",
        cause: Generator,
        limits: [STAGE_LOAD],
        advice: "Neither slow answers nor a late generator explain what is missing: the figures do not describe the \
                 planned load.",
    }
    /// Load of each population.
    Populations {
        title: "populations",
        asks: "Did each population offer its planned load, in each stage if there are any? A slow server alone only \
               warns. (Of a mix.)",
        cause: Generator,
        limits: [POPULATION_LOAD],
        advice: "Neither slow answers nor a late generator explain what is missing: the figures do not describe the \
                 planned load.",
    }
    /// Requests of the whole trial.
    Requests {
        title: "requests",
        asks: "Were as many requests sent as predicted? A slow server alone only warns.",
        cause: Generator,
        limits: [REQUESTS],
        advice: "Neither slow answers nor a late generator explain what is missing: the figures do not describe the \
                 planned load.",
    }
    /// Share of each step.
    MixOfSteps {
        title: "mix of steps",
        asks: "Did each step have its share of the requests? Slow answers that cut sessions short only warn.",
        cause: Generator,
        limits: [MIX_OF_STEPS],
        advice: "The users did not do what the workload says.",
    }
    /// Think times.
    Waits {
        title: "waits",
        asks: "Did users think as long as planned?",
        cause: Generator,
        limits: [WAITS],
        advice: "The users did not wait as planned: the load is another one.",
    }
    /// Lateness of sends.
    LatenessOfSends {
        title: "lateness of sends",
        asks: "Were requests sent when they were meant to be?",
        cause: Generator,
        limits: [LATENESS, LATENESS_TAIL, LATENESS_OF_SERVICE],
        advice: "The generator sent later than it meant to: give it more cores or a quieter machine, or fewer users.",
    }
    /// Lateness of reads.
    LoopLag {
        title: "loop lag",
        asks: "Did the generator read answers as soon as they were there?",
        cause: Generator,
        limits: [LOOP_LAG, LOOP_LAG_TAIL],
        advice: "What is measured is the generator's own delay as well: give it more cores or a quieter machine, or \
                 fewer users.",
    }
    /// Waits of the generator's threads for a CPU.
    RunQueueDelay {
        title: "run-queue delay",
        asks: "Did the generator get a CPU when it wanted one?",
        cause: Generator,
        limits: [RUN_QUEUE_DELAY],
        advice: "Something else ran on the generator's cores: pin it and the system to different cores, or stop the \
                 other work.",
    }
    /// CPU of the generator.
    GeneratorCpu {
        title: "generator CPU",
        asks: "Had the generator CPU to spare?",
        cause: Generator,
        limits: [GENERATOR_CPU],
        advice: "The generator is near the end of its CPU: give it more cores.",
    }
    /// CPU that the hypervisor took.
    StolenCpu {
        title: "stolen CPU",
        asks: "Did the hypervisor give this machine's CPU to others?",
        cause: Outside,
        limits: [STOLEN_CPU],
        advice: "The hypervisor gave this machine's CPU to others: measure on a machine of its own.",
    }
    /// CPU of other programs.
    OtherPrograms {
        title: "other programs",
        asks: "Did other programs compete for the CPU?",
        cause: Outside,
        limits: [OTHER_PROGRAMS],
        advice: "Other programs competed with the system or the generator: stop them, and run again.",
    }
    /// Waits for memory.
    MemoryPressure {
        title: "memory pressure",
        asks: "Was the machine short of memory? The system may be the cause.",
        cause: System,
        limits: [MEMORY_PRESSURE],
        advice: "The machine was short of memory: figures include its search for some.",
    }
    /// The calendar's clock.
    ClockJumps {
        title: "clock jumps",
        asks: "Was the clock set, or did the machine sleep?",
        cause: Outside,
        limits: [CLOCK_JUMPS],
        advice: "The clock was set, or the machine slept during the trial: times that the system itself counts by the \
                 calendar are off.",
    }
    /// Clocks of the agents.
    AgentsClocks {
        title: "agents' clocks",
        asks: "Are the offsets of the agents' clocks known well enough?",
        cause: Outside,
        limits: [AGENT_CLOCK_BOUND, AGENT_CLOCK_STEP],
        advice: "Agents began at moments that are known no better, or a machine stood still: use a network with \
                 shorter ways, and machines that nobody suspends.",
    }
    /// Limits of machines and processes.
    Limits {
        title: "limits",
        asks: "Was a limit of ports, files, listen queues, CPU quotas, or heat near or reached?",
        cause: Generator,
        limits: [LIMITS_NEAR, GENERATOR_THROTTLED],
        advice: "A limit of the machine or of a process was near or reached: what it held back is in the figures. \
                 Raise it (`ulimit -n`, net.ipv4.ip_local_port_range, net.core.somaxconn, the control group's quota), \
                 or say in the study that it belongs to the system.",
    }
    /// Steady state, over the trials of a cell.
    SteadyState {
        title: "steady state",
        asks: "Did throughput and response reach a steady state (MSER-5)?",
        cause: Study,
        limits: [],
        advice: "Figures are over the whole hold and describe a server that was still changing: make the hold longer, \
                 or look at what happens through the trial.",
    }
    /// Number of responses.
    TailSample {
        title: "tail sample",
        asks: "Are there enough responses to speak of their tail? Fewer than a p95 needs warn.",
        cause: Study,
        limits: [],
        advice: "Too few responses for a p95: make the hold longer, or the users more.",
    }
    /// Windows.
    ClockAndWindows {
        title: "clock and windows",
        asks: "Do windows cover the trial without gaps, and did the generator's loops keep running?",
        cause: Generator,
        limits: [WINDOW_GAPS, ELAPSED, HELD_UP],
        advice: "The generator was stopped for a while, or the machine slept: run again.",
    }
    /// Counters and histograms.
    RecordsAgree {
        title: "records agree",
        asks: "Do counters and histograms count the same requests?",
        cause: Generator,
        limits: [],
        advice: "The archive is incomplete or was changed: run again.",
    }
    /// Samples of counters.
    Counters {
        title: "counters",
        asks: "Were host and processes sampled through the hold?",
        cause: Generator,
        limits: [UNSAMPLED],
        advice: "Counters speak for a part of the hold only.",
    }
    /// Samples of the profile.
    ProfileSamples {
        title: "profile samples",
        asks: "Does the profile have as many samples as expected?",
        cause: Outside,
        limits: [PROFILE_SAMPLES, PROFILE_LOST],
        advice: "Shares of functions stay right, since a sample's weight comes from the system's CPU time, but there \
                 are fewer samples than intended. Lower the `rate`, and leave CPU time for the lab, which must read them in \
                 time.",
    }
    /// Stacks of the profile.
    ProfileStacks {
        title: "profile stacks",
        asks: "Do the profile's call stacks reach the start of their threads?",
        cause: System,
        limits: [PROFILE_STACKS],
        advice: "Callers are missing where a stack breaks, and totals of functions are too low. Use `frames: copies`, \
                 build the system with frame pointers or unwind tables, and optimised: a copy has 64 KiB of a stack.",
    }
    /// Names in the profile.
    ProfileNames {
        title: "profile names",
        asks: "Do the functions that were sampled have names?",
        cause: System,
        limits: [PROFILE_NAMES],
        advice: "Functions without names are told apart by their places, which another build moves. Keep the system's \
                 symbols (`strip = false`), install its debug symbols, or have its runtime write /tmp/perf-PID.map.",
    }
    /// Cost of the profile.
    SamplingCost {
        title: "sampling cost",
        asks: "Does sampling cost the system no more than the budget?",
        cause: Generator,
        limits: [SAMPLING_COST],
        advice: "Sampling is in the figures of this trial. Lower the `rate` under `profile`.",
    }
    /// Errors of the setup.
    Setup {
        title: "setup",
        asks: "Did the setup go through? Any error warns.",
        cause: System,
        limits: [],
        advice: "The data that the load began with is not what the workload describes.",
    }
    /// Failed requests.
    Errors {
        title: "errors",
        asks: "Did requests fail? They are data, and warn.",
        cause: System,
        limits: [RESENT],
        advice: "Errors are data; the examples and system.log tell more.",
    }
    /// Requests without an answer.
    Unanswered {
        title: "unanswered at the end",
        asks: "Did requests get stuck in the server?",
        cause: System,
        limits: [UNANSWERED],
        advice: "Some requests got stuck in the server: response times are longer than they look.",
    }
    /// Steps without items.
    SkippedSteps {
        title: "skipped steps",
        asks: "Did steps find items to work on?",
        cause: Study,
        limits: [SKIPPED_STEPS],
        advice: "Steps found no item to work on: look at the captures, or at the data that the setup leaves.",
    }
    /// Answers to the probe.
    Probe {
        title: "probe",
        asks: "Was the probe answered, to the end? Requests without an answer warn.",
        cause: System,
        limits: [],
        advice: "Its response times are those of its answers: they say nothing of the requests that had none.",
    }
    /// Loops that ended by their bound.
    Loops {
        title: "loops",
        asks: "Did loops end by their `until`, before `at_most`? Others warn.",
        cause: System,
        limits: [],
        advice: "What their `until` waits for never came: raise `at_most`, or see what the server answers.",
    }
    /// Of the run: trials of a cell begin alike.
    SameStartingState {
        title: "same starting state",
        asks: "Did the trials of a cell begin alike? (Of the run.)",
        cause: System,
        limits: [STARTING_STATE],
        advice: "Trials of one cell should begin alike: a reset that leaves data behind, or a setting that changed \
                 meanwhile, counts as a difference between cells.",
    }
    /// Of the run: order of its trials.
    OrderOfTrials {
        title: "order of trials",
        asks: "Did it matter when a trial ran? p ≤ 0.05 warns. (Of the run.)",
        cause: Outside,
        limits: [],
        advice: "What ran later came out otherwise: the machine warms up, or a trial leaves something to the next one. \
                 Random order keeps it from favouring a cell, but it widens every interval.",
    }
}
