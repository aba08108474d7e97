//! The validated model of a study, from which a plan is made. The model of its workload is in `lab-workload`.
//!
//! Every value here has passed validation; an invalid state can't be written. The model is independent of
//! files and lines (see `read`), of time, and of sockets.

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

/// The maximum number of repeats of a disturbed trial, unless a study sets another.
pub const REPEATS: u32 = 3;

/// The equivalence margin (a relative difference), where a study names none.
pub const SMALLEST_DIFFERENCE: f64 = 0.02;
