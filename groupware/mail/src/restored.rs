//! Mailboxes that were put back as they were at an earlier moment. What was given out after that moment is not known
//! there: the same numbers would be given to other messages and changes, and whoever has seen the first ones would be
//! told that nothing has changed.
//!
//! So whoever puts data back leaves a [`note`] in it, and a server that finds the note goes through all mailboxes before
//! it takes requests: each counts its changes from a number that was never given out, and its folders have another
//! UIDVALIDITY. It does so in slices ([`next_slice`]), each of which says in the note how far it came, and asserts that
//! nobody else went on meanwhile: a server that was killed is gone on for, and of several servers one does each slice.

use std::sync::Arc;

use groupware_store::{Batch, Snapshot, StoreError};

use crate::numbers::Head;
use crate::{MailError, keys};

/// Version of the note's stored form.
const FORMAT: u8 = 1;
/// Most mailboxes of a slice.
const MAILBOXES: usize = 500;

/// Has data say that they are those of an earlier moment.
pub fn note() -> Batch {
    let mut batch = Batch::new();
    batch.put(keys::SHARED, keys::RESTORED, [FORMAT].to_vec());
    batch
}

/// Whether data say so, and not all mailboxes were gone through since.
///
/// # Errors
/// The store's.
pub fn is_noted(snapshot: &dyn Snapshot) -> Result<bool, StoreError> {
    Ok(snapshot.get(keys::SHARED, keys::RESTORED)?.is_some())
}

/// Has the next of these mailboxes count from new numbers, or takes the note away where there are no more; `None` where
/// there is no note. `mailboxes` are in the order of their names.
///
/// # Errors
/// The store's.
pub fn next_slice(
    snapshot: &dyn Snapshot,
    mailboxes: &[Arc<str>],
    now_s: i64,
) -> Result<Option<Batch>, MailError> {
    let Some(noted) = snapshot.get(keys::SHARED, keys::RESTORED)? else {
        return Ok(None);
    };
    let begin = match done(&noted.value) {
        Some(done) => mailboxes.partition_point(|mailbox| **mailbox <= *done),
        None => 0,
    };
    let rest = mailboxes.get(begin..).unwrap_or_default();
    let some = &rest[..rest.len().min(MAILBOXES)];
    let mut batch = Batch::new();
    batch.assert_revision(keys::SHARED, keys::RESTORED, noted.revision);
    let places: Vec<(&str, &[u8])> = some.iter().map(|name| (&**name, keys::HEAD)).collect();
    for (mailbox, record) in some.iter().zip(snapshot.get_many(&places)?) {
        // Who has none has given out nothing, and begins at the second in which it does.
        if let Some(record) = record {
            let by = Head::decode(&record.value).to_new_numbers(now_s);
            batch.add(Arc::clone(mailbox), keys::HEAD, by);
        }
    }
    match some.last() {
        Some(last) if some.len() < rest.len() => {
            let value = [&[FORMAT], last.as_bytes()].concat();
            batch.put(keys::SHARED, keys::RESTORED, value)
        }
        _ => batch.delete(keys::SHARED, keys::RESTORED),
    };
    Ok(Some(batch))
}

/// The last mailbox that was gone through, if there is one. Where a note can't be read, all are gone through, and twice
/// does no harm.
fn done(value: &[u8]) -> Option<&str> {
    let name = value.strip_prefix(&[FORMAT])?;
    std::str::from_utf8(name)
        .ok()
        .filter(|name| !name.is_empty())
}
