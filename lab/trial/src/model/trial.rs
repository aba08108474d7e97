//! The results of one trial: its part of `result.json`, and the series for the charts.

use std::collections::BTreeMap;

use lab_archive::model::{DuetRecord, GeneratorHealth, Unanswered};
use lab_plan::checks::{Cause, CheckId, Unit};
use lab_plan::{Aggregate, Cell, Metric, Scope};
use schemars::JsonSchema;
use serde::Serialize;

use super::attempts::{Attempts, Measured};
use super::figures::{Counters, ErrorCounts, ErrorExamples};
use super::parts::{MeasureAnalysis, QueueAnalysis, TagAnalysis, TransactionAnalysis};
use super::times::{Bound, Lateness, Times};
use super::transfer::Transfer;

/// A trial. `transactions`, `errors`, and `skipped` count the whole trial, ramp included; times, throughput, and
/// counters are of the hold after its warm-up.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TrialAnalysis {
    /// The number of the trial, as in the plan, from 1.
    pub id: u32,
    /// The planned trial that this one repeats, because that was disturbed from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_of: Option<u32>,
    /// The next attempt at the same trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_by: Option<u32>,
    /// The block, from 0.
    pub block: u32,
    /// The level of each factor.
    pub cell: Cell,
    /// Whether this is a second run of its cell in the block, which compares the system with itself.
    pub control: bool,
    /// The trial that ran at the same time; absent outside a duet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duet: Option<DuetRecord>,
    /// Of a duet: whether a disturbance from outside would make the trial invalid by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// The cell in words.
    pub label: String,
    /// The time when the ramp started, RFC 3339.
    pub started: String,
    /// The validity of the trial.
    pub verdict: Verdict,
    /// Where the cause of an invalid trial lies; absent for a valid trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The failure of the system under test; `null` if it did not fail.
    pub system_failure: Option<String>,
    /// The failure of the preparation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation_failure: Option<String>,
    /// Whether the trial ended before it offered any load; its end then gives no information about the load.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub before_load: bool,
    /// Whether the study's `abort_on` or a script ended the trial early.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// Why a script failed the test (`test.fail`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_failed: Option<String>,
    /// The numbers of values of a script's checks and metrics that are in no figure, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub not_counted: BTreeMap<String, u64>,
    /// The checks of the measurement.
    pub checks: Vec<Check>,
    /// The thresholds on the server.
    pub thresholds: Vec<ThresholdResult>,
    /// The deciding figure, if the study names one of a part of the load or of another quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding: Option<Measured>,
    /// Of a search for the load line: whether the system sustained this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried: Option<bool>,
    /// Of a search: whether the level passed with its whole load offered, although the trial was disturbed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held_while_disturbed: bool,
    /// The number of users at the top of the ramp; of arrivals, the maximum number of concurrent sessions.
    pub users: u32,
    /// The measured and planned rates of arriving sessions in the hold; absent unless sessions arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The length of the ramp, in ms.
    pub ramp_ms: u64,
    /// The length of the hold, in ms.
    pub hold_ms: u64,
    /// The length of the warm-up at the start of the hold (MSER-5), in ms; no figure includes it.
    pub warmup_cut_ms: f64,
    /// The actual time from the start of the ramp to the end of the hold, in ms.
    pub elapsed_ms: u64,
    /// Requests with a response that met their `expect`.
    pub transactions: u64,
    /// The number of transactions predicted by the plan for a server with no response time; `null` if the workload
    /// neither waits nor paces.
    pub transactions_predicted: Option<f64>,
    /// Failed requests.
    pub errors: u64,
    /// Failed requests by class.
    pub errors_by_class: ErrorCounts,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
    /// Cycles started.
    pub cycles: u64,
    /// Cycles that took longer than their pace.
    pub overruns: u64,
    /// Requests sent again because the server had closed their idle connection, or had not processed them.
    pub stale_retries: u64,
    /// The protocols of the users' connections, if they requested another version of HTTP than 1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Requests without a response at the end of the hold; no response time includes them. `null` if not recorded.
    pub unanswered: Option<Unanswered>,
    /// Transactions per second in the hold.
    pub throughput_per_s: Option<f64>,
    /// Transactions per minute in the hold, which the reports of Domino call NotesMark.
    pub notesmark_per_min: Option<f64>,
    /// Requests with a response per second in the hold, failed ones included: the actual load on the server.
    pub delivered_per_s: Option<f64>,
    /// Requests per second that the plan offers; `null` as for `transactions_predicted`.
    pub offered_per_s: Option<f64>,
    /// Response times in ms, from the planned send if there is a plan, else from the actual send.
    pub response_ms: Times,
    /// Response times over all attempts, in ms: a failed attempt is slower than any limit.
    pub response_with_failures_ms: Attempts,
    /// Response times from the actual send, in ms.
    pub service_ms: Times,
    /// The steps, in session order, each name once.
    pub steps: Vec<StepAnalysis>,
    /// The populations of the load, in order; absent if all users do the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationAnalysis>,
    /// The tags of the steps, in session order; absent if no step has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagAnalysis>,
    /// The transactions that the workload names; the session is first if it has several requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named_transactions: Vec<TransactionAnalysis>,
    /// The queues that users share, and the pools of which each session has a row of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueAnalysis>,
    /// Other numbers reported in responses, in the order of the steps; absent if none is measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasureAnalysis>,
    /// The stages of the load, in order; absent if the load is constant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageAnalysis>,
    /// The response times of the probe, a request measured beside the load, in ms; `null` without a probe.
    pub probe_ms: Option<Times>,
    /// The responses to the probe, ramp included; `null` without a probe.
    pub probe: Option<ProbeCounts>,
    /// The data that sessions transferred, if the workload declares it and the load is a sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// The delay of the generator's sends after their planned time, in ms.
    pub lateness_ms: Lateness,
    /// The delay of the generator's reads after data became readable, in ms; every time of a request includes it.
    /// Absent if it was not sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_lag_ms: Option<Lateness>,
    /// The counters of the system's processes.
    pub system: Counters,
    /// The counters of the host.
    pub host: Counters,
    /// The parts of the system on machines of their own, in the order in which they started; `system` has their sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartCounters>,
    /// The resources and the delays of the generator.
    pub generator: Generator,
    /// Requests of the setup before the ramp.
    pub setup_transactions: u64,
    /// Failed requests of the setup.
    pub setup_errors: u64,
    /// Examples of failed requests, at most 20.
    pub error_examples: ErrorExamples,
    /// The slowest requests of the hold that started a trace, at most one per window; slowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowRequest>,
    /// The settings with which the system was started.
    pub system_settings: BTreeMap<String, String>,
    /// Notes on this trial for the reader.
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

