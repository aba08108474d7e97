//! The analysis of a run, as `result.json` has it (schema `plimsoll.result/1`).
//!
//! Times end in `_ms`, rates in `_per_s`. A quantile that its sample can't support, and a counter
//! that was never sampled, is `null`, never a number. The writers read nothing but this.

use lab_archive::model::Environment;
use lab_asked::Counting;
use lab_plan::Decides;
use lab_trial::format::plural_count;
use lab_trial::model::{Check, TrialAnalysis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::cells::CellSummary;
use super::comparison::{Comparison, Inference};
use super::cpu::CpuProfile;
use super::duet::Duet;
use super::line::{LineDifference, LoadLine, Scaling};
use super::profiles::ProfileDifference;
use super::published::PublishedTable;
use super::unmeasured::{Demand, Exploratory, Reason, Seen};
use super::waits::Waiting;
use crate::sample::{CellSample, Fate};

/// The `schema` of `result.json`.
pub const RESULT_SCHEMA: &str = "plimsoll.result/1";

/// The results of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Analysis {
    /// The schema of this file: `plimsoll.result/1`.
    pub schema: &'static str,
    /// The study.
    pub study: StudyFacts,
    /// The machine.
    pub environment: Environment,
    /// The main result in words.
    pub headline: String,
    /// The answer to the study's question about its comparisons; absent if the study asks none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The counts that decide the outcome of the run.
    pub summary: Summary,
    /// Checks of the measurement as a whole.
    pub checks: Vec<Check>,
    /// The failed checks of trials, each once over all trials: first those that make a trial invalid, then warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// All complete trials, in the order in which they ran.
    pub trials: Vec<TrialAnalysis>,
    /// The cells, each over its valid trials, in the order of the study's levels.
    pub cells: Vec<CellSummary>,
    /// The results of the planned trials of each planned cell. Absent if all are valid, and for a search, which chooses
    /// its trials as it runs.
    #[serde(skip_serializing_if = "all_valid")]
    pub samples: Vec<CellSample>,
    /// Comparisons of cells with their baselines: the baseline differs in one factor, of which it has the first level.
    pub comparisons: Vec<Comparison>,
    /// Comparisons of each factor's levels with its first, over all cells; empty with fewer than two factors.
    pub main_effects: Vec<Comparison>,
    /// Comparisons of the control with its cell, the same system under two labels; empty without a control.
    pub control: Vec<Comparison>,
    /// The rules by which the comparisons are judged.
    pub inference: Inference,
    /// The trials that ran at the same time; absent unless the study asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duet: Option<Duet>,
    /// The maximum number of users that the system sustains, of the first cell that was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_line: Option<LoadLine>,
    /// The load lines of all cells that were searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_lines: Vec<LoadLine>,
    /// Comparisons of the load lines with the first one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_line_differences: Vec<LineDifference>,
    /// The scaling of throughput; present if users alone vary, over at least six levels from one user on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usl: Option<Scaling>,
    /// The CPU time of the system by function, for each cell with a profile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_profiles: Vec<CpuProfile>,
    /// The functions that differ between each cell and its baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_differences: Vec<ProfileDifference>,
    /// The waits of the system's threads.
    #[serde(flatten)]
    pub waiting: Waiting,
    /// The system's own counters.
    #[serde(flatten)]
    pub counting: Counting,
    /// The findings, in sentences.
    pub findings: Vec<String>,
    /// Published figures beside those of this run.
    pub published: Vec<PublishedTable>,
    /// The counts of invalid trials.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// Comparisons of CPU per transaction if only times were disturbed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<Demand>,
    /// Comparisons of cells by blocks that are complete but include invalid trials.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exploratory: Vec<Exploratory>,
}

fn all_valid(samples: &[CellSample]) -> bool {
    let is_valid = |one: &CellSample| one.count(Fate::Valid) == one.planned();
    samples.iter().all(is_valid)
}

/// The study.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StudyFacts {
    /// The short name.
    pub name: String,
    /// The title, in one line.
    pub title: String,
    /// The question and its background; may be empty.
    pub about: String,
    /// The name of the workload.
    pub workload: String,
    /// The SHA-256 of the meaning of the workload, in hex: equal in runs whose users do the same.
    pub workload_sha256: String,
    /// The SHA-256 of the study file's bytes, in hex; `null` if the archive holds no study file.
    pub file_sha256: Option<String>,
    /// The seed of all randomness.
    pub seed: u64,
    /// The speed of the run; 1 is real time.
    pub speed: f64,
    /// The time when the run started, RFC 3339.
    pub started: String,
    /// The `--set` overrides, as given.
    pub overrides: Vec<(String, String)>,
    /// The measure that decides comparisons; absent if the study names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decides: Option<Decides>,
    /// Whether the plan fixes the request rate. Throughput then follows the plan, and decides nothing by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fixed_rate: bool,
    /// How the two variants ran, and why; absent without two variants, and for runs of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairing: Option<HowPaired>,
    /// The limits of checks that the study sets, in words: `other_programs 40 % (20 % unless set)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits_set: Vec<String>,
    /// The names of the varied factors, in file order.
    pub factors: Vec<String>,
    /// The names of the session's steps, in session order, each once.
    pub steps: Vec<String>,
    /// The steps whose requests the seed does not fix: they contain the time of day, a signature with a random part, or
    /// data that users share.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseeded_steps: Vec<String>,
}

/// How two variants ran, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HowPaired {
    /// Whether they ran at the same time.
    pub duet: bool,
    /// Whether `duet: auto` chose this.
    pub auto: bool,
    /// The reason.
    pub why: String,
}

