//! Accounts that were restored to an earlier state. They don't have the numbers assigned after
//! that state. Without a correction they would assign the same numbers to other messages and
//! changes, and clients that know the first ones would see no change.
//!
//! So a restore leaves a [`note`] in the data. A server that finds the note updates all accounts before it
//! accepts requests: each counts its changes from an unused number, and its folders get another UIDVALIDITY.
//! It works in slices ([`next_slice`]). Each slice records its progress in the note and asserts that no other
//! server has progressed meanwhile: a restarted server continues, and each slice is done by one server.

use std::sync::Arc;

use groupware_store::{Batch, Snapshot, StoreError};

use crate::numbers::Head;
use crate::{MailError, keys};

/// Version of the note's stored form.
const FORMAT: u8 = 1;
/// The maximum number of accounts of a slice.
const MAILBOXES: usize = 500;

/// Marks data as restored to an earlier state.
pub fn note() -> Batch {
    let mut batch = Batch::new();
    batch.put(keys::SHARED, keys::RESTORED, [FORMAT].to_vec());
    batch
}

/// Returns true if the data are marked as restored, and not all accounts were updated since.
///
/// # Errors
/// Errors of the store.
pub fn is_noted(snapshot: &dyn Snapshot) -> Result<bool, StoreError> {
    Ok(snapshot.get(keys::SHARED, keys::RESTORED)?.is_some())
}

/// Updates the next of these accounts, or removes the note if there are no more; `None` if there
/// is no note. `mailboxes` must be sorted by name.
///
/// # Errors
/// Errors of the store.
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
        // An account without a head has assigned no number, and starts at the second of its first change.
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

/// The last account that was updated, if there is one. If a note can't be read, all are updated:
/// twice does no harm.
fn done(value: &[u8]) -> Option<&str> {
    let name = value.strip_prefix(&[FORMAT])?;
    std::str::from_utf8(name)
        .ok()
        .filter(|name| !name.is_empty())
}
