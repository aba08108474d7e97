//! From an archive to an [`Analysis`]: figures, checks, verdicts, comparisons, the load line.
//!
//! [`analyse()`] judges a run; [`power`] estimates what a study can show before it runs, [`fitness()`] whether a
//! generator is fit to measure. All are pure: the same archive gives the same analysis, on any machine, at any time.
//! This crate runs, measures, opens, and renders nothing.
//!
//! ```text
//! trials (lab_trial) ─cells→ means over valid trials ─→ comparisons, published figures, findings, headline
//! ```

mod analyse;
pub mod answer;
mod asked;
mod capacity;
mod cells;
mod checks;
mod compare;
mod cpu;
mod duet;
mod effects;
mod findings;
mod fitness;
mod left_out;
mod limits_set;
mod line;
pub mod power;
mod profiles;
mod published;
mod repeated;
mod unmeasured;
mod waits;

pub use analyse::{analyse, analyse_by};
pub use compare::margins;
pub use cpu::us_per_transaction;
pub use findings::most_loaded;
pub use fitness::{Fitness, fitness};
pub use lab_result as model;
pub use lab_result::{Analysis, sample};
pub use lab_trial::{ReportError, format};
pub use line::{
    difference_sentence as line_difference_sentence, figure as load_line_figure,
    regression as line_regression, safe_words as safe_line_words,
};
