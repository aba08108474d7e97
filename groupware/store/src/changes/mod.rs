//! A log of all changes, which can bring a copy of the records forward to any later moment.
//!
//! Each transaction is written to the log, and synced, before it is committed. The log is a folder of files, and its
//! owner removes the oldest ([`segments`]). The log does not know what records mean.

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
