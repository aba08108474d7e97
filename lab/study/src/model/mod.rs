//! The validated model of a study: what a plan is made from. Its workload's is `lab-workload`'s.
//!
//! Every value here has passed validation; a wrong state can't be written. It knows nothing of
//! files and lines (see `read`), of time, or of sockets.

mod study;

pub use lab_plan::checks;
pub use lab_plan::{
    Abort, Aggregate, Cell, Comparison, Decides, Factor, Find, Metric, Order, Pairing, Published,
    Threshold, VARIANT,
};
pub use lab_workload::{DEFAULT_DATES_FROM, Level, Step, Transfer, Workload};
pub use study::{Requires, Study, StudyWorkload};

/// Most trials of a plan.
pub const MAX_TRIALS: usize = 10_000;

/// How often a trial that was disturbed is repeated, where a study says nothing.
pub const REPEATS: u32 = 3;

/// The smallest relative difference that matters, where a study names none.
pub const SMALLEST_DIFFERENCE: f64 = 0.02;
