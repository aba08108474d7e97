//! Live views of a run in progress.
//!
//! ```text
//! RUN ─lab/archive: Follow→ State (pure) ─┬→ page: parts of HTML ─┐
//! trials that are complete ─analysis──────┘→ metrics: OpenMetrics ┴→ server
//! ```
//!
//! All data is read from the growing archive: the measuring process sends nothing, and nothing is read without a
//! viewer. Only complete trials are judged, and not here.

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
