//! Assigns numbers to messages without any: messages older than the numbers, and messages that an
//! earlier version has written since, while both ran side by side.
//!
//! A folder counts its messages with numbers. If the count equals the number of messages, there is
//! nothing to do, and no entry is read.

use std::ops::ControlFlow;
use std::sync::Arc;

use groupware_store::{Batch, Snapshot};

use crate::mailbox::{self, Changes, find_in};
use crate::numbers::{self, UidCounters};
use crate::{Counts, Folder, MailError, Unid, keys};

/// The messages of a folder without numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unnumbered {
    /// The folder.
    pub folder: Folder,
    /// The messages, the oldest first.
    pub messages: Vec<Unid>,
}

/// Returns the folders of an account with messages that have no numbers. An earlier version may have
/// removed as many numbered messages as it added messages without a number, which leaves the
/// counters equal: with `thorough`, all entries are read.
///
/// # Errors
/// Errors of the store.
pub fn unnumbered(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    thorough: bool,
) -> Result<Vec<Unnumbered>, MailError> {
    let (from, to) = keys::COUNTS;
    let mut folders = Vec::new();
    snapshot.scan(mailbox, from, Some(to), usize::MAX, &mut |key, record| {
        let (counts, handed) = (
            Counts::decode(&record.value),
            UidCounters::decode(&record.value),
        );
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
            // Ids sort from the newest message on.
            messages.reverse();
            found.push(Unnumbered { folder, messages });
        }
    }
    Ok(found)
}

/// Returns the messages of a folder without numbers, and the number of the others.
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

/// Assigns numbers to those of these messages that still have none.
///
/// # Errors
/// Errors of the store.
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

/// Corrects the count of a folder's messages with numbers, once all have one: an earlier version
/// has made unlogged changes. Clients with an older state of the folder must resynchronize.
///
/// Reads all entries, which takes a while in a large folder. Concurrent changes update the counters
/// themselves; only a concurrent correction conflicts.
///
/// # Errors
/// Errors of the store.
pub fn settle(snapshot: &dyn Snapshot, mailbox: &str, folder: Folder) -> Result<Batch, MailError> {
    let mut batch = Batch::new();
    let key = keys::counts(folder);
    let Some(record) = snapshot.get(mailbox, &key)? else {
        return Ok(batch);
    };
    let (without, with) = look(snapshot, mailbox, folder)?;
    let told = UidCounters::decode(&record.value).numbered;
    if without.is_empty() && with != told {
        match snapshot.get(mailbox, keys::SETTLED)? {
            Some(settled) => {
                batch.assert_revision(mailbox, keys::SETTLED, settled.revision);
            }
            None => {
                batch.assert_absent(mailbox, keys::SETTLED);
            }
        }
        // A folder that is deleted concurrently stays deleted.
        batch
            .assert_exists(mailbox, key.clone())
            .put(mailbox, keys::SETTLED, "")
            .add(mailbox, key, [0, 0, 0, 0, with - told]);
        numbers::write_unknown(&mut batch, mailbox);
    }
    Ok(batch)
}
