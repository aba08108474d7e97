//! Lists of imported series, extended as time goes on, so that no series ends where it was listed when it came.

use std::ops::ControlFlow;

use groupware_store::{Batch, Snapshot};

use crate::mailbox::{self, Changes, HeldEntry};
use crate::object::Imported;
use crate::{CalendarError, keys};

/// Most entries that are looked at for one batch.
const ENTRIES: usize = 200;
/// Most bytes of objects that are looked at for one batch.
const BYTES: usize = 4 << 20;

/// What is to be written for some entries of a calendar.
#[derive(Debug, Default)]
pub struct Extension {
    /// Lists of objects that are extended. Empty if none has to be.
    pub batch: Batch,
    /// How many objects are extended.
    pub count: usize,
    /// The last entry that was looked at; none, and there are no more.
    pub last: Option<String>,
}

/// Decides on the lists of imported objects behind the entry of a UID, or from the first on: those whose lists are
/// nearly over, and those that an earlier version has read otherwise, are listed from now on.
///
/// # Errors
/// The store's. What can't be read is passed over.
pub fn extend(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    after: Option<&str>,
    now: i64,
) -> Result<Extension, CalendarError> {
    let (mut from, to) = keys::entries();
    if let Some(after) = after {
        from = keys::entry(after);
        // The first key behind it.
        from.push(0);
    }
    let uid_at = keys::entry("").len();
    let (mut extension, mut changes) = (Extension::default(), Changes::default());
    let (mut bytes, mut count) = (0, 0);
    mailbox::scan(snapshot, mailbox, (&from, &to), ENTRIES, |key, record| {
        bytes += record.value.len();
        count += 1;
        let uid = String::from_utf8_lossy(key.get(uid_at..).unwrap_or_default()).into_owned();
        // The check reports records that can't be read.
        if let Ok(Some(imported)) = Imported::decode(key, &record.value)
            && let Some(anew) = imported.listed_anew(&uid, &imported.owner, now)
            && let Some(entry) = imported.entry(&uid, None)
        {
            let held = HeldEntry {
                entry,
                revision: record.revision,
                bytes: record.value.len(),
            };
            changes.replace(mailbox, &uid, Some(&held), Some(&anew));
            extension.count += 1;
        }
        extension.last = Some(uid);
        match bytes >= BYTES || changes.is_full() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    let is_over = count < ENTRIES && bytes < BYTES && !changes.is_full();
    extension.last = extension.last.filter(|_| !is_over);
    extension.batch = changes.into_batch();
    Ok(extension)
}
