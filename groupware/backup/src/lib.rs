//! Copies of a data folder as of one moment, made while a server uses it, and restored.
//!
//! ```text
//! DIR/backups/{time}/groupware.sqlite   all records as of that moment
//! DIR/backups/{time}/manifest.json      what belongs to it, and the hash of the records
//! DIR/content/ab/cdef…                  the content of attachments, once for all backups
//! DIR/backups/{time}.partial            one that was not finished: of no use, removed by the next
//! ```
//! A backup is renamed to its final name when all its data is durable and checked. So a backup with such a name is
//! complete, whenever the machine stopped. It excludes the admin token, which a server makes anew, and the bytes of
//! unfinished uploads, which clients send again.
//!
//! A data folder that keeps its changes allows more: they bring a backup forward to any later moment, with the content
//! that is still kept.
//!
//! This crate knows no server, users' rights, or network. The caller supplies the time.

mod change_logs;
mod check;
mod compact;
mod error;
mod files;
mod manifest;
mod restore;
mod take;

pub use change_logs::{LogRange, change_logs};
pub use check::{BackupCheck, Backups, check, list};
pub use compact::compact;
pub use error::BackupError;
pub use groupware_store::{Compacted, OpenError, ReplayError, Replayed};
pub use manifest::{Manifest, Records};
pub use restore::{Forward, Restored, restore, restore_at};
pub use take::{ObjectPlace, Taken, prune, take, take_from};
