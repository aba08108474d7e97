//! One trial of an archive: its figures, checks, and thresholds, and its result for a run in progress. Pure: the same
//! archive gives the same judgement. It knows no other trial.
//!
//! ```text
//! windows, histograms ─sums→ whole trial and hold ─┬─warmup→ figures
//! plan, record, monitor ───────────────────────────┼→ checks → verdict
//! study ───────────────────────────────────────────┴→ thresholds
//! ```

mod attempts;
pub mod checks;
mod cores;
mod counters;
mod error;
pub mod format;
mod groups;
mod judgement;
mod measures;
pub mod model;
mod notes;
mod notesmark;
mod number;
mod populations;
mod predicted;
mod profile;
mod queues;
mod source;
mod stages;
mod sums;
mod tags;
mod thresholds;
mod transactions;
mod transfer;
mod trial;
mod waits;
mod warmup;

pub use cores::cores_of_trial;
pub use error::ReportError;
pub use judgement::{TrialJudgement, Used, failed, judge_trial, planned, suspects, used_of_shared};
pub use number::as_f64;
pub use profile::cpu_profile;
pub use source::{plan, step_names};
pub use transfer::kib_per_whole_ms;
pub use trial::{Input, Judged, alone, answers_by_part, figures, judge, own_time};
pub use waits::{TrialWaits, WaitsByTrial, waits, waits_of_valid};
pub use warmup::{Batch, Warmup, warmup};