/// The arrivals of sessions in the hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Arrivals {
    /// Sessions that arrived, per second.
    pub arrived_per_s: f64,
    /// Sessions planned to arrive, per second.
    pub planned_per_s: f64,
    /// The maximum number of sessions that waited for a connection at the end of a window.
    pub waiting_max: u64,
    /// Sessions rejected because too many already waited, in the whole trial.
    pub dropped: u64,
}

/// The plan of a population.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PopulationPlan {
    /// The name of the population.
    pub name: String,
    /// The short name of its users' workload.
    pub workload: String,
    /// The number of its users, or of connections if its sessions arrive.
    pub users: u32,
    /// The rate of arriving sessions at full load; absent unless sessions arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals_per_s: Option<f64>,
    /// The delay after the start of the load, in ms; absent without a delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// The results of one population of a trial. Counts are of the whole trial, all else is of the hold after its warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PopulationAnalysis {
    /// The plan of the population.
    #[serde(flatten)]
    pub plan: PopulationPlan,
    /// Requests with a response that met their `expect`.
    pub transactions: u64,
    /// Failed requests.
    pub errors: u64,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<f64>,
    /// Requests with a response per second, failed ones included.
    pub delivered_per_s: Option<f64>,
    /// The offered load; `null` if the workload neither waits nor paces, or responses decide what is sent.
    pub offered_per_s: Option<f64>,
    /// Response times in ms, from the planned send if there is a plan, else from the actual send.
    pub response_ms: Times,
}

/// The plan of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StagePlan {
    /// The name of the stage; for most stages, its number.
    pub name: String,
    /// The start on the trial's clock, in ms.
    pub start_ms: u64,
    /// The length, in ms.
    pub length_ms: u64,
    /// The level at its start: users, or arrivals per second.
    pub from: f64,
    /// The level at its end: users, or arrivals per second.
    pub to: f64,
    /// Whether the level changes within the stage. The load is then not steady, and no threshold applies to it.
    pub ramps: bool,
    /// Whether the level is a rate of arrivals.
    pub arrives: bool,
}

/// A stage of a trial: all of it, without a warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StageAnalysis {
    /// The plan of the stage.
    #[serde(flatten)]
    pub plan: StagePlan,
    /// The mean number of users, or of concurrent sessions.
    pub users: Option<f64>,
    /// The number of sessions that arrived.
    pub arrived: u64,
    /// Requests with a response that met their `expect`.
    pub transactions: u64,
    /// Failed requests.
    pub errors: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<f64>,
    /// Requests with a response per second, failed ones included.
    pub delivered_per_s: Option<f64>,
    /// The offered load; `null` if the workload neither waits nor paces, or responses decide what is sent.
    pub offered_per_s: Option<f64>,
    /// Response times in ms, from the planned send if there is a plan, else from the actual send.
    pub response_ms: Times,
}

