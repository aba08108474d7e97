//! A run as it goes on.
//!
//! ```text
//! RUN ─lab/archive: Follow→ State (pure) ─┬→ page: parts of HTML ─┐
//! trials that are complete ─analysis──────┘→ metrics: OpenMetrics ┴→ server
//! ```
//!
//! All of it comes from the archive as it grows, whoever writes it: nothing here is told by the process
//! that measures, and nothing is read until somebody looks. Judgement is of complete trials alone, and
//! not made here.

mod clock;
mod metrics;
mod page;
mod series;
mod server;
mod state;
mod trial;
mod watch;

pub use metrics::metrics;
pub use page::{Part, page, parts};
pub use server::{Live, LiveError, Reports, Token};
pub use state::{Mode, State};
pub use watch::{Analyse, Controls, Watch};
