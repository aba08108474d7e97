//! Imports messages with an earlier time of arrival: they have no sender to check, nothing is added
//! to them, and no quota applies.

use std::sync::Arc;

use bytes::Bytes;
use groupware_ids::ContentHash;
use groupware_store::{Batch, Snapshot};

use crate::mailbox::{self, Changes};
use crate::{Context, Decision, Entry, Folder, MailError, Marks, Unid, folders, keys};

/// A message to import.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The message, stored byte for byte.
    pub message: Bytes,
    /// The time of arrival, microseconds since 1970.
    pub received_us: i64,
    /// Distinguishes messages with the same time of arrival.
    pub random: u128,
}

/// Adds messages to a folder of an account. Numbers depend on the time of the import, not of
/// arrival: an account that is emptied and filled again has new ones.
///
/// # Errors
/// Errors of the store.
pub fn import(
    snapshot: &dyn Snapshot,
    (mailbox, folder): (&str, Folder),
    messages: impl Iterator<Item = Imported>,
    now_us: i64,
) -> Result<Batch, MailError> {
    let mailbox: Arc<str> = mailbox.into();
    let mut changes = Changes::new(snapshot, now_us);
    for new in messages {
        let unid = Unid::new(new.received_us, new.random);
        let entry = Entry::of(&new.message, new.received_us);
        changes.insert(&mailbox, folder, unid, &entry, &new.message);
    }
    changes.into_batch()
}

/// Adds one message to a folder unless it was imported there before, and returns whether it is new.
/// The bytes, the time of arrival, and the number of the copy determine its id within a folder, so
/// that a repeated import changes nothing. A message in another folder may be an equal one, or this
/// one after a move: it is added to this folder, too, so that none is lost.
///
/// # Errors
/// A refusal if the folder is missing; errors of the store.
pub fn import_once(
    context: &Context<'_>,
    folder: Folder,
    (message, received_us, copy): (&Bytes, i64, u64),
    (read, marks, words): (bool, Marks, &[String]),
) -> Result<(Decision, bool), MailError> {
    let find = |unid| mailbox::find(context.snapshot, context.mailbox, unid);
    let name = |within| Unid::new(received_us, name_bits(message, copy, within));
    let (mut unid, mut is_there) = (name(None), false);
    if let Some(held) = find(unid)? {
        is_there = held.folder == folder;
        if !is_there {
            unid = name(Some(folder));
            is_there = find(unid)?.is_some();
        }
    }
    if is_there {
        let there = Decision {
            made: Some(unid),
            ..Decision::default()
        };
        return Ok((there, false));
    }
    let mailbox: Arc<str> = context.mailbox.into();
    let mut changes = Changes::new(context.snapshot, context.now_us);
    let mut entry = Entry::of(message, received_us);
    (entry.read, entry.marks) = (read, marks);
    changes.insert(&mailbox, folder, unid, &entry, message);
    // Replaces keywords that an earlier message with this id may have left.
    changes.set_keywords(&mailbox, unid, words)?;
    let mut batch = changes.into_batch()?;
    batch.assert_absent(context.mailbox, keys::entry(folder, unid));
    folders::assert_there(context, &mut batch, folder)?;
    let made = Decision {
        batch,
        made: Some(unid),
        more: false,
    };
    Ok((made, true))
}

/// 64 bits that depend on all bytes of a message. They distinguish it from others of the same time,
/// and, if asked to, from an equal message in another folder.
fn name_bits(message: &[u8], copy: u64, within: Option<Folder>) -> u128 {
    let mut all = Vec::with_capacity(64);
    all.extend_from_slice(ContentHash::of(message).as_bytes());
    all.extend_from_slice(&copy.to_be_bytes());
    if let Some(folder) = within {
        all.extend_from_slice(folder.to_string().as_bytes());
    }
    let hash = ContentHash::of(&all);
    let (first, _) = hash
        .as_bytes()
        .split_first_chunk::<8>()
        .expect("a hash has 32 bytes");
    u128::from(u64::from_be_bytes(*first))
}

/// Returns the folder with this displayed name: a built-in one, or one of the owner's.
///
/// # Errors
/// Errors of the store.
pub fn folder_called(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    name: &str,
) -> Result<Option<Folder>, MailError> {
    let is_called = |title: &str| title.eq_ignore_ascii_case(name.trim());
    let mut built_in = Folder::BUILT_IN.into_iter();
    if let Some(folder) = built_in.find(|folder| folder.title().is_some_and(is_called)) {
        return Ok(Some(folder));
    }
    let own = folders::own(snapshot, mailbox)?;
    let found = own.into_iter().find(|folder| is_called(&folder.name));
    Ok(found.map(|folder| Folder::Own(folder.unid)))
}
