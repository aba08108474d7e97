//! Copies of a data folder as of one moment, made while a server uses it, and put back.
//!
//! ```text
//! DIR/backups/{time}/groupware.sqlite   all records as of that moment
//! DIR/backups/{time}/manifest.json      what belongs to it, and the hash of the records
//! DIR/content/ab/cdef…                  the content of attachments, once for all backups
//! DIR/backups/{time}.partial            one that was not finished: of no use, removed by the next
//! ```
//! A backup gets its name by a rename, when all that it has is durable and was checked: one that has
//! its name is whole, whenever the machine stopped. Not in it: the admin token, which a server makes
//! anew, and the bytes of uploads under way, which their clients send again.
//!
//! A data folder that keeps its changes leads further: a backup is brought to any later moment by them,
//! with the content that it still has.
//!
//! Knows no server, users' rights, or network. The caller tells the time.

mod compact;
mod error;
mod files;
mod kept;
mod look;
mod manifest;
mod restore;
mod take;

pub use compact::compact;
pub use error::BackupError;
pub use groupware_store::{Compacted, OpenError, ReplayError, Replayed};
pub use kept::{Kept, kept};
pub use look::{Backups, Look, check, list};
pub use manifest::{Manifest, Records};
pub use restore::{Forward, Restored, restore, restore_at};
pub use take::{ObjectPlace, Taken, prune, take, take_from};
