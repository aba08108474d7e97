//! The results of one trial: its part of `result.json`, and the series for the charts.

use std::collections::BTreeMap;

use lab_archive::model::{DuetRecord, GeneratorHealth, Unanswered};
use lab_plan::checks::{Cause, CheckId, Unit};
use lab_plan::{Cell, Metric, Scope};
use schemars::JsonSchema;
use serde::Serialize;

use super::attempts::{Attempts, Measured};
use super::figures::{Counters, ErrorCounts, ErrorExamples};
use super::parts::{MeasureAnalysis, QueueAnalysis, TagAnalysis, TransactionAnalysis};
use super::times::{Bound, Lateness, Times};
use super::transfer::Transfer;

/// One trial. `transactions`, `errors`, and `skipped` count the whole trial, ramp included; times,
/// throughput, and counters count the hold after its warm-up.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TrialAnalysis {
    /// As in the plan, from 1.
    pub id: u32,
    /// The trial of the plan that it repeats, because that was disturbed from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_of: Option<u32>,
    /// The next attempt at the same trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_by: Option<u32>,
    /// From 0.
    pub block: u32,
    /// Level by factor.
    pub cell: Cell,
    /// A second run of its cell in the block, for comparing the system with itself.
    pub control: bool,
    /// What ran at the same time on the other half of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duet: Option<DuetRecord>,
    /// Of a duet: disturbed from outside so much that it would be no measurement by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// The cell in words.
    pub label: String,
    /// When the ramp began, RFC 3339.
    pub started: String,
    /// Whether this is a measurement.
    pub verdict: Verdict,
    /// Where the cause lies that it is no measurement; `None` of a valid one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What happened to the system under test, if it failed.
    pub system_failure: Option<String>,
    /// What failed in the preparation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation_failure: Option<String>,
    /// Whether the trial ended before it offered any load, about which its end then says nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub before_load: bool,
    /// Whether the study's `abort_on` ended it before its time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// Judgements on the measurement.
    pub checks: Vec<Check>,
    /// Judgements on the server.
    pub thresholds: Vec<ThresholdResult>,
    /// The figure that decides, if the study names one of a part of the load or of another quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding: Option<Measured>,
    /// Of a search for the load line: whether the system carried this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried: Option<bool>,
    /// Of a search: whether the level held with its whole load offered, although the trial was disturbed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held_while_disturbed: bool,
    /// Users at the top of the ramp; of arrivals, sessions that may be under way at once.
    pub users: u32,
    /// Sessions that arrived in the hold, beside those planned; `None` unless sessions arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Length of the ramp.
    pub ramp_ms: u64,
    /// Length of the hold.
    pub hold_ms: u64,
    /// How much of the hold's beginning is warm-up (MSER-5): it counts in no figure.
    pub warmup_cut_ms: f64,
    /// True time from the start of the ramp to the end of the hold.
    pub elapsed_ms: u64,
    /// Answered requests that met their `expect`.
    pub transactions: u64,
    /// What the plan predicts of a server that answers in no time; `None` where the workload
    /// neither waits nor paces.
    pub transactions_predicted: Option<f64>,
    /// Failed requests.
    pub errors: u64,
    /// The same by class.
    pub errors_by_class: ErrorCounts,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
    /// Cycles begun.
    pub cycles: u64,
    /// Cycles that outlasted their pace.
    pub overruns: u64,
    /// Requests sent again: the server had closed their idle connection, or had not processed them.
    pub stale_retries: u64,
    /// What its users spoke, where they asked for another version of HTTP than 1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Requests without an answer at the end of the hold; in no response time. `None` if not recorded.
    pub unanswered: Option<Unanswered>,
    /// Transactions per second in the hold.
    pub throughput_per_s: Option<f64>,
    /// The same per minute, which the reports of Domino call NotesMark.
    pub notesmark_per_min: Option<f64>,
    /// Answered requests per second in the hold, failed ones included: the load that the server had.
    pub delivered_per_s: Option<f64>,
    /// What the plan offers; `None` as above.
    pub offered_per_s: Option<f64>,
    /// From the planned send where there is a plan, else from the actual send.
    pub response_ms: Times,
    /// As `response_ms`, over all attempts: a failed one is slower than any limit.
    pub response_with_failures_ms: Attempts,
    /// From the actual send.
    pub service_ms: Times,
    /// Steps, in session order, each name once.
    pub steps: Vec<StepAnalysis>,
    /// The populations of the load, in order; empty where all users do the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationAnalysis>,
    /// The tags of its steps, in the order of the session; empty where none has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagAnalysis>,
    /// The transactions that the workload names, the session first where it has several requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named_transactions: Vec<TransactionAnalysis>,
    /// The queues that users share, and the pools of which sessions have a row to themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueAnalysis>,
    /// What answers told besides, in the order of the steps; empty where nothing is measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasureAnalysis>,
    /// The stages of the load, in order; empty where it stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageAnalysis>,
    /// The request measured beside the load.
    pub probe_ms: Option<Times>,
    /// What it came to, ramp included; `None` without a probe.
    pub probe: Option<ProbeCounts>,
    /// What its sessions carried, where the workload says it and the load is a sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// How much later than meant the generator sent.
    pub lateness_ms: Lateness,
    /// How much later than it became readable the generator read something: in every time of a
    /// request. `None` where it wasn't sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_lag_ms: Option<Lateness>,
    /// Counters of the system's processes.
    pub system: Counters,
    /// Counters of the host.
    pub host: Counters,
    /// Parts of the system on machines of their own, in the order in which they were started; `system` has their sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartCounters>,
    /// What the generator used and suffered.
    pub generator: Generator,
    /// Requests of the setup before the ramp.
    pub setup_transactions: u64,
    /// Those that failed.
    pub setup_errors: u64,
    /// Up to 20 failed requests.
    pub error_examples: ErrorExamples,
    /// The slowest requests of the hold that began a trace, one of a window at most; slowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowRequest>,
    /// What the system was started with.
    pub system_settings: BTreeMap<String, String>,
    /// What a reader must know of this trial.
    pub notes: Vec<String>,
    /// Through the trial, for charts; the archive has it in full, so `result.json` leaves it out.
    #[serde(skip)]
    pub series: Series,
}

