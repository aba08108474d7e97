//! The comparison of the profiles of two cells in `result.json`. Times are CPU time of the system per transaction, in
//! microseconds.

use lab_profile::Tree;
use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::Difference;

/// The profiles of a cell beside those of its baseline, paired by block. Exploratory: it never decides how a run ends.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfileDifference {
    /// The baseline.
    pub a: String,
    /// The cell that is compared with the baseline.
    pub b: String,
    /// Blocks with a valid, profiled trial of both.
    pub blocks: usize,
    /// Samples of a trial, on average.
    pub samples: f64,
    /// Functions and call paths that were tested together, of this pair of cells.
    pub tested: usize,
    /// The system's CPU time per transaction.
    pub cpu: CpuDifference,
    /// The factor that all functions have in common, if it is beyond noise: *b* ÷ *a*.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common: Option<RatioInterval>,
    /// Functions that differ beyond noise, the largest difference first: of those that contain each other, the most
    /// specific.
    pub findings: Vec<FunctionDifference>,
    /// Functions whose time moved to another name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFunction>,
    /// All stacks that contain no finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<RestDifference>,
    /// The difference that four of five such studies show in a function of a percent, as a part of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// Call paths that differ beyond noise, for colours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathDifference>,
    /// The reason why functions are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The calls of both cells, for the flame graph.
    #[serde(skip)]
    pub tree: Option<Tree>,
    /// All of this in words.
    pub sentences: Vec<String>,
}

/// CPU time of all functions together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CpuDifference {
    /// Mean of *a*.
    pub us_a: f64,
    /// Mean of *b*.
    pub us_b: f64,
    /// Mean of *b* less mean of *a*.
    pub us: f64,
    /// Its interval; `None` where too few blocks bound it.
    pub us_interval: Option<(f64, f64)>,
}

/// A ratio *b* ÷ *a*.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RatioInterval {
    /// The geometric mean over blocks.
    pub ratio: f64,
    /// Its interval; `None` where too few blocks bound it.
    pub interval: Option<(f64, f64)>,
}

/// Which samples of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SamplesOf {
    /// The function's own code.
    Own,
    /// All stacks that contain it.
    Total,
    /// All stacks that begin with one path.
    Path,
}

/// A function that differs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FunctionDifference {
    /// Its name.
    pub function: String,
    /// Which of its samples.
    pub of: SamplesOf,
    /// The nearest function above it in nine tenths of the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
    /// *b* less *a*, the common factor taken out.
    pub us: f64,
    /// Its interval; `None` where too few blocks bound it.
    pub us_interval: Option<(f64, f64)>,
    /// p over all functions and paths of all pairs of cells.
    pub p: f64,
    /// The part of the difference that is in its own code.
    pub own_part: f64,
    /// Where the rest is: functions that it calls, with their part of the difference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub callees: Vec<CalleePart>,
}

/// A callee's part of a difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CalleePart {
    /// Its name.
    pub function: String,
    /// Its part.
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
    /// The decrease of the first function.
    pub us_less: f64,
    /// The increase of the second function.
    pub us_more: f64,
}

/// All stacks without a finding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RestDifference {
    /// *b* ÷ *a*.
    pub ratio: RatioInterval,
    /// The verdict.
    pub verdict: Difference,
}

/// A call path that differs beyond noise.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PathDifference {
    /// Functions, the outermost first.
    pub path: Vec<String>,
    /// *b* less *a*, the common factor taken out.
    pub us: f64,
}
