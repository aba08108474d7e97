//! The validated model of a study: what a plan is made from. Its workload's is `lab-workload`'s.
//!
//! Every value here has passed validation; a wrong state can't be written. It knows nothing of
//! files and lines (see `load`), of time, or of sockets.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;
pub use lab_workload::{DEFAULT_DATES_FROM, Level, Step, Transfer, Workload};

/// A whole study: one file, one question.
#[derive(Debug, Clone)]
pub struct Study {
    /// Short name, `[a-z0-9-]+`; names the archive's folder.
    pub name: String,
    /// One line for the head of the report.
    pub title: String,
    /// The question and its background, in prose; may be empty.
    pub about: String,
    /// What the virtual users do, at speed 1 and with the workload's own parameters; that of a trial
    /// is [`Study::workload_with`] its parameters.
    pub workload: Arc<Workload>,
    /// The varied factors, in file order. Never empty levels.
    pub matrix: Vec<Factor>,
    /// The cells of a block, in file order.
    pub cells: Vec<Cell>,
    /// Number of blocks: how often each cell runs.
    pub trials: u32,
    /// Seed of all randomness.
    pub seed: u64,
    /// Judgements on the server.
    pub thresholds: Vec<Threshold>,
    /// Published figures to set beside ours.
    pub published: Vec<Published>,
    /// The order of cells in a block.
    pub order: Order,
    /// Day 0 of the date functions.
    pub dates_from: Date,
    /// The smallest relative difference that matters to whoever asks; a fraction.
    pub smallest_difference: f64,
    /// Whether the first of `cells` runs a second time in each block, as a control: the same under
    /// two labels, whose spread bounds what the study can claim.
    pub control: bool,
    /// Whether each trial also measures what the disk alone does with what its sessions carry.
    pub raw_baseline: bool,
    /// The search for the load line, instead of given numbers of users.
    pub find: Option<Find>,
    /// The system and load as written, still with references to factors; see [`crate::plan`].
    pub(crate) cell_template: crate::cell::CellTemplate,
    /// The workload as written, for compiling it with other parameters.
    pub(crate) workload_file: Arc<crate::file::WorkloadFile>,
}

impl Study {
    /// The workload at speed 1 with these parameters, those of a [`crate::plan::Trial`]: a parameter
    /// is a constant of the workload's templates, so each set of values has a workload of its own.
    /// What is missing has the workload's own value.
    ///
    /// # Errors
    /// Values that make no sense in the workload; those of a plan's trials do.
    pub fn workload_with(&self, parameters: &Cell) -> Result<Arc<Workload>, crate::LoadError> {
        let mut values = self.cell_template.parameters.defaults.clone();
        let known: Vec<String> = values.keys().cloned().collect();
        let given = parameters.iter().filter(|(name, _)| known.contains(name));
        values.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        if values == self.cell_template.parameters.defaults {
            return Ok(Arc::clone(&self.workload));
        }
        crate::load::workload_with(&self.workload_file, &values).map(Arc::new)
    }
}

/// The order in which a block runs its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// A new seeded order in each block, so that drift of the machine favours no cell.
    #[default]
    Shuffled,
    /// As the file lists them.
    Listed,
}

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
