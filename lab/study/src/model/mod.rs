//! The validated model of a study: what a plan is made from. Its workload's is `lab-workload`'s.
//!
//! Every value here has passed validation; a wrong state can't be written. It knows nothing of
//! files and lines (see `read`), of time, or of sockets.

mod study;

use std::collections::BTreeMap;

pub use lab_workload::{DEFAULT_DATES_FROM, Level, Step, Transfer, Workload};
pub use study::Study;

/// The order in which a block runs its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// A new seeded order in each block, so that drift of the machine favours no cell.
    #[default]
    Shuffled,
    /// As the file lists them.
    Listed,
}

/// Most trials of a plan.
pub const MAX_TRIALS: usize = 10_000;

/// The name of the factor whose levels are the variants of a study.
pub const VARIANT: &str = "variant";

/// The smallest relative difference that matters, where a study names none.
pub const SMALLEST_DIFFERENCE: f64 = 0.02;

/// The search for the most users that the system carries within thresholds.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Find {
    /// Fewest users tried; at least one.
    pub min_users: u32,
    /// Most users tried.
    pub max_users: u32,
    /// What must hold for a level to be carried; at least one.
    pub subject_to: Vec<Threshold>,
    /// The search narrows until the levels on both sides of the line differ by no more than this
    /// fraction.
    pub resolution: f64,
    /// Trials at each of the two levels beside the line, in the end.
    pub repeats: u32,
}

/// One varied factor and its levels, in file order.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Name, as in `matrix:`.
    pub name: String,
    /// At least one level.
    pub levels: Vec<Level>,
}

/// One cell: level by factor name.
pub type Cell = BTreeMap<String, Level>;

/// A judgement on the server, as k6 spells it: `response_time: ["p(95) < 300ms"]`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Threshold {
    /// What is judged.
    pub metric: Metric,
    /// `None` = all steps.
    pub step: Option<String>,
    /// Which figure of it.
    pub aggregate: Aggregate,
    /// The comparison that must hold.
    pub comparison: Comparison,
    /// Milliseconds for times, a fraction for rates, per second for throughput.
    pub limit: f64,
    /// As written.
    pub text: String,
}

/// What a threshold judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// From the planned send where there is a plan.
    ResponseTime,
    /// From the actual send.
    ServiceTime,
    /// Errors ÷ (transactions + errors).
    ErrorRate,
    /// Transactions per second in the hold.
    Throughput,
}

/// A figure of a metric.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// `p(N)`, 0 < N < 100.
    Percentile(f64),
    /// `avg` or `mean`.
    Mean,
    /// `min`.
    Min,
    /// `max`.
    Max,
    /// `med`.
    Median,
    /// `rate`.
    Rate,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A CSV of published figures: its name and its text, `#` lines being its source.
#[derive(Debug, Clone)]
pub struct Published {
    /// File name without folder.
    pub name: String,
    /// The whole file.
    pub text: String,
}
