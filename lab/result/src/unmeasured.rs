//! Results of a disturbed run: why its trials are invalid, and which results remain valid. No threshold, no gate, and
//! no average reads any of it.

use lab_plan::Cell;
use lab_plan::checks::{Cause, CheckId, Unit};
use lab_trial::model::CheckOutcome;
use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::Measure;

/// A failed check, over all trials in which it failed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reason {
    /// The check.
    pub check: CheckId,
    /// The effect on these trials: `invalid` or `warn`.
    pub outcome: CheckOutcome,
    /// The trials, in the order in which they ran.
    pub trials: Vec<u32>,
    /// Where the cause lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The figure that exceeds its limit in all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Beyond>,
    /// The evidence from these trials together, with the limit.
    pub evidence: String,
    /// The programs that the check names, the busiest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<String>,
    /// The remedy.
    pub advice: String,
}

/// A figure that exceeds its limit, over trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Beyond {
    /// The name of the limit, as a study may set it.
    pub key: &'static str,
    /// The unit of all figures here.
    pub unit: Unit,
    /// The minimum over the trials.
    pub least: f64,
    /// The maximum over the trials.
    pub most: f64,
    /// The limit that is exceeded.
    pub limit: f64,
}

/// The counts of a cell's invalid trials. A disturbed machine affects counts and the cost of a transaction less than
/// times. These figures are not measurements.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Seen {
    /// The level of each factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// Always false: nothing here is a measurement.
    pub measured: bool,
    /// The number of invalid trials that ran to their end.
    pub trials: usize,
    /// Whether the cell has no valid trial.
    pub is_all: bool,
    /// Transactions per trial, ramp included.
    pub transactions: Range,
    /// Errors per trial, ramp included.
    pub errors: Range,
    /// The mean response time of a trial in its hold, in ms.
    pub mean_response_ms: Option<Range>,
    /// The 95th percentile of a trial's response times in its hold, in ms.
    pub p95_response_ms: Option<Range>,
    /// The CPU time of the system per transaction, in ms.
    pub cpu_ms_per_transaction: Option<Range>,
    /// The disk traffic of the system's processes per transaction, in KB (1024 bytes).
    pub disk_kb_per_transaction: Option<Range>,
}

/// The minimum and maximum over trials or blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Range {
    /// The minimum.
    pub least: f64,
    /// The maximum.
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

/// A comparison of cells by block that includes invalid trials: a hint for further work, never a result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Exploratory {
    /// Always false: nothing here is a measurement.
    pub measured: bool,
    /// The baseline.
    pub a: String,
    /// The cell beside the baseline.
    pub b: String,
    /// The measure.
    pub metric: Measure,
    /// The step whose mean response time is compared; absent if the figure is of the whole trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The number of blocks with a trial of both, valid or not.
    pub blocks: usize,
    /// The number of blocks in which *b* was lower.
    pub lower: usize,
    /// The number of blocks in which *b* was higher.
    pub higher: usize,
    /// The range of *b* ÷ *a* over blocks.
    pub ratio: Range,
    /// The p-value of a two-sided sign test of this row alone; ties are excluded.
    pub sign_p: f64,
}

/// The CPU cost of a transaction, compared over blocks whose times were disturbed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Demand {
    /// The comparisons, of CPU per transaction only.
    pub comparisons: Vec<super::comparison::Comparison>,
    /// The reasons why some pairs are not compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
}