impl HowPaired {
    /// `Both variants ran at the same time (\`duet: auto\`): …`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let how = match self.duet {
            true => "Both variants ran at the same time, as a duet",
            false => "The variants ran one after the other, not as a duet",
        };
        let auto = if self.auto { " (`duet: auto`)" } else { "" };
        format!("{how}{auto}: {}.", self.why)
    }
}

/// The numbers of trials, and their results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// The outcome of the run as a whole.
    pub outcome: Outcome,
    /// Trials in the plan.
    pub planned: usize,
    /// Planned trials that ended, with any result.
    pub complete: usize,
    /// Planned trials that are valid, at any attempt.
    pub valid: usize,
    /// Planned trials that ended and are invalid.
    pub invalid: usize,
    /// Attempts beyond the first, of all trials together.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: usize,
    /// Planned trials without a valid attempt whose last attempt is invalid for a reason outside system and generator;
    /// a resumed run repeats them.
    #[serde(skip_serializing_if = "is_zero")]
    pub disturbed: usize,
    /// Trials whose system under test failed; they are also invalid.
    pub system_failures: usize,
    /// Trials that `abort_on` or a script ended; they are also invalid. Not counted for a search, which overloads the system on
    /// purpose.
    #[serde(skip_serializing_if = "is_zero")]
    pub aborted: usize,
    /// Planned trials whose last preparation failed; they are also invalid.
    #[serde(skip_serializing_if = "is_zero")]
    pub preparation_failures: usize,
    /// The cell whose trials, at least two, all ended before their load: its system can't start or can't be prepared,
    /// which ends a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unstarted: Option<String>,
    /// Checks that warn, over all trials and of the run as a whole.
    pub warnings: usize,
    /// Thresholds that were judged, over valid trials.
    pub thresholds: usize,
    /// Thresholds that failed, over valid trials.
    pub thresholds_failed: usize,
    /// Cells that ran but have no valid trial.
    pub cells_without_valid_trial: usize,
    /// The minimum part of its planned load that a valid trial had; `null` if each had all of it, and for a search,
    /// which exceeds it. More than 1 if a delay led to more load than planned.
    pub least_part_of_load: Option<f64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if asks for it"
)]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The outcome of a run: the first of these, in this order, that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The system under test failed in a trial.
    SystemFailed,
    /// The preparation of a trial and of its repeat failed.
    PreparationFailed,
    /// A cell that ran has no valid trial, or nothing ran.
    TooFewValidTrials,
    /// A search ended without an answer.
    SearchNotFinished,
    /// The study asks for a verdict, and there is none, or it is inconclusive.
    CouldNotTell,
    /// A variant is worse than the first one in a deciding measure, beyond noise and by a relevant difference.
    Regression,
    /// A threshold failed in a valid trial, or `abort_on` or a script ended a trial.
    ThresholdFailed,
    /// None of these.
    Ok,
}

impl Summary {
    /// Returns true if the system exceeded a limit: a threshold, or one of `abort_on`.
    #[must_use]
    pub fn is_beyond_limit(&self) -> bool {
        self.thresholds_failed > 0 || self.aborted > 0
    }
}

impl Analysis {
    /// Returns true if any cell has published figures beside its own.
    #[must_use]
    pub fn has_published(&self) -> bool {
        self.published.iter().any(|table| !table.entries.is_empty())
    }

    /// The note on published figures if the run was sped up; `None` at speed 1.
    #[must_use]
    pub fn speed_note(&self) -> Option<String> {
        speed_note(self.study.speed)
    }

    /// The protocol of the users, if they asked for another version of HTTP than 1.1.
    #[must_use]
    pub fn http_note(&self) -> Option<String> {
        let asked: Vec<_> = self
            .trials
            .iter()
            .filter_map(|trial| trial.connections)
            .collect();
        let opened: u64 = asked.iter().map(|of| of.opened).sum();
        let http2: u64 = asked.iter().map(|of| of.http2).sum();
        let which = match asked.len() {
            count if count == self.trials.len() => String::new(),
            1 => " in 1 trial".to_owned(),
            count => format!(" in {count} trials"),
        };
        let connections = |count| plural_count(count, "connection");
        match (opened, http2) {
            (0, _) => None,
            (1, 1) => Some(format!("The users spoke HTTP/2{which}, on one connection.")),
            (_, 0) => Some(format!(
                "The server took HTTP/1.1{which}, on all of {}, although users could speak HTTP/2.",
                connections(opened)
            )),
            _ if opened == http2 => Some(format!(
                "The users spoke HTTP/2{which}, on {}.",
                connections(opened)
            )),
            _ => Some(format!(
                "The users spoke HTTP/2{which} on {http2} of {}, and HTTP/1.1 on the others.",
                connections(opened)
            )),
        }
    }

    /// The note on runs in which users accepted any certificate.
    #[must_use]
    pub fn certificates_note(&self) -> Option<String> {
        let unchecked = |trial: &&TrialAnalysis| {
            let said = trial.system_settings.get(lab_archive::CERTIFICATES);
            said.is_some_and(|said| said == lab_archive::UNCHECKED)
        };
        let count = self.trials.iter().filter(unchecked).count();
        let which = match count {
            0 => return None,
            _ if count == self.trials.len() => String::new(),
            1 => " in 1 trial".to_owned(),
            count => format!(" in {count} trials"),
        };
        Some(format!(
            "Certificates were not checked{which} (`insecure: true`): the users spoke with whoever \
             answered, and checking takes time that is missing from these figures."
        ))
    }
}

/// The note on published figures at a speed other than 1.
pub fn speed_note(speed: f64) -> Option<String> {
    ((speed - 1.0).abs() > 1e-9)
        .then(|| format!("at --speed {speed}: load per user is {speed} times the report's"))
}
