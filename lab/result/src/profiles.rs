//! The comparison of the profiles of two cells in `result.json`. Times are CPU time of the system per transaction, in
//! microseconds.

use lab_profile::Tree;
use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::Difference;

/// The profiles of a cell compared with its baseline's, paired by block. Exploratory: never decides how a run ends.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfileDifference {
    /// The baseline.
    pub a: String,
    /// The cell that is compared with the baseline.
    pub b: String,
    /// The number of blocks with a valid, profiled trial of both cells.
    pub blocks: usize,
    /// The mean number of samples per trial.
    pub samples: f64,
    /// The number of functions and call paths of this pair of cells that were tested together.
    pub tested: usize,
    /// The system's CPU time per transaction.
    pub cpu: CpuDifference,
    /// The factor *b* ÷ *a* that all functions have in common; absent if it is within noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common: Option<RatioInterval>,
    /// The functions that differ beyond noise, the largest difference first. Of functions that contain each other, only
    /// the most specific is listed.
    pub findings: Vec<FunctionDifference>,
    /// The functions whose time moved to another name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFunction>,
    /// All stacks that contain no finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<RestDifference>,
    /// The difference that four of five such studies show in a function of a percent, as a part of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// The call paths that differ beyond noise, used to colour the flame graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathDifference>,
    /// The reason why functions are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The calls of both cells, for the flame graph.
    #[serde(skip)]
    pub tree: Option<Tree>,
    /// The results in sentences.
    pub sentences: Vec<String>,
}

/// The CPU time of all functions together, in µs per transaction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CpuDifference {
    /// The mean of *a*.
    pub us_a: f64,
    /// The mean of *b*.
    pub us_b: f64,
    /// The mean of *b* minus the mean of *a*.
    pub us: f64,
    /// The interval of `us`; `null` if too few blocks bound it.
    pub us_interval: Option<(f64, f64)>,
}

/// A ratio *b* ÷ *a*.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RatioInterval {
    /// The geometric mean over blocks.
    pub ratio: f64,
    /// The interval of the ratio; `null` if too few blocks bound it.
    pub interval: Option<(f64, f64)>,
}

/// The samples of a function that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SamplesOf {
    /// The function's own code.
    Own,
    /// All stacks that contain the function.
    Total,
    /// All stacks that begin with one path.
    Path,
}

/// A function that differs beyond noise. Times are in µs per transaction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FunctionDifference {
    /// The name of the function.
    pub function: String,
    /// The samples that are compared.
    pub of: SamplesOf,
    /// The nearest function above it in nine tenths of the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
    /// The difference *b* minus *a*, without the common factor.
    pub us: f64,
    /// The interval of `us`; `null` if too few blocks bound it.
    pub us_interval: Option<(f64, f64)>,
    /// The p-value over all functions and paths of all pairs of cells.
    pub p: f64,
    /// The part of the difference in the function's own code.
    pub own_part: f64,
    /// The functions that it calls, with their parts of the difference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub callees: Vec<CalleePart>,
}

/// The part of a difference in a called function.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CalleePart {
    /// The name of the called function.
    pub function: String,
    /// Its part of the difference.
    pub part: f64,
}

/// The same work under two names: a function that was renamed, or inlined into its caller.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MovedFunction {
    /// The function whose time decreased.
    pub from: String,
    /// The function whose time increased.
    pub to: String,
    /// The caller of both, whose total is equal in both cells within noise.
    pub within: String,
    /// The decrease of the first function, in µs per transaction.
    pub us_less: f64,
    /// The increase of the second function, in µs per transaction.
    pub us_more: f64,
}

/// All stacks without a finding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RestDifference {
    /// The ratio *b* ÷ *a*.
    pub ratio: RatioInterval,
    /// The verdict.
    pub verdict: Difference,
}

/// A call path that differs beyond noise.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PathDifference {
    /// The functions of the path, the outermost first.
    pub path: Vec<String>,
    /// The difference *b* minus *a* in µs per transaction, without the common factor.
    pub us: f64,
}
