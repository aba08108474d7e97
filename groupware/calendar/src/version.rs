//! The version of an entry that a client saw.

use std::fmt;

use groupware_store::Snapshot;

use crate::mailbox::{self, HeldEntry};
use crate::{CalendarError, Reason};

/// Identifies the version of an entry. It contains the time because revisions of a restored store copy continue from an
/// older number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    revision: u64,
    modified: i64,
}

impl Version {
    pub(crate) fn of(held: &HeldEntry) -> Self {
        Self {
            revision: held.revision,
            modified: held.entry.event.modified,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}-{:x}", self.revision, self.modified)
    }
}

/// Rejects a request if the entry is none of the versions that the client `saw`.
///
/// # Errors
/// 404 if there is no such entry; 412 if its version differs.
pub fn require_seen(
    snapshot: &dyn Snapshot,
    (mailbox, uid): (&str, &str),
    saw: impl Fn(Version) -> bool,
) -> Result<(), CalendarError> {
    match saw(Version::of(&mailbox::require(snapshot, mailbox, uid)?)) {
        true => Ok(()),
        false => Err(CalendarError::refused(
            Reason::Changed,
            "This has changed since it was read: read it again.",
        )),
    }
}
