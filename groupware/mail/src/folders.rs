//! Folders that the owner creates, renames, and deletes.

use std::sync::Arc;

use groupware_proto_mime::check_text;
use groupware_store::Batch;

use crate::mailbox::{self, Changes};
use crate::own_folders::stored;
use crate::{Context, Decision, Folder, MailError, Reason, Unid, keys, limits};

pub use crate::own_folders::{OwnFolder, own};

/// Creates a folder.
///
/// # Errors
/// A refusal if the name is empty, too long, or taken, or if there are too many folders.
pub fn create(context: &Context<'_>, name: &str) -> Result<Decision, MailError> {
    let there = own(context.snapshot, context.mailbox)?;
    if there.len() >= limits::FOLDERS {
        let message = format!("A mailbox has at most {} own folders.", limits::FOLDERS);
        return Err(MailError::refused(Reason::Conflict, message));
    }
    let name = check_name(&there, name)?;
    let mut batch = Batch::new();
    // Each folder has its own second of creation, even if it replaces another at once: it is the UIDVALIDITY.
    let made_s = change_list(context, &mut batch, |last_s| {
        let live = there
            .iter()
            .map(|folder| seconds(folder.unid.received_us()));
        let last_s = live.fold(last_s, i64::max);
        seconds(context.now_us).max(last_s.saturating_add(1))
    })?;
    let made_us = context.now_us.max(made_s.saturating_mul(1_000_000));
    let mut ids = context.ids;
    let unid = Unid::new(made_us, ids.take());
    batch.put(context.mailbox, keys::folder(unid), stored(name));
    Ok(Decision {
        batch,
        made: Some(unid),
        more: false,
    })
}

/// Renames a folder.
///
/// # Errors
/// As [`create`]; a refusal if the folder is missing.
pub fn rename(context: &Context<'_>, unid: Unid, name: &str) -> Result<Decision, MailError> {
    let mut there = own(context.snapshot, context.mailbox)?;
    let at = position(&there, unid)?;
    there.swap_remove(at);
    let name = check_name(&there, name)?;
    let mut batch = Batch::new();
    change_list(context, &mut batch, |last_s| last_s)?;
    batch
        .assert_exists(context.mailbox, keys::folder(unid))
        .put(context.mailbox, keys::folder(unid), stored(name));
    Ok(Decision {
        batch,
        made: Some(unid),
        more: false,
    })
}

/// Deletes a folder. Its messages move to the archive, some thousand at a time; the last batch
/// deletes the folder.
///
/// # Errors
/// A refusal if the folder is missing; errors of the store.
pub fn delete(context: &Context<'_>, unid: Unid) -> Result<Decision, MailError> {
    position(&own(context.snapshot, context.mailbox)?, unid)?;
    let folder = Folder::Own(unid);
    let limit = limits::SWEPT_AT_ONCE;
    let found = mailbox::newest(context.snapshot, context.mailbox, folder, limit)?;
    let mailbox: Arc<str> = context.mailbox.into();
    let mut changes = Changes::new(context.snapshot, context.now_us);
    for held in &found {
        changes.replace(&mailbox, held, Folder::Archive, &held.entry);
    }
    let more = found.len() == limit;
    let mut batch = changes.into_batch()?;
    if !more {
        // A concurrent move into the folder changes its counters and forces a new decision; a later
        // one finds the folder gone.
        let counts = keys::counts(folder);
        match context.snapshot.get(context.mailbox, &counts)? {
            Some(record) => batch.assert_revision(context.mailbox, counts.clone(), record.revision),
            None => batch.assert_absent(context.mailbox, counts.clone()),
        };
        batch
            .delete(context.mailbox, keys::folder(unid))
            .delete(context.mailbox, counts);
    }
    Ok(Decision {
        batch,
        made: None,
        more,
    })
}

/// Makes the batch fail if the list of own folders changes concurrently: names are unique and their
/// number is limited. The record holds the second of the last folder that was created, even if it
/// is deleted; `next` returns its new value.
fn change_list(
    context: &Context<'_>,
    batch: &mut Batch,
    next: impl FnOnce(i64) -> i64,
) -> Result<i64, MailError> {
    let (mailbox, key) = (context.mailbox, keys::FOLDER_LIST);
    let record = context.snapshot.get(mailbox, key)?;
    match &record {
        Some(record) => batch.assert_revision(mailbox, key, record.revision),
        None => batch.assert_absent(mailbox, key),
    };
    // Earlier versions stored nothing there.
    let last_s = record.and_then(|record| <[u8; 8]>::try_from(&*record.value).ok());
    let next_s = next(last_s.map_or(0, i64::from_le_bytes));
    batch.put(mailbox, key, next_s.to_le_bytes().to_vec());
    Ok(next_s)
}

fn seconds(us: i64) -> i64 {
    us / 1_000_000
}

/// Rejects an own folder that is missing, and makes the batch fail if it is deleted concurrently.
pub(crate) fn assert_there(
    context: &Context<'_>,
    batch: &mut Batch,
    folder: Folder,
) -> Result<(), MailError> {
    let Folder::Own(unid) = folder else {
        return Ok(());
    };
    let key = keys::folder(unid);
    if context.snapshot.get(context.mailbox, &key)?.is_none() {
        return Err(MailError::not_found("Folder", &unid.to_string()));
    }
    if !batch.is_empty() {
        batch.assert_exists(context.mailbox, key);
    }
    Ok(())
}

fn position(there: &[OwnFolder], unid: Unid) -> Result<usize, MailError> {
    let at = there.iter().position(|folder| folder.unid == unid);
    at.ok_or_else(|| MailError::not_found("Folder", &unid.to_string()))
}

fn check_name<'a>(there: &[OwnFolder], name: &'a str) -> Result<&'a str, MailError> {
    let name = name.trim();
    check_text("A folder's name", name, limits::FOLDER_NAME_BYTES)?;
    if name.is_empty() {
        return Err(MailError::bad_request("A folder needs a name."));
    }
    let is_taken = |other: &str| other.eq_ignore_ascii_case(name);
    let mut built_in = Folder::BUILT_IN.into_iter().filter_map(Folder::title);
    if there.iter().any(|folder| is_taken(&folder.name)) || built_in.any(is_taken) {
        let message = format!("There is a folder {name} already.");
        return Err(MailError::refused(Reason::Conflict, message));
    }
    Ok(name)
}