/// The responses to the probe, ramp included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbeCounts {
    /// Responses that met the probe's `expect`.
    pub transactions: u64,
    /// Failed requests of the probe.
    pub errors: u64,
}

/// The validity of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The trial is a valid measurement.
    Valid,
    /// The trial is invalid; no result includes its figures.
    Invalid,
}

/// A check of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    /// The title of the check.
    #[serde(rename = "name")]
    pub id: CheckId,
    /// The result of the check.
    pub outcome: CheckOutcome,
    /// The evidence: the figures in words.
    pub evidence: String,
    /// The remedy; `null` if there is nothing to do.
    pub advice: Option<String>,
    /// Where the cause lies; absent for a check that passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The figures that were judged; absent if the check judges by no number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

/// A figure that a check compares with its limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// The name of the limit, as a study may set it.
    pub key: &'static str,
    /// The value of the figure.
    pub value: f64,
    /// The unit of the figure and of its limits.
    pub unit: Unit,
    /// The limit above which the check warns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<f64>,
    /// The limit above which the trial is invalid.
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

/// The result of a check, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The check passed.
    Pass,
    /// The check was not judged, because there is nothing to judge by.
    NotJudged,
    /// The check warns; the trial is still valid.
    Warn,
    /// The trial is invalid.
    Invalid,
}

/// A threshold on the server, and its result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ThresholdResult {
    /// The threshold, as written in the study.
    pub text: String,
    /// The metric that is judged.
    pub metric: Metric,
    /// The part of the load that the threshold applies to.
    #[serde(flatten)]
    pub scope: Scope,
    /// The judged figure of the metric.
    #[serde(skip)]
    pub aggregate: Aggregate,
    /// The unit of a measure; absent for a plain number, and for other metrics.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The measured value, in the limit's unit; `null` if there was nothing to measure.
    pub value: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// Whether the threshold holds. It does not if the metric is empty.
    pub holds: bool,
    /// Whether the judged time is that of a failed attempt: slower than any limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
    /// Whether the threshold is a default, judged because the study sets no limit of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub implied: bool,
    /// The reason why the threshold could not be judged; `null` if it was.
    pub reason: Option<String>,
}

/// A step of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepAnalysis {
    /// The name of the step.
    pub name: String,
    /// Requests with a response that met their `expect`, ramp included.
    pub transactions: u64,
    /// The number of requests that the plan predicts.
    pub predicted: u64,
    /// Failed requests, ramp included.
    pub errors: u64,
    /// The number of times the step was skipped, ramp included.
    pub skipped: u64,
    /// Requests that repeat a failed one, successful or not, ramp included.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// The mean wait before the step, in ms, ramp included.
    pub wait_ms: Option<f64>,
    /// The planned mean wait before the step, in ms.
    pub wait_planned_ms: Option<f64>,
    /// The mean size of a response's body, in bytes.
    pub body_bytes: Option<f64>,
    /// The mean size of a decoded body, in bytes, if responses were compressed; absent if it equals `body_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plain_body_bytes: Option<f64>,
    /// Operations that exceeded the load's time limit; there are no times then. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Response times in the hold, in ms.
    pub response_ms: Times,
    /// Response times in the hold from the actual send, in ms; equal to `response_ms` without a plan.
    pub service_ms: Times,
    /// The parts of the service time by phase, in ms: `dns`, `connect`, `tls`, `wait`, `receive`, each of the responses
    /// that had it. Empty in archives of earlier versions.
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

/// The resources and the delays of the generator during the hold.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Generator {
    /// The record of the conductor.
    #[serde(flatten)]
    pub health: GeneratorHealth,
    /// The counters of its process, if sampled.
    pub counters: Counters,
}

/// The counters of a part of the system on a machine of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct PartCounters {
    /// The name of its last process.
    pub name: String,
    /// The counters of its processes.
    pub system: Counters,
    /// The counters of its machine.
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

/// The protocols of the connections of a trial's users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Connections {
    /// All connections that were opened, setup included.
    pub opened: u64,
    /// Connections with HTTP/2; all others use HTTP/1.1.
    pub http2: u64,
}

/// A slow request that can be found in the system's traces.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SlowRequest {
    /// The step.
    pub step: String,
    /// The response time, in ms.
    pub response_ms: f64,
    /// The id of the trace that the request started, in hex.
    pub trace: String,
}
