//! Results of a disturbed run: why its trials are invalid, and which results remain valid. No threshold, no gate, and
//! no average reads any of it.

use lab_plan::Cell;
use lab_plan::checks::{Cause, CheckId, Unit};
use lab_trial::model::CheckOutcome;
use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::Measure;

/// A check that did not pass, over all trials in which it didn't.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reason {
    /// The check.
    pub check: CheckId,
    /// What it does to these trials: `invalid` or `warn`.
    pub outcome: CheckOutcome,
    /// The trials, in the order they ran.
    pub trials: Vec<u32>,
    /// Where the cause lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The figure that is beyond its limit in all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Beyond>,
    /// What it found, over these trials together, with its limit.
    pub evidence: String,
    /// Programs that it names, the busiest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<String>,
    /// What to do about it.
    pub advice: String,
}

/// A figure beyond its limit, over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Beyond {
    /// The limit's name, as a study may set it.
    pub key: &'static str,
    /// Of all that follows.
    pub unit: Unit,
    /// Least over the trials.
    pub least: f64,
    /// Most over the trials.
    pub most: f64,
    /// What it is beyond.
    pub limit: f64,
}

/// What was counted in the trials of a cell that are no measurements. Counts and what a transaction
/// costs are less touched by a disturbed machine than times; they are seen, not measured.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Seen {
    /// Level by factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// Always false: nothing here is a measurement.
    pub measured: bool,
    /// Invalid trials that ran to their end.
    pub trials: usize,
    /// Whether no trial of the cell is a measurement.
    pub is_all: bool,
    /// Of a trial, ramp included.
    pub transactions: Range,
    /// Of a trial, ramp included.
    pub errors: Range,
    /// Mean response time of a trial, in its hold.
    pub mean_response_ms: Option<Range>,
    /// 95th percentile of the response times of a trial, in its hold.
    pub p95_response_ms: Option<Range>,
    /// CPU of the system per transaction.
    pub cpu_ms_per_transaction: Option<Range>,
    /// Disk traffic of the system's processes per transaction.
    pub disk_kb_per_transaction: Option<Range>,
}

/// Least and most over trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Range {
    /// Least.
    pub least: f64,
    /// Most.
    pub most: f64,
}

impl Range {
    /// The range of these values; `None` without any.
    #[must_use]
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        values.fold(None, |range: Option<Self>, value| {
            let (least, most) = range.map_or((value, value), |range| (range.least, range.most));
            Some(Self {
                least: least.min(value),
                most: most.max(value),
            })
        })
    }
}

/// Cells beside each other by block, invalid trials included: what to look at next, never a result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Exploratory {
    /// Always false: nothing here is a measurement.
    pub measured: bool,
    /// The baseline.
    pub a: String,
    /// What is beside it.
    pub b: String,
    /// What is looked at.
    pub metric: Measure,
    /// The step, where it is the step's mean response and not the trial's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Blocks that have both, measurements or not.
    pub blocks: usize,
    /// Blocks in which *b* was lower.
    pub lower: usize,
    /// Blocks in which *b* was higher.
    pub higher: usize,
    /// b ÷ a, over blocks.
    pub ratio: Range,
    /// Two-sided sign test of this row alone; ties are left out.
    pub sign_p: f64,
}

/// What a transaction cost the system, compared over blocks whose times were spoiled.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Demand {
    /// The comparisons, of CPU per transaction only.
    pub comparisons: Vec<super::comparison::Comparison>,
    /// Why some pairs are not compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
}
