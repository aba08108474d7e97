//! The waits of the system's threads, in `result.json`. Times are of all threads together, in microseconds per
//! transaction (or per second, as `per` says). A wait is not a part of the response time, unless the thread served that
//! request.

use lab_profile::waits::Summary;
use lab_profile::waits::differences::WaitDifference;
use lab_profile::waits::scheduling::{GroupLatency, SchedulingDifference};
use schemars::JsonSchema;
use serde::Serialize;

use lab_plan::Cell;

/// The waits of the system's threads, and their waits for a core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Waiting {
    /// The waits of the system's threads, for each cell in which they were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<CellWaits>,
    /// The waits that differ between each cell and its baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wait_differences: Vec<WaitDifference>,
    /// The scheduling latency, for each cell in which it was recorded: the time that ready threads waited for a core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduling: Vec<CellScheduling>,
    /// The scheduling latency of each cell compared with its baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduling_differences: Vec<SchedulingDifference>,
}

/// The waits of a cell's threads: means over its valid trials with recorded waits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellWaits {
    /// The level of each factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// The number of users at the top of the ramp.
    pub users: u32,
    /// The number of valid trials with recorded waits; all figures here are of these.
    pub trials: usize,
    /// The mean response time of these trials, in ms. Waits are not parts of it.
    pub response_mean_ms: Option<f64>,
    /// The waits.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The scheduling latency of a cell, over all its valid trials: the time that ready threads waited for a core.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellScheduling {
    /// The level of each factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// The number of users at the top of the ramp.
    pub users: u32,
    /// The number of valid trials with recorded latencies.
    pub trials: usize,
    /// The distribution for each group of threads, in µs: groups with the most waits first, at most 50.
    pub groups: Vec<GroupLatency>,
}