impl TrialAnalysis {
    /// Returns the planned trial of this attempt.
    #[must_use]
    pub fn planned(&self) -> u32 {
        self.attempt_of.unwrap_or(self.id)
    }

    /// Returns the name: `13 (4 again)`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.attempt_of {
            None => self.id.to_string(),
            Some(of) => format!("{} ({of} again)", self.id),
        }
    }

    /// Returns the part of its planned load that a valid trial had in the hold, if that is not all.
    #[must_use]
    pub fn part_of_load(&self) -> Option<f64> {
        let judged = self
            .checks
            .iter()
            .find(|check| check.id == CheckId::DeliveredLoad)?;
        let off = self.verdict == Verdict::Valid && judged.outcome >= CheckOutcome::Warn;
        lab_stats::ratio(self.delivered_per_s?, self.offered_per_s?).filter(|_| off)
    }
}

/// Sessions that arrive on their own, in the hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Arrivals {
    /// Arrived, per second.
    pub arrived_per_s: f64,
    /// Planned, per second.
    pub planned_per_s: f64,
    /// Most that waited for a connection at a window's end.
    pub waiting_max: u64,
    /// Turned away because too many waited already; in the whole trial.
    pub dropped: u64,
}

/// What a population was to be.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PopulationPlan {
    /// Its name.
    pub name: String,
    /// Short name of what its users do.
    pub workload: String,
    /// Its users; where its sessions arrive, their connections.
    pub users: u32,
    /// Where its sessions arrive: their rate at full load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals_per_s: Option<f64>,
    /// Its delay after the start of the load, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// What one population of a trial sent. Counts are of the whole trial, all else is of the hold after its
/// warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PopulationAnalysis {
    /// What it was to be.
    #[serde(flatten)]
    pub plan: PopulationPlan,
    /// Answered requests that met their `expect`.
    pub transactions: u64,
    /// Failed requests.
    pub errors: u64,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<f64>,
    /// Answered requests per second, failed ones included.
    pub delivered_per_s: Option<f64>,
    /// What the plan offers; `None` where the workload neither waits nor paces, or answers decide.
    pub offered_per_s: Option<f64>,
    /// From the planned send where there is a plan, else from the actual send.
    pub response_ms: Times,
}

/// What a stage was to be.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StagePlan {
    /// Its name; of most stages their number.
    pub name: String,
    /// When it began, on the trial's clock.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// Users, or arrivals per second, at its beginning.
    pub from: f64,
    /// The same at its end.
    pub to: f64,
    /// Whether that changed within it: then it is no steady load, and no threshold is about it.
    pub ramps: bool,
    /// Whether the level is a rate of arrivals.
    pub arrives: bool,
}

/// One stage of a trial: all of it, for nothing is cut off as warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StageAnalysis {
    /// What it was to be.
    #[serde(flatten)]
    pub plan: StagePlan,
    /// Users, or sessions under way, on average.
    pub users: Option<f64>,
    /// Sessions that arrived on their own.
    pub arrived: u64,
    /// Answered requests that met their `expect`.
    pub transactions: u64,
    /// Failed requests.
    pub errors: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<f64>,
    /// Answered requests per second, failed ones included.
    pub delivered_per_s: Option<f64>,
    /// What the plan offers; `None` where the workload neither waits nor paces, or answers decide.
    pub offered_per_s: Option<f64>,
    /// From the planned send where there is a plan, else from the actual send.
    pub response_ms: Times,
}

/// Answers to the probe, ramp included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbeCounts {
    /// Those that met its `expect`.
    pub transactions: u64,
    /// Failed ones.
    pub errors: u64,
}

/// Whether a trial is a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Valid,
    /// It is not; its figures count nowhere.
    Invalid,
}

/// A judgement on the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    /// Its row of the table; results have its title.
    #[serde(rename = "name")]
    pub id: CheckId,
    /// How it came out.
    pub outcome: CheckOutcome,
    /// The numbers.
    pub evidence: String,
    /// What to do about it; `None` if there is nothing to do.
    pub advice: Option<String>,
    /// Where the cause lies; `None` of a check that passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What it judged by; empty where that is no number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

/// A figure that a check holds against its limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// The limit's name, as a study may set it.
    pub key: &'static str,
    /// What was found.
    pub value: f64,
    /// Of the figure and of its limits.
    pub unit: Unit,
    /// Beyond this the check warns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<f64>,
    /// Beyond this the trial is no measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<f64>,
}

impl Figure {
    /// Returns the outcome by its limits alone.
    #[must_use]
    pub fn outcome(&self) -> CheckOutcome {
        let beyond = |limit: Option<f64>| limit.is_some_and(|limit| self.value > limit);
        if beyond(self.invalid) {
            CheckOutcome::Invalid
        } else if beyond(self.warn) {
            CheckOutcome::Warn
        } else {
            CheckOutcome::Pass
        }
    }
}

/// How a check came out, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// As it should be.
    Pass,
    /// Nothing there to judge by.
    NotJudged,
    /// Worth knowing; the trial is still a measurement.
    Warn,
    /// The trial is not a measurement.
    Invalid,
}

/// A judgement on the server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ThresholdResult {
    /// As written in the study.
    pub text: String,
    /// What is judged.
    pub metric: Metric,
    /// The part of the load that it is about.
    #[serde(flatten)]
    pub scope: Scope,
    /// What was measured, in the limit's unit; `None` if there was nothing to measure.
    pub value: Option<f64>,
    /// What it is held against.
    pub limit: f64,
    /// Whether it holds. An empty metric doesn't.
    pub holds: bool,
    /// Whether a failed attempt stands for the time that is judged: slower than any limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
    /// Not written in the study; judged because it sets no limit of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub implied: bool,
    /// Why it could not be judged.
    pub reason: Option<String>,
}

