//! The comparison of two runs, as `plimsoll compare --format json` prints it (schema `plimsoll.comparison/1`).

use lab_analysis::model::{Answer, Claim, Comparison, LineDifference};
use serde::Serialize;

/// The `schema` of a comparison of runs.
pub const COMPARISON_SCHEMA: &str = "plimsoll.comparison/1";

/// The results of a comparison.
#[derive(Debug, Clone, Serialize)]
pub struct RunComparison {
    /// [`COMPARISON_SCHEMA`].
    pub schema: &'static str,
    /// The baseline.
    pub a: RunFacts,
    /// The candidate.
    pub b: RunFacts,
    /// Further runs of the baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_a: Vec<RunFacts>,
    /// Further runs of the candidate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_b: Vec<RunFacts>,
    /// Earlier runs of the same study on the same machine, only used for the spread between runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<RunFacts>,
    /// Its outcome.
    pub outcome: RunOutcome,
    /// In one sentence.
    pub headline: String,
    /// The answer by the deciding measures, over all cells; `None` if only load lines are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Differences between the runs besides their results.
    pub differences: Vec<SetupDifference>,
    /// Cells of one run that the other lacks.
    pub unmatched: Vec<String>,
    /// Cells of the first run whose trials, or their counterparts, are missing for a reason that bars a good answer,
    /// and the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Cells of both runs, measure by measure; `factor` is the cell.
    pub comparisons: Vec<Comparison>,
    /// Cells in which operations took longer than the load's time limit: bounds aren't compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounded: Vec<String>,
    /// True if blocks of all runs are paired: the runs have the same plan.
    pub paired: bool,
    /// The pairing in words, and why; `None` without a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairing: Option<String>,
    /// The spread between runs of one build, its source, and its meaning; `None` without a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_runs: Option<String>,
    /// Load lines of both runs, if both searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_lines: Vec<LineDifference>,
    /// The equivalence margin: ratios within this part of 1 don't matter.
    pub smallest_relevant: f64,
    /// The minimum detectable effects by the controls of both runs, by measure.
    pub claims: Vec<Claim>,
    /// Confidence of the intervals of ratios.
    pub confidence: f64,
    /// Comparisons with a verdict.
    pub judged: usize,
    /// The deciding ones among them, which are tested together; the others are tested together as well.
    pub deciding: usize,
    /// The fewest trials of a cell in each run for a verdict, if both have as many.
    pub least_trials: usize,
}

/// One of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFacts {
    /// Name of the study.
    pub study: String,
    /// Its title.
    pub title: String,
    /// Start time, RFC 3339.
    pub started: String,
    /// Version of the program.
    pub plimsoll_version: String,
    /// Valid trials.
    pub valid: usize,
    /// All of them.
    pub trials: usize,
}

/// A difference between the setups of two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupDifference {
    /// Its name.
    pub what: &'static str,
    /// In the baseline.
    pub a: String,
    /// In the other.
    pub b: String,
    /// True if it may explain the results.
    pub matters: bool,
}

/// The outcome of a comparison of runs. Green means shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// A cell of the first run has too few valid trials for a verdict, there or in the second run; trials or
    /// figures are missing, or a load line.
    TooFewValidTrials,
    /// The second run is worse in a measure, beyond noise and by more than the smallest relevant
    /// difference.
    Regression,
    /// The noise permits a relevant difference in a measure that decides.
    CouldNotTell,
    /// In every measure that decides the second run is shown to be better, equal, or not worse.
    Ok,
}

impl RunComparison {
    /// Differences of the setup that may explain the results.
    pub fn that_matter(&self) -> impl Iterator<Item = &SetupDifference> {
        self.differences.iter().filter(|one| one.matters)
    }
}
