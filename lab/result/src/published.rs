//! Published figures beside ours, as `result.json` has them.

use lab_plan::Cell;
use schemars::JsonSchema;
use serde::Serialize;

use super::transfer::PublishedTransfer;

/// One file of published figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PublishedTable {
    /// The file name.
    pub file: String,
    /// The `#` lines of the file, which name the source of the figures.
    pub source: Vec<String>,
    /// Notes that apply to all comparisons with this file.
    pub notes: Vec<String>,
    /// The published figures that belong to a cell of this study.
    pub entries: Vec<Entry>,
    /// The rows of the file, if they describe data transfers of sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<PublishedTransfer>,
    /// The file's figures as a table; absent if any of them belongs to a cell of this study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_is: Option<AsIs>,
    /// The parts of the file that have no counterpart in this study, in sentences.
    pub left_out: Vec<String>,
}

/// Published figures as published.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AsIs {
    /// The names of the columns, with units.
    pub heads: Vec<String>,
    /// The rows, each with one text per column.
    pub rows: Vec<Vec<String>>,
}

/// A published figure beside the figure of this run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// The cell that the figure belongs to.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// The step; `null` for the whole workload.
    pub step: Option<String>,
    /// The published column; `response_mean_ms` for a step.
    pub metric: String,
    /// The metric in words, with its unit.
    pub name: String,
    /// The published figure, as published.
    pub published_text: String,
    /// The published figure as a number; `null` if it is none.
    pub published: Option<f64>,
    /// The figure of this run; `null` without a counterpart or without a valid trial.
    pub ours: Option<f64>,
    /// The ratio of `ours` to `published`.
    pub ratio: Option<f64>,
    /// A note on this comparison.
    pub note: Option<String>,
}
