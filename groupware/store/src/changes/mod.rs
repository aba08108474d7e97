//! A log of all changes: by it, a copy of the records can be brought forward to any later moment.
//!
//! Each transaction is written to the log, and synced, before it is committed. The log is a folder of
//! files; whoever keeps it removes the oldest ([`segments`]). What a record means, the log doesn't know.

/// The folder of the log in a data folder.
pub const CHANGES_FOLDER: &str = "changes";

mod log;
mod record;
mod replay;
mod segment;

pub(crate) use log::{ChangeLog, Opened, Position};
pub use record::{Change, Group, read_group};
pub use replay::{ReplayError, Replayed, replay};
pub use segment::{Segment, segments};
