//! Extends the lists of imported series as time passes, so that they don't end at the initial expansion window.

use std::ops::ControlFlow;

use groupware_store::{Batch, Snapshot};

use crate::mailbox::{self, Changes, HeldEntry};
use crate::object::Imported;
use crate::{CalendarError, keys};

/// The maximum number of entries to check for one batch.
const ENTRIES: usize = 200;
/// The maximum bytes of objects to check for one batch.
const BYTES: usize = 4 << 20;

/// The changes to write for some entries of a calendar.
#[derive(Debug, Default)]
pub struct Extension {
    /// The extended lists of objects; empty if there are none.
    pub batch: Batch,
    /// The number of extended objects.
    pub count: usize,
    /// The last entry that was checked; `None` if there are no more.
    pub last: Option<String>,
}

/// Extends the lists of imported objects after the entry of a UID, or from the first on. Lists are renewed if they are
/// nearly over or were made by an earlier version that read objects differently.
///
/// # Errors
/// The store's errors. Unreadable records are skipped.
pub fn extend(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    after: Option<&str>,
    now: i64,
) -> Result<Extension, CalendarError> {
    let (mut from, to) = keys::entries();
    if let Some(after) = after {
        from = keys::entry(after);
        // The first key after it.
        from.push(0);
    }
    let uid_at = keys::entry("").len();
    let (mut extension, mut changes) = (Extension::default(), Changes::default());
    let (mut bytes, mut count) = (0, 0);
    mailbox::scan(snapshot, mailbox, (&from, &to), ENTRIES, |key, record| {
        bytes += record.value.len();
        count += 1;
        let uid = String::from_utf8_lossy(key.get(uid_at..).unwrap_or_default()).into_owned();
        // The integrity check reports unreadable records.
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
