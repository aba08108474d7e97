//! The results of a cell: means over its valid trials.

use std::collections::BTreeMap;

use lab_plan::Cell;
use lab_trial::model::Counters;
use lab_trial::model::{Arrivals, Bound, PopulationPlan, ProbeCounts, StagePlan, TrialAnalysis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::Estimate;
use super::transfer::TransferSummary;

/// A cell over its valid trials. Figures are means over trials; `null` without a valid trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellSummary {
    /// The level of each factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// The number of users at the top of the ramp; of arrivals, the maximum number of concurrent sessions.
    pub users: u32,
    /// The number of trials that ended.
    pub trials: usize,
    /// The number of valid trials; all figures below are of these.
    pub valid_trials: usize,
    /// Transactions per trial, ramp included.
    pub transactions: Option<Estimate>,
    /// Errors of all valid trials together, ramp included.
    pub errors: u64,
    /// Skipped steps of all valid trials together, ramp included.
    pub skipped: u64,
    /// Errors per trial, the mean over trials.
    pub errors_per_trial: Option<f64>,
    /// Skipped steps per trial, the mean over trials.
    pub skipped_per_trial: Option<f64>,
    /// Transactions per second in the hold.
    pub throughput_per_s: Option<Estimate>,
    /// Transactions per minute in the hold, which the reports of Domino call NotesMark.
    pub notesmark_per_min: Option<Estimate>,
    /// Response times in the hold, in ms.
    pub response_ms: TimesSummary,
    /// Response times over all attempts, in ms, as comparisons and histories use them: a failed request is slower than
    /// any limit. Absent if no request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_with_failures_ms: Option<TimesSummary>,
    /// The deciding figure, if the study names one of a part of the load or of another quantile. The unit is ms, per s,
    /// or for a rate %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding: Option<Estimate>,
    /// Response times from the actual send, in ms; absent if there are no planned sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_ms: Option<TimesSummary>,
    /// The measured and planned rates of arriving sessions; absent unless sessions arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The steps, in session order.
    pub steps: Vec<StepSummary>,
    /// The populations of the load, in order; absent if all users do the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationSummary>,
    /// The tags of the steps, in session order; absent if no step has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagSummary>,
    /// The transactions that the workload names; the session is first if it has several requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named_transactions: Vec<TransactionSummary>,
    /// The queues that users share, and the pools of which each session has a row of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueSummary>,
    /// Other numbers reported in responses, in the order of the steps; absent if none is measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasureSummary>,
    /// The stages of the load, in order; absent if the load is constant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageSummary>,
    /// The response times of the probe, in ms; `null` without a probe.
    pub probe_ms: Option<TimesSummary>,
    /// The responses to the probe in all valid trials together.
    pub probe: Option<ProbeCounts>,
    /// The data that sessions transferred; absent if the workload does not declare it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<TransferSummary>,
    /// The counters of the system's processes.
    pub system: Counters,
    /// The counters of the host.
    pub host: Counters,
}

impl CellSummary {
    /// Returns true if a trial is of this cell. A search has several numbers of users in a cell, and a control exists
    /// for comparison.
    #[must_use]
    pub fn is_of(&self, trial: &TrialAnalysis) -> bool {
        trial.cell == self.cell && trial.users == self.users && !trial.control
    }
}

/// Means over trials of each statistic; `min` and `max` are over all trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimesSummary {
    /// The mean of the trials' means.
    pub mean: Option<Estimate>,
    /// The minimum over all trials.
    pub min: Option<f64>,
    /// The mean of the trials' medians.
    pub p50: Option<Estimate>,
    /// The mean of the trials' 90th percentiles.
    pub p90: Option<Estimate>,
    /// The mean of the trials' 95th percentiles.
    pub p95: Option<Estimate>,
    /// The mean of the trials' 99th percentiles.
    pub p99: Option<Estimate>,
    /// The mean of the trials' 99.9th percentiles.
    pub p999: Option<Estimate>,
    /// The maximum over all trials.
    pub max: Option<f64>,
}

