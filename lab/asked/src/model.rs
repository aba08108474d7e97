//! The counters of systems, as in `result.json`. Values are per transaction.

use schemars::JsonSchema;
use serde::Serialize;

use crate::series::shortened;
use crate::units::{is_time, value};

/// The systems' own counters, over a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Counting {
    /// The systems' own counters, per transaction: the largest ones, if the study queries them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CountedSeries>,
    /// The counters that differ between each cell and its baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask_differences: Vec<AskDifference>,
}

/// A counter of the system itself, over the valid trials of each cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CountedSeries {
    /// The name as a measure: `ask.NAME.COLUMN{labels}`.
    pub measure: String,
    /// The name of the ask.
    pub ask: String,
    /// The column or the metric.
    pub column: String,
    /// The names and texts of the labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// The unit; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The means, one per cell, in the order of the cells.
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
    /// The label of the cell.
    pub label: String,
    /// The count per transaction, the mean over trials; `null` if no trial has a value.
    pub per_transaction: Option<f64>,
    /// The number of trials with a value.
    pub trials: usize,
}

/// A cell's counters compared with its baseline's, paired by block. Exploratory: never decides how a run ends.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AskDifference {
    /// The name of the ask.
    pub ask: String,
    /// The baseline.
    pub a: String,
    /// The cell that is compared with the baseline.
    pub b: String,
    /// The number of blocks with counters of both.
    pub blocks: usize,
    /// The number of counters of this pair of cells that were tested together.
    pub tested: usize,
    /// The counters that differ beyond noise, the largest part of their column first.
    pub findings: Vec<CounterDifference>,
    /// The reason why nothing is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The results in sentences.
    pub sentences: Vec<String>,
}

/// A counter that differs beyond noise.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CounterDifference {
    /// The column or the metric.
    pub column: String,
    /// The names and texts of the labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// The unit; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The mean of *a*.
    pub mean_a: f64,
    /// The mean of *b*.
    pub mean_b: f64,
    /// The mean of *b* minus the mean of *a*.
    pub difference: f64,
    /// The interval of the difference; `null` if too few blocks bound it.
    pub interval: Option<(f64, f64)>,
    /// The p-value over all counters of the ask and all pairs of cells.
    pub p: f64,
    /// The difference as a part of all counters of this column in *a*; `null` if these counted nothing.
    pub part: Option<f64>,
}
