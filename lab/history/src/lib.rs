//! The runs of studies over time, from their `result.json`: a line per run, and the change points of their figures.
//!
//! ```text
//! result.json ─facts→ Recorded ┐
//! result.json ─facts→ Recorded ┴─history→ History: per study its runs, their series, change points
//! ```
//!
//! All is pure: the same results give the same history. Nothing here opens a file or renders anything.

mod facts;
mod history;
mod series;

pub use facts::Recorded;
pub use history::{Decisive, HISTORY_SCHEMA, History, RunLine, StudyHistory};
pub use series::{Change, Point, Series};
