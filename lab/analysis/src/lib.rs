//! From an archive to an [`Analysis`]: figures, checks, verdicts, comparisons, the load line.
//!
//! [`analyse()`] judges a run, [`compare_runs`] two of them, [`judge_trial`] one trial of a search;
//! [`power`] tells what a study can show before it runs, [`fitness()`] whether a generator is fit to measure. All are pure: the same archive gives the
//! same analysis, on any machine, at any time. Nothing here runs, measures, opens a file, or lays
//! anything out.
//!
//! ```text
//! windows, histograms ─sums→ whole trial and hold ─┬─warmup→ figures
//! plan, record, monitor ───────────────────────────┼→ checks → verdict
//! study ───────────────────────────────────────────┴→ thresholds
//! trials ─cells→ means over valid trials ─→ comparisons, published figures, findings, headline
//! ```

mod analyse;
mod answer;
mod attempts;
mod capacity;
mod cells;
mod checks;
mod compare;
mod counters;
mod duet;
mod effects;
mod error;
mod findings;
mod fitness;
pub mod format;
mod limits_set;
mod line;
pub mod model;
mod number;
pub mod power;
mod predicted;
mod published;
mod repeated;
mod runs;
mod setup;
mod source;
mod sums;
mod thresholds;
mod trial;
mod unmeasured;
mod warmup;

pub use analyse::analyse;
pub use answer::verdict_words;
pub use error::ReportError;
pub use findings::most_loaded;
pub use fitness::{Fitness, fitness};
pub use line::{
    TrialJudgement, difference_sentence as line_difference_sentence, figure as load_line_figure,
    judge_trial, safe_words as safe_line_words,
};
pub use model::Analysis;
pub use runs::{CannotCompare, Runs, compare_runs};
