//! The waits of the system's threads, in `result.json`. Times are of all threads together, in microseconds per
//! transaction (or per second, as `per` says). A wait is not a part of the response time, unless the thread served that
//! request.

use lab_profile::waits::Summary;
use lab_profile::waits::differences::WaitDifference;
use lab_profile::waits::scheduling::{GroupLatency, SchedulingDifference};
use schemars::JsonSchema;
use serde::Serialize;

use lab_plan::Cell;

/// What the threads of the system waited for, and how long for a core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Waiting {
    /// What the threads of the system waited for, for each cell where it was recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<CellWaits>,
    /// The same of each cell beside its baseline: which waits differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wait_differences: Vec<WaitDifference>,
    /// How long threads that were ready waited for a core, for each cell where it was recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduling: Vec<CellScheduling>,
    /// The same of each cell beside its baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduling_differences: Vec<SchedulingDifference>,
}

/// What the threads of a cell waited for: means over its valid trials with recorded waits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellWaits {
    /// Level by factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// Users at the top of the ramp.
    pub users: u32,
    /// Valid trials with recorded waits; only they count here.
    pub trials: usize,
    /// The mean response time of these trials, in ms. Waits are beside it, not parts of it.
    pub response_mean_ms: Option<f64>,
    /// The waits.
    #[serde(flatten)]
    pub summary: Summary,
}

/// How long threads that were ready waited for a core: over all valid trials of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellScheduling {
    /// Level by factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// Users at the top of the ramp.
    pub users: u32,
    /// Valid trials with recorded latencies.
    pub trials: usize,
    /// The distribution of each group of threads, in µs: those with the most waits first, 50 at most.
    pub groups: Vec<GroupLatency>,
}
