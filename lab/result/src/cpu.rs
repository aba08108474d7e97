//! Where the CPU time of the system goes, by the profiles of the trials.

use lab_plan::Cell;
use lab_profile::Tree;
use schemars::JsonSchema;
use serde::Serialize;

/// The CPU time of the system in one cell, by function: the merged profiles of its valid trials, over the hold after
/// warm-up.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CpuProfile {
    /// The level of each factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// The number of users at the top of the ramp.
    pub users: u32,
    /// The number of valid trials with a profile; all figures here are of these.
    pub trials: usize,
    /// The number of samples of these trials together.
    pub samples: u64,
    /// The mean CPU time of the system per transaction, in µs; `null` if no transaction was counted.
    pub us_per_transaction: Option<f64>,
    /// The functions with the most CPU time of their own, at most 100.
    pub functions: Vec<FunctionTime>,
    /// The number of sampled functions.
    pub functions_sampled: usize,
    /// The groups of threads with the most CPU time, the largest first, at most 50.
    pub threads: Vec<ThreadTime>,
    /// The calls by group of threads; for the flame graph.
    #[serde(skip)]
    pub tree: Tree,
}

/// The CPU time of a function, in percent of the cell's and in µs per transaction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FunctionTime {
    /// The demangled name.
    pub function: String,
    /// The base name of the source file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// CPU time in the function's own code, in percent of the cell's.
    pub own_percent: f64,
    /// CPU time in the function and its callees, in percent of the cell's; a stack counts once.
    pub total_percent: f64,
    /// CPU time in the function's own code, in µs per transaction.
    pub own_us: Option<f64>,
    /// CPU time in the function and its callees, in µs per transaction.
    pub total_us: Option<f64>,
}

/// The CPU time of a group of threads.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ThreadTime {
    /// The names of the threads without trailing digits, such as `http-*`.
    pub group: String,
    /// CPU time in percent of the cell's.
    pub percent: f64,
    /// CPU time in µs per transaction.
    pub us: Option<f64>,
}
