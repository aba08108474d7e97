//! What systems count, as `result.json` has it. Values are per transaction.

use schemars::JsonSchema;
use serde::Serialize;

/// A counter of the system itself, over the valid trials of each cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CountedSeries {
    /// Its name as a measure: `ask.NAME.COLUMN{labels}`.
    pub measure: String,
    /// The name of the ask.
    pub ask: String,
    /// The column or metric.
    pub column: String,
    /// Names and texts of its labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// Its unit, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// One for each cell, in their order.
    pub cells: Vec<CountedMean>,
}

/// The mean of a counter in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CountedMean {
    /// The cell.
    pub label: String,
    /// Counted per transaction, the mean over trials; `None` where no trial has a value.
    pub per_transaction: Option<f64>,
    /// Trials with a value.
    pub trials: usize,
}

/// What a system counts in one cell beside its baseline, paired by block. Exploratory: it never decides how a run ends.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AskDifference {
    /// The name of the ask.
    pub ask: String,
    /// The baseline.
    pub a: String,
    /// The cell that is compared with the baseline.
    pub b: String,
    /// Blocks in which both were counted.
    pub blocks: usize,
    /// Counters that were tested together, of this pair of cells.
    pub tested: usize,
    /// Counters that differ beyond noise, the largest part of their column first.
    pub findings: Vec<CounterDifference>,
    /// The reason why nothing is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// All of this in words.
    pub sentences: Vec<String>,
}

/// A counter that differs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CounterDifference {
    /// The column or metric.
    pub column: String,
    /// Names and texts of its labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// Its unit, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Mean of *a*.
    pub mean_a: f64,
    /// Mean of *b*.
    pub mean_b: f64,
    /// Mean of *b* less mean of *a*.
    pub difference: f64,
    /// Its interval; `None` where too few blocks bound it.
    pub interval: Option<(f64, f64)>,
    /// p over all counters of the ask and all pairs of cells.
    pub p: f64,
    /// The difference as a part of all counters of this column in *a*; `None` where these counted nothing.
    pub part: Option<f64>,
}
