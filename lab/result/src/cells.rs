//! The results of a cell: means over its valid trials.

use std::collections::BTreeMap;

use lab_plan::Cell;
use lab_trial::model::Counters;
use lab_trial::model::{Arrivals, Bound, PopulationPlan, ProbeCounts, StagePlan, TrialAnalysis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::Estimate;
use super::transfer::TransferSummary;

/// One cell over its valid trials. Figures are means over trials; `None` without a valid trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellSummary {
    /// Level by factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// Users at the top of the ramp; of arrivals, sessions that may be under way at once.
    pub users: u32,
    /// Trials that ended.
    pub trials: usize,
    /// Those that are measurements; only they count below.
    pub valid_trials: usize,
    /// Transactions of a trial, ramp included.
    pub transactions: Option<Estimate>,
    /// Errors of all valid trials together, ramp included.
    pub errors: u64,
    /// Skipped steps of all valid trials together, ramp included.
    pub skipped: u64,
    /// Errors of a trial, mean over trials.
    pub errors_per_trial: Option<f64>,
    /// Skipped steps of a trial, mean over trials.
    pub skipped_per_trial: Option<f64>,
    /// Transactions per second in the hold.
    pub throughput_per_s: Option<Estimate>,
    /// The same per minute, which the reports of Domino call NotesMark.
    pub notesmark_per_min: Option<Estimate>,
    /// Response times in the hold.
    pub response_ms: TimesSummary,
    /// Response times over all attempts, as comparisons and histories read them: a failed request is slower than
    /// any limit. `None` where none failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_with_failures_ms: Option<TimesSummary>,
    /// The figure that decides, if the study names one of a part of the load or of another quantile: in ms, per s, or
    /// of a rate in %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding: Option<Estimate>,
    /// The same from the actual send; `None` where there is no plan to be late by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_ms: Option<TimesSummary>,
    /// Sessions that arrived per second beside those planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Steps, in session order.
    pub steps: Vec<StepSummary>,
    /// The populations of the load, in order; empty where all users do the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationSummary>,
    /// The tags of its steps, in the order of the session; empty where none has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagSummary>,
    /// The transactions that the workload names, the session first where it has several requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named_transactions: Vec<TransactionSummary>,
    /// The queues that users share, and the pools of which sessions have a row to themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueSummary>,
    /// What answers told besides, in the order of the steps; empty where nothing is measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasureSummary>,
    /// The stages of the load, in order; empty where it stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageSummary>,
    /// The probe's times.
    pub probe_ms: Option<TimesSummary>,
    /// Answers to the probe in all valid trials together.
    pub probe: Option<ProbeCounts>,
    /// What its sessions carried, where the workload says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<TransferSummary>,
    /// Counters of the system's processes.
    pub system: Counters,
    /// Counters of the host.
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

/// Means over trials of one statistic each; least and largest are over all trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimesSummary {
    /// Mean of means.
    pub mean: Option<Estimate>,
    /// Least of all.
    pub min: Option<f64>,
    /// Mean of medians.
    pub p50: Option<Estimate>,
    /// Mean of the trials' p90.
    pub p90: Option<Estimate>,
    /// Mean of the trials' p95.
    pub p95: Option<Estimate>,
    /// Mean of the trials' p99.
    pub p99: Option<Estimate>,
    /// Mean of the trials' p99.9.
    pub p999: Option<Estimate>,
    /// Largest of all.
    pub max: Option<f64>,
}

/// One step of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepSummary {
    /// Its name.
    pub name: String,
    /// Transactions of a trial, mean over trials.
    pub transactions: Option<f64>,
    /// Errors of all valid trials together.
    pub errors: u64,
    /// Times skipped in all valid trials together.
    pub skipped: u64,
    /// Errors of a trial, mean over trials.
    pub errors_per_trial: Option<f64>,
    /// Times skipped in a trial, mean over trials.
    pub skipped_per_trial: Option<f64>,
    /// Where operations of any valid trial took longer than the load's time limit: then there is no
    /// mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Response times in the hold.
    pub response_ms: TimesSummary,
    /// Times of the phases of answers in the hold, by phase; see [`lab_trial::model::StepAnalysis::phases_ms`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub phases_ms: BTreeMap<&'static str, TimesSummary>,
}

/// The steps of a tag over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TagSummary {
    /// The tag.
    pub name: String,
    /// The names of its steps.
    pub steps: Vec<String>,
    /// Failed requests of all trials.
    pub errors: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<Estimate>,
    /// From the planned send where there is a plan, else from the actual send.
    pub response_ms: TimesSummary,
}

/// The transactions of one name over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransactionSummary {
    /// Its name; `session` is the whole session.
    pub name: String,
    /// Those of all trials whose requests all met their `expect`.
    pub completed: u64,
    /// Those of all trials in which a request failed or took longer than the load's time limit, and sessions that were
    /// turned away.
    pub failed: u64,
    /// Those of all trials in which a request was left out; they have no time.
    pub skipped: u64,
    /// Those of all trials that were under way when their user left, or at the end.
    pub unfinished: u64,
    /// Completed ones per second.
    pub completed_per_s: Option<Estimate>,
    /// From the first request to the last response, think times within excluded.
    pub time_ms: TimesSummary,
    /// The same, think times included.
    pub elapsed_ms: TimesSummary,
}

/// A queue, or a pool, over the valid trials of a cell. `queue_wait_ms` are means over trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueSummary {
    /// Its name.
    pub name: String,
    /// Whether it is a pool: then only `takes` and `queue_wait_ms` count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pool: bool,
    /// Entries that were put in, in all trials.
    pub puts: u64,
    /// Entries, or rows, that were taken, in all trials.
    pub takes: u64,
    /// Entries that were dropped because it was full, in all trials.
    pub dropped: u64,
    /// Steps that were skipped because no entry came in time, over all trials.
    pub missed: u64,
    /// The most entries that were left at the end of a trial.
    pub length: u64,
    /// The most at the end of any window of any trial.
    pub longest: u64,
    /// How long users waited for what they took.
    pub queue_wait_ms: TimesSummary,
}

/// A number that the answers of a step told over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MeasureSummary {
    /// The step.
    pub step: String,
    /// Its name.
    pub name: String,
    /// What it is counted in; empty of a mere number.
    pub unit: String,
    /// How many numbers came in all trials together.
    pub samples: u64,
    /// Figures of them, in the unit.
    pub values: TimesSummary,
}

/// One stage over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StageSummary {
    /// What it was to be.
    #[serde(flatten)]
    pub plan: StagePlan,
    /// Errors of all trials together.
    pub errors: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<Estimate>,
    /// Answered requests per second, failed ones included.
    pub delivered_per_s: Option<Estimate>,
    /// What the plan offers.
    pub offered_per_s: Option<Estimate>,
    /// Response times.
    pub response_ms: TimesSummary,
}

/// One population over the valid trials of a cell. Figures are means over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PopulationSummary {
    /// What it was to be.
    #[serde(flatten)]
    pub plan: PopulationPlan,
    /// Failed requests of all trials.
    pub errors: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<Estimate>,
    /// Answered requests per second, failed ones included.
    pub delivered_per_s: Option<Estimate>,
    /// What the plan offers.
    pub offered_per_s: Option<Estimate>,
    /// From the planned send where there is a plan, else from the actual send.
    pub response_ms: TimesSummary,
}
