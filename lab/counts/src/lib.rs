//! The requests to a system and their outcomes: one set of types from the recorder to the report.
//!
//! The recorder fills [`StepWindow`]s; generators send them, the archive keeps their [`StepCounts`] as JSON and
//! their [`StepTimes`] as histograms, and analyses add them up again. [`Attempts`] holds all of this for one
//! [`Scope`], and [`figure`](Attempts::figure) is the only way from attempts to a number that a verdict reads. The
//! crate knows no clock, no files, and no limits.

mod attempts;
mod class;
mod hist;
mod metric;
mod scope;
mod step;
mod transaction;
mod under_way;
mod window;

pub use attempts::{Attempts, LONGEST, NoFigure, Value};
pub use class::{ErrorClass, ErrorCounts};
pub use hist::Hist;
pub use metric::{Aggregate, Metric};
pub use scope::Scope;
pub use step::{EVENTS, PHASES, StepCounts, StepTimes, StepWindow};
pub use transaction::TransactionWindow;
pub use under_way::{Outcome, TransactionSample, Transactions};
pub use window::WindowCounts;
