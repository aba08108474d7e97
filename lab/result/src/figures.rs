//! Figures that all parts of an analysis share.

use lab_stats::mean_interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A mean over the valid trials of a cell, with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The mean over trials.
    pub mean: f64,
    /// The lower end of the 95 % interval; `null` for a single trial.
    pub low: Option<f64>,
    /// The upper end of the 95 % interval; `null` for a single trial.
    pub high: Option<f64>,
}

impl Estimate {
    /// The estimate from one value per trial; a trial without a value leaves the cell without one.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
        let interval = mean_interval(&values)?;
        Some(Self {
            mean: interval.mean,
            low: interval.bounds.map(|(low, _)| low),
            high: interval.bounds.map(|(_, high)| high),
        })
    }
}
