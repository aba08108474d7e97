//! Two runs beside each other, as `plimsoll compare --format json` has them (schema
//! `plimsoll.comparison/1`).

use lab_analysis::model::{Answer, Claim, Comparison, LineDifference};
use serde::Serialize;

/// The `schema` of a comparison of runs.
pub const COMPARISON_SCHEMA: &str = "plimsoll.comparison/1";

/// Everything that is said of two runs.
#[derive(Debug, Clone, Serialize)]
pub struct RunComparison {
    /// [`COMPARISON_SCHEMA`].
    pub schema: &'static str,
    /// The baseline.
    pub a: RunFacts,
    /// What is compared with it.
    pub b: RunFacts,
    /// Further runs of the baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_a: Vec<RunFacts>,
    /// Further runs of what is compared with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_b: Vec<RunFacts>,
    /// Earlier runs of the same study on the same machine: they tell how far runs spread, and nothing
    /// else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<RunFacts>,
    /// What it comes to.
    pub outcome: RunOutcome,
    /// In one sentence.
    pub headline: String,
    /// By the measures that decide, over all cells; `None` where load lines alone are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// In what the two runs differ besides their results.
    pub differences: Vec<SetupDifference>,
    /// Cells of one run that the other has not.
    pub unmatched: Vec<String>,
    /// Cells of the first run whose trials, or those beside them, are missing for a reason that bars a good
    /// answer, and the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Cells of both runs, measure by measure; `factor` is the cell.
    pub comparisons: Vec<Comparison>,
    /// Cells in which operations took longer than the load's time limit: bounds aren't compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounded: Vec<String>,
    /// Whether blocks of all runs are paired: they were made by one plan.
    pub paired: bool,
    /// That in words, and why; `None` without a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairing: Option<String>,
    /// How far runs of one build spread, how that is known, and what it means; `None` without a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_runs: Option<String>,
    /// Load lines of both runs, where both searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_lines: Vec<LineDifference>,
    /// Ratios within this part of 1 don't matter to whoever asks.
    pub smallest_relevant: f64,
    /// What the controls of both runs leave to claim, by measure.
    pub claims: Vec<Claim>,
    /// Confidence of the intervals of ratios.
    pub confidence: f64,
    /// Comparisons with a verdict.
    pub judged: usize,
    /// Those of them that decide and are tested together; the others are tested together as well.
    pub deciding: usize,
    /// Trials of a cell that each run needs at least for a verdict, where both have as many.
    pub least_trials: usize,
}

/// One of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFacts {
    /// Name of the study.
    pub study: String,
    /// Its title.
    pub title: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// Version of the program that ran it.
    pub plimsoll_version: String,
    /// Valid trials.
    pub valid: usize,
    /// All of them.
    pub trials: usize,
}

/// Something in which two runs were set up differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupDifference {
    /// What.
    pub what: &'static str,
    /// In the baseline.
    pub a: String,
    /// In the other.
    pub b: String,
    /// Whether the results can't be told from it.
    pub matters: bool,
}

/// What a comparison of runs comes to. Green means shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// A cell of the first run has too few valid trials for a verdict, there or in the second run; trials or
    /// figures are missing, or a load line.
    TooFewValidTrials,
    /// The second run is worse in a measure, beyond noise and by more than the smallest relevant
    /// difference.
    Regression,
    /// The noise leaves room for a difference that matters, in a measure that decides.
    CouldNotTell,
    /// In every measure that decides the second run is shown to be better, equal, or not worse.
    Ok,
}

impl RunComparison {
    /// Differences of the setup that the results can't be told from.
    pub fn that_matter(&self) -> impl Iterator<Item = &SetupDifference> {
        self.differences.iter().filter(|one| one.matters)
    }
}
