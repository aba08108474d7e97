//! Published figures beside ours, as `result.json` has them.

use lab_plan::Cell;
use schemars::JsonSchema;
use serde::Serialize;

use super::transfer::PublishedTransfer;

/// One file of published figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PublishedTable {
    /// File name.
    pub file: String,
    /// Its `#` lines: where the figures come from.
    pub source: Vec<String>,
    /// What a reader must know of every comparison in it.
    pub notes: Vec<String>,
    /// One per published figure that belongs to a cell of this study.
    pub entries: Vec<Entry>,
    /// Its rows, where they are about what sessions carried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<PublishedTransfer>,
    /// The file's figures as a table, where none of them belongs to a cell of this study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_is: Option<AsIs>,
    /// Parts of the file that could not be set beside anything, in sentences.
    pub left_out: Vec<String>,
}

/// Published figures as they are.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AsIs {
    /// Names of the columns, with units.
    pub heads: Vec<String>,
    /// A text per column.
    pub rows: Vec<Vec<String>>,
}

/// One published figure and ours.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// The cell it belongs to.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// `None` = the whole workload.
    pub step: Option<String>,
    /// The published column; for a step `response_mean_ms`.
    pub metric: String,
    /// The metric in words, with its unit.
    pub name: String,
    /// As published.
    pub published_text: String,
    /// The same as a number, where it is one.
    pub published: Option<f64>,
    /// Ours; `None` where there is no counterpart or no valid trial.
    pub ours: Option<f64>,
    /// Ours ÷ published.
    pub ratio: Option<f64>,
    /// What a reader must know of this comparison.
    pub note: Option<String>,
}