/// One step of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepAnalysis {
    /// Its name.
    pub name: String,
    /// Answered requests that met their `expect`, ramp included.
    pub transactions: u64,
    /// What the plan predicts for them.
    pub predicted: u64,
    /// Failed requests, ramp included.
    pub errors: u64,
    /// Times skipped, ramp included.
    pub skipped: u64,
    /// Requests, well or failed, that were failed ones sent again, ramp included.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Mean wait before the step, ramp included.
    pub wait_ms: Option<f64>,
    /// Mean wait by the plan.
    pub wait_planned_ms: Option<f64>,
    /// Mean size of an answer's body.
    pub body_bytes: Option<f64>,
    /// The same as it was meant: decoded, where answers came compressed; only where that is another
    /// number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plain_body_bytes: Option<f64>,
    /// Where operations took longer than the load's time limit: then there are no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// In the hold.
    pub response_ms: Times,
    /// In the hold, from the actual send; the same where there is no plan.
    pub service_ms: Times,
    /// Where that went: by phase (`dns`, `connect`, `tls`, `wait`, `receive`) of those answers that had
    /// it. Empty in archives of earlier versions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub phases_ms: BTreeMap<&'static str, Times>,
}

impl StepAnalysis {
    /// Returns the bound of all trials' same step together, including those in which nothing exceeded the limit.
    pub fn bound_of_all<'a>(steps: impl Iterator<Item = &'a Self> + Clone) -> Option<Bound> {
        let time_limit_ms = steps.clone().find_map(|step| step.bound)?.time_limit_ms;
        let of_one = |step: &Self| {
            step.bound.unwrap_or(Bound {
                time_limit_ms,
                over: 0,
                of: step.transactions + step.errors,
            })
        };
        steps.map(of_one).reduce(Bound::and)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if asks for it"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What the generator used and suffered during the hold.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Generator {
    /// As recorded by the conductor.
    #[serde(flatten)]
    pub health: GeneratorHealth,
    /// Counters of its process, where sampled.
    pub counters: Counters,
}

/// Counters of a part of the system on a machine of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct PartCounters {
    /// That of its last process.
    pub name: String,
    /// Of its processes.
    pub system: Counters,
    /// Of its machine.
    pub host: Counters,
}

/// The course of a trial over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Load from the windows, neighbours merged.
    pub load: Vec<Point>,
    /// Counters from the monitor, neighbours averaged.
    pub counters: Vec<Sample>,
}

/// A stretch of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    /// Its middle on the trial's clock.
    pub t_ms: f64,
    /// Users in a session at its end.
    pub users: u32,
    /// Sessions that arrived, per second.
    pub arrived_per_s: f64,
    /// Sessions waiting for a connection at its end.
    pub waiting: u64,
    /// Transactions per second.
    pub transactions_per_s: f64,
    /// Errors per second.
    pub errors_per_s: f64,
    /// p95 of response times; `None` if too few.
    pub p95_ms: Option<f64>,
}

/// Counters at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// On the trial's clock.
    pub t_ms: f64,
    /// Host CPU; 100 = all cores.
    pub host_cpu_percent: Option<f64>,
    /// The system's share of the host's CPU; 100 = all cores.
    pub system_cpu_percent: Option<f64>,
    /// Disk transfers.
    pub disk_transfers_per_s: Option<f64>,
}

/// What the users of a trial spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Connections {
    /// All that were opened, setup included.
    pub opened: u64,
    /// Those of them that speak HTTP/2; the others speak HTTP/1.1.
    pub http2: u64,
}

/// A slow request that is to be found in the system's traces.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SlowRequest {
    /// Its step.
    pub step: String,
    /// Its response time.
    pub response_ms: f64,
    /// Id of the trace that it began, in hex.
    pub trace: String,
}
