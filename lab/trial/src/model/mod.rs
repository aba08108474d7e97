//! The results of a trial in `result.json`.

mod attempts;
mod figures;
mod parts;
mod times;
mod transfer;
mod trial;

pub use attempts::{Attempt, Attempts, BEYOND, Measured};
pub use figures::{Counters, ErrorCounts, ErrorExamples};
pub use parts::{MeasureAnalysis, QueueAnalysis, TagAnalysis, TransactionAnalysis};
pub use times::{Bound, Lateness, Times};
pub use transfer::Transfer;
pub use trial::{
    Arrivals, Check, CheckOutcome, Connections, Figure, Generator, PartCounters, Point,
    PopulationAnalysis, PopulationPlan, ProbeCounts, Sample, Series, SlowRequest, StageAnalysis,
    StagePlan, StepAnalysis, ThresholdResult, TrialAnalysis, Verdict,
};
