//! The analysis of a run, as `result.json` has it (schema `plimsoll.result/1`), and the one rule for counting trials.
//!
//! Times end in `_ms`, rates in `_per_s`. A quantile that its sample can't support, and a counter
//! that was never sampled, is `null`, never a number. Reports read nothing but this.

mod answer;
mod cells;
mod comparison;
mod cpu;
mod duet;
mod figures;
mod line;
mod profiles;
mod published;
mod run;
pub mod sample;
mod transfer;
mod unmeasured;
mod waits;

pub use answer::{Answer, Decision};
pub use cells::{
    CellSummary, MeasureSummary, PopulationSummary, QueueSummary, StageSummary, StepSummary,
    TagSummary, TimesSummary, TransactionSummary,
};
pub use comparison::{
    Claim, Comparison, Difference, Inference, Measure, RunSpread, SpreadBasis, WorseAtMost,
};
pub use cpu::{CpuProfile, FunctionTime, ThreadTime};
pub use duet::{Duet, DuetBlock, LeftOut, SideEffect};
pub use figures::Estimate;
pub use lab_trial::model::*;
pub use line::{LineDifference, LineLevel, LoadLine, LowerBound, SafeLine, Scaling, UslPoint};
pub use profiles::{
    CalleePart, CpuDifference, FunctionDifference, MovedFunction, PathDifference,
    ProfileDifference, RatioInterval, RestDifference, SamplesOf,
};
pub use published::{AsIs, Entry, PublishedTable};
pub use run::{Analysis, HowPaired, Outcome, RESULT_SCHEMA, StudyFacts, Summary, speed_note};
pub use transfer::{PublishedTransfer, TransferSummary};
pub use unmeasured::{Beyond, Demand, Exploratory, Range, Reason, Seen};
pub use waits::{CellScheduling, CellWaits, Waiting};
