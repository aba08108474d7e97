//! The analysis of a run, as `result.json` has it (schema `plimsoll.result/1`).
//!
//! Times end in `_ms`, rates in `_per_s`. A quantile that its sample can't support, and a counter
//! that was never sampled, is `null`, never a number. Whoever writes a report reads nothing but this.

mod answer;
mod attempts;
mod cells;
mod comparison;
mod duet;
mod figures;
mod line;
mod published;
mod run;
mod runs;
mod transfer;
mod trial;
mod unmeasured;

pub use answer::{Answer, Decision};
pub use attempts::{Attempt, Attempts, BEYOND};
pub use cells::{CellSummary, StepSummary, TimesSummary};
pub use comparison::{Claim, Comparison, Difference, Inference, Measure, RunSpread, SpreadBasis};
pub use duet::{Duet, DuetBlock, SideEffect};
pub use figures::{Counters, ErrorCounts, ErrorExamples, Estimate};
pub use line::{LineDifference, LineLevel, LoadLine, SafeLine, Scaling, UslPoint};
pub use published::{AsIs, Entry, PublishedTable};
pub use run::{Analysis, Outcome, RESULT_SCHEMA, StudyFacts, Summary};
pub use runs::{COMPARISON_SCHEMA, RunComparison, RunFacts, RunOutcome, SetupDifference};
pub use transfer::{PublishedTransfer, Transfer, TransferSummary};
pub use trial::{
    Arrivals, Bound, Check, CheckOutcome, Connections, Figure, Generator, Lateness, Point,
    ProbeCounts, Sample, Series, StepAnalysis, ThresholdResult, Times, TrialAnalysis, Verdict,
};
pub use unmeasured::{Beyond, Demand, Exploratory, Range, Reason, Seen};

pub(crate) use run::speed_note;
pub(crate) use trial::DELIVERED;
