//! Where the CPU time of the system goes, by the profiles of the trials.

use lab_plan::Cell;
use lab_profile::Tree;
use schemars::JsonSchema;
use serde::Serialize;

/// The CPU time of the system in one cell, by function: the merged profiles of its valid trials, over the hold after
/// warm-up.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CpuProfile {
    /// Level by factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// Users at the top of the ramp.
    pub users: u32,
    /// Valid trials with a profile; only they count here.
    pub trials: usize,
    /// Samples of all of them.
    pub samples: u64,
    /// CPU time of the system per transaction, in µs: the mean of these trials. `None` where no transaction was counted.
    pub us_per_transaction: Option<f64>,
    /// The functions with the most CPU time of their own, 100 at most.
    pub functions: Vec<FunctionTime>,
    /// Functions that were sampled.
    pub functions_sampled: usize,
    /// Groups of threads, those with the most CPU time first, 50 at most.
    pub threads: Vec<ThreadTime>,
    /// The calls by group of threads; for the flame graph.
    #[serde(skip)]
    pub tree: Tree,
}

/// CPU time of a function, in percent of the cell's and in µs per transaction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FunctionTime {
    /// Its demangled name.
    pub function: String,
    /// The base name of its source file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// In its own code.
    pub own_percent: f64,
    /// In its own code and in what it called; a stack counts once.
    pub total_percent: f64,
    /// In its own code.
    pub own_us: Option<f64>,
    /// In its own code and in what it called.
    pub total_us: Option<f64>,
}

/// CPU time of a group of threads.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ThreadTime {
    /// The names of its threads without trailing digits, such as `http-*`.
    pub group: String,
    /// In percent of the cell's.
    pub percent: f64,
    /// In µs per transaction.
    pub us: Option<f64>,
}
