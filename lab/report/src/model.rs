//! The analysis of a run, as `result.json` has it (schema `plimsoll.result/1`).
//!
//! Times end in `_ms`, rates in `_per_s`. A quantile that its sample can't support, and a counter
//! that was never sampled, is `null`, never a number. The writers read nothing but this.

use std::collections::BTreeMap;

use lab_archive::model::{Environment, ErrorClass, ErrorExample};
use lab_study::model::Cell;
use serde::Serialize;

pub use crate::model_comparison::{Claim, Comparison, Difference, Inference, Measure};
pub use crate::model_line::{LineDifference, LineLevel, LoadLine, Scaling, UslPoint};
pub use crate::model_published::{AsIs, Entry, PublishedTable};
pub use crate::model_runs::{
    COMPARISON_SCHEMA, RunComparison, RunFacts, RunOutcome, SetupDifference,
};
pub use crate::model_transfer::{PublishedTransfer, Transfer, TransferSummary};
pub use crate::model_trial::{
    Arrivals, Bound, Check, CheckOutcome, Generator, Lateness, Point, ProbeCounts, Sample, Series,
    StepAnalysis, ThresholdResult, Times, TrialAnalysis, Verdict,
};

/// The `schema` of `result.json`.
pub const RESULT_SCHEMA: &str = "plimsoll.result/1";

/// Means (or, where a name says so, maxima) of counters over the hold; `None` is a gap.
pub type Counters = BTreeMap<String, Option<f64>>;

/// Everything that a report says.
#[derive(Debug, Clone, Serialize)]
pub struct Analysis {
    /// [`RESULT_SCHEMA`].
    pub schema: &'static str,
    /// What was asked.
    pub study: StudyFacts,
    /// The machine.
    pub environment: Environment,
    /// One sentence that says what came out.
    pub headline: String,
    /// Counts that decide how a run ends.
    pub summary: Summary,
    /// Judgements on the measurement as a whole.
    pub checks: Vec<Check>,
    /// All complete trials, in the order they ran.
    pub trials: Vec<TrialAnalysis>,
    /// One per cell, over its valid trials, in the order of the study's levels.
    pub cells: Vec<CellSummary>,
    /// Cells beside their baselines: a cell that differs in one factor, by its first level.
    pub comparisons: Vec<Comparison>,
    /// Levels of each factor beside its first, over all cells; empty with fewer than two factors.
    pub main_effects: Vec<Comparison>,
    /// The control beside its cell, the same system under two labels; empty without a control.
    pub control: Vec<Comparison>,
    /// By which rule they are judged.
    pub inference: Inference,
    /// The most users that the system carries, of the first cell that was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_line: Option<LoadLine>,
    /// The same of every cell that was searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_lines: Vec<LoadLine>,
    /// Load lines beside the first one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_line_differences: Vec<LineDifference>,
    /// How throughput scales, where users alone vary, over six levels or more and from one user on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usl: Option<Scaling>,
    /// Sentences that the numbers support.
    pub findings: Vec<String>,
    /// Published figures beside ours.
    pub published: Vec<PublishedTable>,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyFacts {
    /// Short name.
    pub name: String,
    /// One line.
    pub title: String,
    /// The question and its background; may be empty.
    pub about: String,
    /// Name of the workload.
    pub workload: String,
    /// SHA-256 of what the workload means, in hex: of runs with the same one the users do the same.
    pub workload_sha256: String,
    /// SHA-256 of the study file's bytes, in hex; `None` if the archive holds no study file.
    pub file_sha256: Option<String>,
    /// Seed of all randomness.
    pub seed: u64,
    /// 1 is real time.
    pub speed: f64,
    /// When the run began, RFC 3339.
    pub started: String,
    /// `--set` overrides, as given.
    pub overrides: Vec<(String, String)>,
    /// Names of the varied factors, in file order.
    pub factors: Vec<String>,
    /// Names of the session's steps, in session order, each once.
    pub steps: Vec<String>,
}

/// How many trials there are, and how they ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What the run as a whole comes to.
    pub outcome: Outcome,
    /// Trials in the plan.
    pub planned: usize,
    /// Trials that ended, in whatever way.
    pub complete: usize,
    /// Trials that are measurements.
    pub valid: usize,
    /// Trials that are not.
    pub invalid: usize,
    /// Trials whose system under test failed; they are invalid too.
    pub system_failures: usize,
    /// Checks that warn, over all trials and of the run as a whole.
    pub warnings: usize,
    /// Thresholds that were judged, over valid trials.
    pub thresholds: usize,
    /// Thresholds that failed, over valid trials.
    pub thresholds_failed: usize,
    /// Cells that ran but have no valid trial.
    pub cells_without_valid_trial: usize,
    /// The least part of its planned load that a valid trial had, where any had not all of it (or,
    /// delayed, more than that); not of a search, which goes beyond it.
    pub least_part_of_load: Option<f64>,
}

/// What a run comes to. The first that holds counts, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The system under test failed in a trial.
    SystemFailed,
    /// A cell that ran has no valid trial, or nothing ran.
    TooFewValidTrials,
    /// A threshold failed in a valid trial.
    ThresholdFailed,
    /// None of these.
    Ok,
}

/// A mean over the valid trials of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over trials.
    pub mean: f64,
    /// Lower end of its 95 % interval; `None` of a single trial.
    pub low: Option<f64>,
    /// Upper end; `None` of a single trial.
    pub high: Option<f64>,
}

/// One cell over its valid trials. Figures are means over trials; `None` without a valid trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// The same from the actual send; `None` where there is no plan to be late by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_ms: Option<TimesSummary>,
    /// Sessions that arrived per second beside those planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Steps, in session order.
    pub steps: Vec<StepSummary>,
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

/// Means over trials of one statistic each; least and largest are over all trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
}

impl Analysis {
    /// The summary of the cell of `trial`.
    #[must_use]
    pub fn cell_of(&self, cell: &Cell) -> Option<&CellSummary> {
        self.cells.iter().find(|summary| summary.cell == *cell)
    }

    /// Whether published figures stand beside those of any cell.
    #[must_use]
    pub fn has_published(&self) -> bool {
        self.published.iter().any(|table| !table.entries.is_empty())
    }

    /// What is said beside published figures when the run was sped up; `None` at speed 1.
    #[must_use]
    pub fn speed_note(&self) -> Option<String> {
        speed_note(self.study.speed)
    }
}

/// What is said beside published figures at a speed other than 1.
pub(crate) fn speed_note(speed: f64) -> Option<String> {
    ((speed - 1.0).abs() > 1e-9)
        .then(|| format!("at --speed {speed}: load per user is {speed} times the report's"))
}

/// Errors by class, those that occurred.
pub type ErrorCounts = BTreeMap<ErrorClass, u64>;

/// Examples of failed requests, as archived.
pub type ErrorExamples = Vec<ErrorExample>;
