//! From an archive to what people and programs read.
//!
//! [`analyse`] turns a run's archive into an [`Analysis`]; the writers in [`mod@write`] turn that into
//! text. Both are pure: the same archive gives the same report, on any machine, at any time. Nothing
//! here runs, measures, or opens a file.

mod analysis;
mod format;
pub mod model;
mod model_comparison;
mod model_line;
mod model_published;
mod model_runs;
mod model_transfer;
mod model_trial;
pub mod write;

pub use analysis::{CannotCompare, Judgement, ReportError, analyse, compare_runs, judge_trial};
pub use model::Analysis;
