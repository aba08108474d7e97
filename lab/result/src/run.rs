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

/// Everything that a report says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Analysis {
    /// [`RESULT_SCHEMA`].
    pub schema: &'static str,
    /// What was asked.
    pub study: StudyFacts,
    /// The machine.
    pub environment: Environment,
    /// One sentence that says what came out.
    pub headline: String,
    /// The answer to what the study asks of its comparisons; `None` where it asks nothing of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Counts that decide how a run ends.
    pub summary: Summary,
    /// Judgements on the measurement as a whole.
    pub checks: Vec<Check>,
    /// Checks of trials that did not pass, each once over all trials: what makes a trial invalid, then
    /// what warns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// All complete trials, in the order they ran.
    pub trials: Vec<TrialAnalysis>,
    /// One per cell, over its valid trials, in the order of the study's levels.
    pub cells: Vec<CellSummary>,
    /// What became of the planned trials of each planned cell. Left out where all are valid, and of a
    /// search, whose trials are chosen as it goes.
    #[serde(skip_serializing_if = "all_valid")]
    pub samples: Vec<CellSample>,
    /// Cells beside their baselines: a cell that differs in one factor, by its first level.
    pub comparisons: Vec<Comparison>,
    /// Levels of each factor beside its first, over all cells; empty with fewer than two factors.
    pub main_effects: Vec<Comparison>,
    /// The control beside its cell, the same system under two labels; empty without a control.
    pub control: Vec<Comparison>,
    /// By which rule they are judged.
    pub inference: Inference,
    /// Trials that ran at the same time, where the study asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duet: Option<Duet>,
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
    /// The CPU time of the system by function, for each cell with a profile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_profiles: Vec<CpuProfile>,
    /// The same of each cell beside its baseline: which functions differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_differences: Vec<ProfileDifference>,
    /// What the threads of the system waited for.
    #[serde(flatten)]
    pub waiting: Waiting,
    /// What the systems count of themselves.
    #[serde(flatten)]
    pub counting: Counting,
    /// Sentences that the numbers support.
    pub findings: Vec<String>,
    /// Published figures beside ours.
    pub published: Vec<PublishedTable>,
    /// What was counted in trials that are no measurements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// CPU per transaction, compared where only times were spoiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<Demand>,
    /// Cells beside each other where blocks are complete but no measurements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exploratory: Vec<Exploratory>,
}

fn all_valid(samples: &[CellSample]) -> bool {
    let is_valid = |one: &CellSample| one.count(Fate::Valid) == one.planned();
    samples.iter().all(is_valid)
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// The measure that comparisons are decided by, where the study names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decides: Option<Decides>,
    /// Whether the plan fixes how much is sent: throughput is the plan's then, and decides nothing by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fixed_rate: bool,
    /// How its two variants ran, and why; `None` without two variants, and of older runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairing: Option<HowPaired>,
    /// Limits of checks that the study sets itself, each in words: `other_programs 40 % (20 % unless
    /// set)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits_set: Vec<String>,
    /// Names of the varied factors, in file order.
    pub factors: Vec<String>,
    /// Names of the session's steps, in session order, each once.
    pub steps: Vec<String>,
    /// Steps whose requests the seed does not fix: they have the time of day, a signature with a
    /// random part, or what users share.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseeded_steps: Vec<String>,
}

/// How two variants ran, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HowPaired {
    /// Whether they ran at the same time.
    pub duet: bool,
    /// Whether `duet: auto` chose that.
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

/// How many trials there are, and how they ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// What the run as a whole comes to.
    pub outcome: Outcome,
    /// Trials in the plan.
    pub planned: usize,
    /// Trials of the plan that ended, in whatever way.
    pub complete: usize,
    /// Trials of the plan that are measurements, at whichever attempt.
    pub valid: usize,
    /// Trials of the plan that are not.
    pub invalid: usize,
    /// Attempts beyond the first, all trials together.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: usize,
    /// Trials of the plan without a measurement, the last time for a reason outside system and
    /// generator: a resumed run repeats them.
    #[serde(skip_serializing_if = "is_zero")]
    pub disturbed: usize,
    /// Trials whose system under test failed; they are invalid too.
    pub system_failures: usize,
    /// Trials that `abort_on` ended; they are invalid too. Not counted of a search, where the load is what was
    /// too much.
    #[serde(skip_serializing_if = "is_zero")]
    pub aborted: usize,
    /// Trials of the plan that could not be prepared, the last time; they are invalid too.
    #[serde(skip_serializing_if = "is_zero")]
    pub preparation_failures: usize,
    /// The cell whose trials all ended before their load, at least two of them: its system can't start or
    /// can't be prepared, which ends a run.
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
    /// The least part of its planned load that a valid trial had, where any had not all of it (or,
    /// delayed, more than that); not of a search, which goes beyond it.
    pub least_part_of_load: Option<f64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if asks for it"
)]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What a run comes to. The first that holds counts, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The system under test failed in a trial.
    SystemFailed,
    /// A trial could not be prepared, nor its repeat.
    PreparationFailed,
    /// A cell that ran has no valid trial, or nothing ran.
    TooFewValidTrials,
    /// A search ended before it had its answer.
    SearchNotFinished,
    /// The study asks for a verdict, and there is none, or the noise leaves it open.
    CouldNotTell,
    /// A variant is worse than the first one in what decides, beyond noise and by more than matters.
    Regression,
    /// A threshold failed in a valid trial, or `abort_on` ended one.
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
