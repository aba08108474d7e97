//! Numbers for messages that have none: those that are older than numbers are, and those that a version before this one
//! has written since, while both were beside each other.
//!
//! A folder counts how many of its messages have numbers. Where these are as many as there are messages, nothing is to
//! be done, and nothing is read.

use std::ops::ControlFlow;
use std::sync::Arc;

use groupware_store::{Batch, Snapshot};

use crate::mailbox::{self, Changes, find_in};
use crate::numbers::{self, Handed};
use crate::{Counts, Folder, MailError, Unid, keys};

/// The messages of a folder that have no numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unnumbered {
    /// The folder.
    pub folder: Folder,
    /// The messages, the oldest first.
    pub messages: Vec<Unid>,
}

/// The folders of a mailbox in which not all messages have numbers, or seem to. A version before this one may have
/// taken as many numbers away as there are messages that it took in: whether it has, only a look at all of them tells,
/// which is `thorough`.
///
/// # Errors
/// The store's.
pub fn unnumbered(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    thorough: bool,
) -> Result<Vec<Unnumbered>, MailError> {
    let (from, to) = keys::COUNTS;
    let mut folders = Vec::new();
    snapshot.scan(mailbox, from, Some(to), usize::MAX, &mut |key, record| {
        let (counts, handed) = (Counts::decode(&record.value), Handed::decode(&record.value));
        let differs = i64::try_from(counts.messages) != Ok(handed.numbered);
        if differs || thorough {
            let name = std::str::from_utf8(&key[from.len()..]).ok();
            let folder = name.and_then(Folder::parse);
            folders.extend(folder.map(|folder| (folder, differs)));
        }
        ControlFlow::Continue(())
    })?;
    let mut found = Vec::new();
    for (folder, differs) in folders {
        let (mut messages, _) = look(snapshot, mailbox, folder)?;
        if differs || !messages.is_empty() {
            // Names are in order from the newest message on.
            messages.reverse();
            found.push(Unnumbered { folder, messages });
        }
    }
    Ok(found)
}

/// The messages of a folder that have no numbers, and how many have.
fn look(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
) -> Result<(Vec<Unid>, i64), MailError> {
    let (mut without, mut with) = (Vec::new(), 0);
    mailbox::scan(snapshot, mailbox, folder, None, usize::MAX, |key, value| {
        match crate::entry::Line::decode(key, value)?.numbers() {
            Some(_) => with += 1,
            None => without.extend(keys::unid_of(key)),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((without, with))
}

/// Gives those of these messages numbers that have none still.
///
/// # Errors
/// The store's.
pub fn number(
    snapshot: &dyn Snapshot,
    (mailbox, folder): (&str, Folder),
    messages: &[Unid],
    now_us: i64,
) -> Result<Batch, MailError> {
    let name: Arc<str> = mailbox.into();
    let mut changes = Changes::new(snapshot, now_us);
    for unid in messages {
        if let Some(held) = find_in(snapshot, mailbox, folder, *unid)?
            && held.entry.numbers.is_none()
        {
            changes.replace(&name, &held, folder, &held.entry);
        }
    }
    changes.into_batch()
}

/// Sets right how many messages of a folder have numbers, once all have: a version before this one has changed some
/// of them, and nobody knows how. Whoever knows the folder from before begins anew.
///
/// All messages are looked at, which takes a while in a large folder. What others change meanwhile they count
/// themselves, so that only who sets it right at the same moment, too, is in the way.
///
/// # Errors
/// The store's.
pub fn settle(snapshot: &dyn Snapshot, mailbox: &str, folder: Folder) -> Result<Batch, MailError> {
    let mut batch = Batch::new();
    let key = keys::counts(folder);
    let Some(record) = snapshot.get(mailbox, &key)? else {
        return Ok(batch);
    };
    let (without, with) = look(snapshot, mailbox, folder)?;
    let told = Handed::decode(&record.value).numbered;
    if without.is_empty() && with != told {
        match snapshot.get(mailbox, keys::SETTLED)? {
            Some(settled) => {
                batch.assert_revision(mailbox, keys::SETTLED, settled.revision);
            }
            None => {
                batch.assert_absent(mailbox, keys::SETTLED);
            }
        }
        // A folder that goes meanwhile stays away.
        batch
            .assert_exists(mailbox, key.clone())
            .put(mailbox, keys::SETTLED, "")
            .add(mailbox, key, [0, 0, 0, 0, with - told]);
        numbers::write_unknown(&mut batch, mailbox);
    }
    Ok(batch)
}
