//! Messages that come into a mailbox as if they had come earlier: nobody sends them, nothing is added
//! to them, and no quota is asked.

use std::sync::Arc;

use bytes::Bytes;
use groupware_ids::ContentHash;
use groupware_store::{Batch, Snapshot};

use crate::mailbox::{self, Changes};
use crate::{Context, Decision, Entry, Folder, MailError, Marks, Unid, folders, keys};

/// A message to import.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The message, which is kept byte for byte.
    pub message: Bytes,
    /// When it came, microseconds since 1970.
    pub received_us: i64,
    /// Tells it apart from others of that moment.
    pub random: u128,
}

/// Puts messages into a folder of a mailbox, now. Whenever they came: a mailbox that is emptied and filled again has
/// other numbers than before.
///
/// # Errors
/// The store's.
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

/// Puts one message into a folder, unless it came there before: a message with these bytes that came
/// at this moment, of which it is the copy of this number, has one name in a folder, so that whoever
/// imports the same messages again changes nothing. One that is in another folder may be an equal one, or
/// this one, moved since: it is put into this folder, too, for nothing is to be lost. Whether it is new.
///
/// # Errors
/// A refusal if there is no such folder; the store's.
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
    // In place of those that a message of this name may have left behind.
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

/// What tells a message apart from others of its moment, and perhaps from an equal one of another folder: 64
/// bits that depend on all of its bytes.
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

/// The folder that people call so: a built-in one, or one of the owner's own.
///
/// # Errors
/// The store's.
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
