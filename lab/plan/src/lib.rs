//! The judging part of a run's `plan.json` (`plimsoll.plan/2`).
//!
//! The planner of a study writes it, the judge of a run reads it: neither needs the other, nor the files that people
//! write. Data only: nothing here reads, plans, or judges. The validity checks are [`checks`], with their limits.

mod abort;
pub mod checks;
mod decides;
mod duet;
mod plan;
mod profiling;
mod question;
mod search_end;
mod threshold;

pub use abort::Abort;
pub use decides::{Decides, Named, UnknownMeasure};
pub use duet::{Duet, MIN_DUET_BLOCKS, Pairing, Side};
pub use lab_counts::{Aggregate, Metric, Scope};
pub use lab_prediction::{
    Arrivals, PopulationPrediction, Prediction, Range, Span, StagePrediction, StepPrediction,
    TransactionPrediction,
};
pub use lab_workload::{
    ALL_CHECKS_MEASURE, CHECK_MEASURE, Level, LoadKind, LoadSpec, Need, Population, SCRIPT_STEP,
    Spacing, Stage, Transfer,
};
pub use plan::{Plan, SCHEMA, Search, Trial};
pub use profiling::{FramesWanted, PROFILE_BUDGET, Profiling, WaitsWanted};
pub use question::{
    Cell, Factor, Order, PopulationOutline, Published, Question, SessionOutline, SharedKind,
    SharedOutline, StepOutline, TagOutline, VARIANT, WorkloadOutline,
};
pub use search_end::{HowEnded, SearchEnd};
pub use threshold::{Comparison, Find, Threshold};