/// A step of a cell, over its valid trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepSummary {
    /// The name of the step.
    pub name: String,
    /// Transactions per trial, the mean over trials.
    pub transactions: Option<f64>,
    /// Errors of all valid trials together.
    pub errors: u64,
    /// The number of times the step was skipped, in all valid trials together.
    pub skipped: u64,
    /// Errors per trial, the mean over trials.
    pub errors_per_trial: Option<f64>,
    /// The number of times the step was skipped per trial, the mean over trials.
    pub skipped_per_trial: Option<f64>,
    /// Operations that exceeded the load's time limit; present if there are any in a valid trial. There is no mean
    /// then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Response times in the hold, in ms.
    pub response_ms: TimesSummary,
    /// Times of the phases of responses in the hold, in ms: `dns`, `connect`, `tls`, `wait`, `receive`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub phases_ms: BTreeMap<&'static str, TimesSummary>,
}

/// The steps with a tag, over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TagSummary {
    /// The tag.
    pub name: String,
    /// The names of its steps.
    pub steps: Vec<String>,
    /// Failed requests of all trials together.
    pub errors: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<Estimate>,
    /// Response times in ms, from the planned send if there is a plan, else from the actual send.
    pub response_ms: TimesSummary,
}

/// The transactions of one name, over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransactionSummary {
    /// The name of the transaction; `session` is the whole session.
    pub name: String,
    /// Transactions of all trials in which every request met its `expect`.
    pub completed: u64,
    /// Transactions of all trials in which a request failed or exceeded the load's time limit, and sessions that were
    /// rejected.
    pub failed: u64,
    /// Transactions of all trials in which a request was skipped; they have no time.
    pub skipped: u64,
    /// Transactions of all trials that were in progress when their user left, or at the end.
    pub unfinished: u64,
    /// Completed transactions per second.
    pub completed_per_s: Option<Estimate>,
    /// Times from the first request to the last response, in ms, without think times.
    pub time_ms: TimesSummary,
    /// Times from the first request to the last response, in ms, with think times.
    pub elapsed_ms: TimesSummary,
}

/// A queue or a pool, over the valid trials of a cell. `queue_wait_ms` has means over trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueSummary {
    /// The name of the queue or pool.
    pub name: String,
    /// Whether it is a pool; a pool has only `takes` and `queue_wait_ms`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pool: bool,
    /// Entries put in, in all trials.
    pub puts: u64,
    /// Entries or rows taken, in all trials.
    pub takes: u64,
    /// Entries dropped because the queue was full, in all trials.
    pub dropped: u64,
    /// Steps skipped because no entry arrived in time, in all trials.
    pub missed: u64,
    /// The maximum number of entries left at the end of a trial.
    pub length: u64,
    /// The maximum number of entries at the end of any window of any trial.
    pub longest: u64,
    /// The times that users waited for an entry or a row, in ms.
    pub queue_wait_ms: TimesSummary,
}

/// A number reported in the responses of a step, over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MeasureSummary {
    /// The step.
    pub step: String,
    /// The name of the number.
    pub name: String,
    /// The unit; empty for a plain number.
    pub unit: String,
    /// The number of values in all trials together.
    pub samples: u64,
    /// The statistics of the values, in their unit.
    pub values: TimesSummary,
}

/// A stage of the load, over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StageSummary {
    /// The plan of the stage.
    #[serde(flatten)]
    pub plan: StagePlan,
    /// Errors of all trials together.
    pub errors: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<Estimate>,
    /// Requests with a response per second, failed ones included.
    pub delivered_per_s: Option<Estimate>,
    /// Requests per second that the plan offers.
    pub offered_per_s: Option<Estimate>,
    /// Response times in ms.
    pub response_ms: TimesSummary,
}

/// A population over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PopulationSummary {
    /// The plan of the population.
    #[serde(flatten)]
    pub plan: PopulationPlan,
    /// Failed requests of all trials together.
    pub errors: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<Estimate>,
    /// Requests with a response per second, failed ones included.
    pub delivered_per_s: Option<Estimate>,
    /// Requests per second that the plan offers.
    pub offered_per_s: Option<Estimate>,
    /// Response times in ms, from the planned send if there is a plan, else from the actual send.
    pub response_ms: TimesSummary,
}
