//! The counters of systems, as in `result.json`. Values are per transaction.

use schemars::JsonSchema;
use serde::Serialize;

use crate::series::shortened;
use crate::units::{is_time, value};

/// What systems count of themselves, over a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Counting {
    /// What the systems count of themselves, per transaction, where the study asks them: the largest counters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CountedSeries>,
    /// The same of each cell beside its baseline: which counters differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask_differences: Vec<AskDifference>,
}

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

impl CountedSeries {
    /// Returns the largest of its means.
    #[must_use]
    pub fn size(&self) -> f64 {
        let means = self.cells.iter().filter_map(|cell| cell.per_transaction);
        means.map(f64::abs).fold(0.0, f64::max)
    }

    /// Returns the texts of its labels, shortened to this number of letters.
    #[must_use]
    pub fn subject(&self, letters: usize) -> String {
        let labels: Vec<&str> = self.labels.iter().map(|(_, text)| text.as_str()).collect();
        shortened(&labels.join(", "), letters)
    }

    /// Returns the value in a cell, with its unit.
    #[must_use]
    pub fn figure(&self, cell: &CountedMean) -> Option<String> {
        let mean = cell.per_transaction?;
        Some(value(mean, self.unit.as_deref(), None))
    }
}

/// Returns the largest counters of an ask, at most `most`: times first, and the same number of each column.
#[must_use]
pub fn largest<'a>(all: &'a [CountedSeries], ask: &str, most: usize) -> Vec<&'a CountedSeries> {
    let of_ask = || all.iter().filter(|one| one.ask == ask);
    let mut columns: Vec<&str> = Vec::new();
    let is_of_time = |one: &&CountedSeries| is_time(one.unit.as_deref());
    let others = of_ask().filter(|one| !is_of_time(one));
    for one in of_ask().filter(is_of_time).chain(others) {
        if !columns.contains(&one.column.as_str()) {
            columns.push(&one.column);
        }
    }
    let each = (most / columns.len().max(1)).max(2);
    let of_column = columns.into_iter().flat_map(|column| {
        let mut own: Vec<&CountedSeries> = of_ask().filter(|one| one.column == column).collect();
        own.sort_by(|a, b| b.size().total_cmp(&a.size()));
        own.truncate(each);
        own
    });
    of_column.take(most).collect()
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
