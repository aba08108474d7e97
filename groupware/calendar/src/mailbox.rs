//! Reading entries, and the one place that writes them.
//!
//! An entry's list line, notice line, and notice pointer are functions of the entry. They are
//! written and removed here and nowhere else, under an assert on the entry's revision: whoever
//! decided on an older state loses the commit and decides again.

use std::{ops::ControlFlow, sync::Arc};

use groupware_store::{Batch, ReadError, Record, Snapshot, Soon};

use crate::{
    CalendarError, Event, domino,
    entry::{Entry, State},
    keys, limits,
};

/// An entry with the revision it was read at.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) entry: Entry,
    pub(crate) revision: u64,
    /// Size of the stored form.
    pub(crate) bytes: usize,
}

/// Reads an entry.
pub(crate) fn load(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
) -> Result<Option<Held>, CalendarError> {
    let key = keys::entry(uid);
    let Some(record) = snapshot.get(mailbox, &key)? else {
        return Ok(None);
    };
    Ok(Some(Held {
        entry: Entry::decode(&key, &record.value)?,
        revision: record.revision,
        bytes: record.value.len(),
    }))
}

/// Has what several mailboxes hold of a meeting fetched at once, where each look is a question to another
/// machine.
pub(crate) fn prefetch<'a>(
    snapshot: &dyn Snapshot,
    mailboxes: impl Iterator<Item = &'a str>,
    uid: &str,
) -> Result<(), CalendarError> {
    if snapshot.is_far() {
        let mut soon = Soon::default();
        for mailbox in mailboxes {
            soon.key(mailbox, keys::entry(uid));
        }
        snapshot.prefetch(&soon)?;
    }
    Ok(())
}

/// The same of several entries in one mailbox.
pub(crate) fn prefetch_all(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uids: &[String],
) -> Result<(), CalendarError> {
    if snapshot.is_far() {
        let mut soon = Soon::default();
        for uid in uids {
            soon.key(mailbox, keys::entry(uid));
        }
        snapshot.prefetch(&soon)?;
    }
    Ok(())
}

/// Reads an entry that must be there.
///
/// # Errors
/// 404 if it isn't.
pub(crate) fn require(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
) -> Result<Held, CalendarError> {
    load(snapshot, mailbox, uid)?.ok_or_else(|| CalendarError::not_found("Event", uid))
}

/// Reads the entry that a notice is about.
///
/// # Errors
/// 404 if there is no such notice, or it has been answered.
pub(crate) fn require_notice(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    id: &str,
) -> Result<Held, CalendarError> {
    let missing = || CalendarError::not_found("Notice", id);
    if id.len() > limits::UID_BYTES {
        return Err(missing());
    }
    let key = keys::notice(id);
    let pointer = snapshot.get(mailbox, &key)?.ok_or_else(missing)?;
    let uid =
        std::str::from_utf8(&pointer.value).map_err(|error| ReadError::corrupt(&key, error))?;
    load(snapshot, mailbox, uid)?
        .filter(|held| held.entry.notice() == Some(id))
        .ok_or_else(missing)
}

/// Visits records of a range until the visitor breaks.
pub(crate) fn scan(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    range: (&[u8], &[u8]),
    limit: usize,
    mut visit: impl FnMut(&[u8], Record) -> ControlFlow<()>,
) -> Result<(), CalendarError> {
    snapshot.scan(mailbox, range.0, Some(range.1), limit, &mut visit)?;
    Ok(())
}

/// A batch under construction.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    batch: Batch,
}

impl Changes {
    /// Puts `new` in place of `old` in a mailbox, or removes `old` if there is no `new`. The
    /// commit fails if the mailbox then holds something else than `old` under this UID.
    pub(crate) fn replace(
        &mut self,
        mailbox: &str,
        uid: &str,
        old: Option<&Held>,
        new: Option<&Entry>,
    ) {
        let partition: Arc<str> = mailbox.into();
        let key = keys::entry(uid);
        match old {
            Some(held) => self
                .batch
                .assert_revision(partition.clone(), key.clone(), held.revision),
            None => self.batch.assert_absent(partition.clone(), key.clone()),
        };
        let is_alike = old
            .zip(new)
            .is_some_and(|(old, new)| derive_alike(&old.entry, new));
        debug_assert!(
            !is_alike
                || old.map(|held| derived(mailbox, &held.entry))
                    == new.map(|entry| derived(mailbox, entry)),
            "what a record is derived from is compared"
        );
        let all = |entry: Option<&Entry>| match entry {
            Some(entry) if !is_alike => derived(mailbox, entry),
            _ => Vec::new(),
        };
        let (before, after) = (all(old.map(|held| &held.entry)), all(new));
        for (gone, _) in &before {
            if !after.iter().any(|(kept, _)| kept == gone) {
                self.batch.delete(partition.clone(), gone.clone());
            }
        }
        match new {
            Some(entry) => self.batch.put(partition.clone(), key, entry.encode()),
            None => self.batch.delete(partition.clone(), key),
        };
        for record in after {
            if !before.contains(&record) {
                self.batch.put(partition.clone(), record.0, record.1);
            }
        }
    }

    /// The finished batch.
    pub(crate) fn into_batch(self) -> Batch {
        self.batch
    }
}

/// An event that lasts longer is also listed by its end: whoever looks at a range looks at what began so
/// long before it.
pub(crate) const LONG_S: i64 = 31 * 86_400;

/// Whether the same records are derived from both: an answer changes but an attendee of the organizer's copy.
fn derive_alike(one: &Entry, other: &Entry) -> bool {
    let Event {
        uid,
        sequence,
        created: _,
        modified,
        organizer,
        attendees: _,
        details,
    } = &one.event;
    let it = &other.event;
    one.state == other.state
        && one.event.is_meeting() == it.is_meeting()
        && (uid, sequence, modified) == (&it.uid, &it.sequence, &it.modified)
        && organizer == &it.organizer
        && details == &it.details
}

/// The records derived from an entry.
fn derived(mailbox: &str, entry: &Entry) -> Vec<(Vec<u8>, Vec<u8>)> {
    let event = &entry.event;
    let (start, end) = (event.details.start.instant(), event.details.end.instant());
    let mut records = vec![(
        keys::line(start, &event.uid),
        domino::event_line(mailbox, entry),
    )];
    if end.saturating_sub(start) > LONG_S {
        records.push((keys::long_line(end, &event.uid), Vec::new()));
    }
    if let State::Invited { notice, received } = &entry.state {
        records.push((
            keys::notice_line(*received, notice),
            domino::notice_line(mailbox, notice, event),
        ));
        records.push((keys::notice(notice), event.uid.clone().into_bytes()));
    }
    records
}
