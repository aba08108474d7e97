//! What is said of a trial, as `result.json` has it.

mod attempts;
mod figures;
mod transfer;
mod trial;

pub use attempts::{Attempt, Attempts, BEYOND, Measured};
pub use figures::{Counters, ErrorCounts, ErrorExamples};
pub use transfer::Transfer;
pub use trial::{
    Arrivals, Bound, Check, CheckOutcome, Connections, Figure, Generator, Lateness,
    MeasureAnalysis, PartCounters, Point, PopulationAnalysis, PopulationPlan, ProbeCounts, Sample,
    Series, SlowRequest, StageAnalysis, StagePlan, StepAnalysis, TagAnalysis, ThresholdResult,
    Times, TransactionAnalysis, TrialAnalysis, Verdict,
};
