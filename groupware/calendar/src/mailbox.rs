//! Reads entries, and is the only place that writes them.
//!
//! An entry's list line, notice line, and notice pointer, if it has one, are functions of the entry. Only this module
//! writes and removes them, under an assert on the entry's revision. A decision based on an older state fails to commit
//! and is repeated.

use std::{
    collections::BTreeSet,
    mem::{Discriminant, discriminant},
    ops::ControlFlow,
    sync::Arc,
};

use groupware_store::{Batch, PrefetchSet, ReadError, Record, Snapshot};

use crate::{
    CalendarError, Context, Event,
    domino::{self, NoticeLine},
    entry::{self, Entry, State},
    keys, limits,
    object::Imported,
    time,
};

/// An entry with its revision.
#[derive(Debug, Clone)]
pub(crate) struct HeldEntry {
    pub(crate) entry: Entry,
    pub(crate) revision: u64,
    /// The size of its JSON.
    pub(crate) bytes: usize,
}

/// Reads an entry.
pub(crate) fn load(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
) -> Result<Option<HeldEntry>, CalendarError> {
    let key = keys::entry(uid);
    let Some(record) = snapshot.get(mailbox, &key)? else {
        return Ok(None);
    };
    let (uid, instance) = keys::parts(uid);
    if let Some(imported) = Imported::decode(&key, &record.value)? {
        let instance = instance.map(|id| time::parse_compact(id).unwrap_or(i64::MIN));
        let entry = imported.entry(uid, instance);
        return Ok(entry.map(|entry| HeldEntry {
            entry,
            revision: record.revision,
            bytes: record.value.len(),
        }));
    }
    if instance.is_some() {
        return Ok(None);
    }
    let json = entry::json(&key, &record.value)?;
    Ok(Some(HeldEntry {
        entry: Entry::from_json(&key, &json)?,
        revision: record.revision,
        bytes: json.len(),
    }))
}

/// Decodes an entry.
///
/// # Errors
/// If the version is unknown or the data is damaged.
pub(crate) fn decoded(key: &[u8], stored: &[u8]) -> Result<Entry, CalendarError> {
    let Some(imported) = Imported::decode(key, stored)? else {
        return Entry::decode(key, stored);
    };
    let uid = key.get(keys::entry("").len()..).unwrap_or_default();
    let uid = std::str::from_utf8(uid).map_err(|error| ReadError::corrupt(key, error))?;
    let entry = imported.entry(uid, None);
    entry.ok_or_else(|| ReadError::corrupt(key, "an object that has no entry").into())
}

/// Reads an entry that is unlikely to exist; if it is presumed absent, skips the read.
pub(crate) fn load_new(
    context: &Context<'_>,
    mailbox: &str,
    uid: &str,
) -> Result<Option<HeldEntry>, CalendarError> {
    match context.presumes_absent {
        true => Ok(None),
        false => load(context.snapshot, mailbox, uid),
    }
}

/// Prefetches several accounts' copies of a meeting, if each read is a request to another machine.
pub(crate) fn prefetch<'a>(
    snapshot: &dyn Snapshot,
    mailboxes: impl Iterator<Item = &'a str>,
    uid: &str,
) -> Result<(), CalendarError> {
    if snapshot.is_remote() {
        let mut soon = PrefetchSet::default();
        for mailbox in mailboxes {
            soon.key(mailbox, keys::entry(uid));
        }
        snapshot.prefetch(&soon)?;
    }
    Ok(())
}

/// As [`prefetch`], for several entries of one account.
pub(crate) fn prefetch_all(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uids: &[String],
) -> Result<(), CalendarError> {
    if snapshot.is_remote() {
        let mut soon = PrefetchSet::default();
        for uid in uids {
            soon.key(mailbox, keys::entry(uid));
        }
        snapshot.prefetch(&soon)?;
    }
    Ok(())
}

/// Reads an entry that must exist.
///
/// # Errors
/// 404 if it doesn't.
pub(crate) fn require(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
) -> Result<HeldEntry, CalendarError> {
    load(snapshot, mailbox, uid)?.ok_or_else(|| CalendarError::not_found("Event", uid))
}

/// Reads the entry of a notice.
///
/// # Errors
/// 404 if there is no such notice, or it was answered.
pub(crate) fn require_notice(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    id: &str,
) -> Result<HeldEntry, CalendarError> {
    let missing = || CalendarError::not_found("Notice", id);
    if id.len() > limits::UID_BYTES {
        return Err(missing());
    }
    let uid = noticed(snapshot, mailbox, id)?.ok_or_else(missing)?;
    load(snapshot, mailbox, &uid)?
        .filter(|held| held.entry.notice() == Some(id))
        .ok_or_else(missing)
}

/// The identifier of a notice's event; from the notice's line, if the notice's identifier leads to that.
fn noticed(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    id: &str,
) -> Result<Option<String>, CalendarError> {
    let text = |key: &[u8], uid: &[u8]| -> Result<_, CalendarError> {
        let uid = std::str::from_utf8(uid).map_err(|error| ReadError::corrupt(key, error))?;
        Ok(Some(uid.to_owned()))
    };
    if let Some(received) = keys::received(id) {
        let key = keys::notice_line(received, id);
        if let Some(line) = snapshot.get(mailbox, &key)?
            && let Some(uid) = NoticeLine::of(&line.value).uid
        {
            return text(&key, uid);
        }
    }
    let key = keys::notice(id);
    match snapshot.get(mailbox, &key)? {
        Some(pointer) => text(&key, &pointer.value),
        None => Ok(None),
    }
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
    /// The last event written: most copies of a meeting are equal.
    last: Option<Stored>,
}

/// An event with its stored forms, which are the same in any account.
#[derive(Debug)]
struct Stored {
    event: Arc<Event>,
    bytes: Vec<u8>,
    /// Lines of lists whose compact forms don't contain an account's name.
    lines: Vec<(LineOf, Vec<u8>)>,
}

/// The kind of line, the state of its entry, and whether the line contains the event's identifier.
type LineOf = (Derived, Discriminant<State>, bool);

impl Stored {
    fn new(event: Arc<Event>) -> Self {
        let bytes = entry::encode_event(&event);
        let lines = Vec::new();
        Self {
            event,
            bytes,
            lines,
        }
    }

    fn is_of(&self, event: &Arc<Event>) -> bool {
        Arc::ptr_eq(&self.event, event) || self.event == *event
    }

    /// The value of a record derived from an entry of this event.
    fn derive(&mut self, derived: Derived, mailbox: &str, entry: &Entry) -> Vec<u8> {
        let of = (derived, discriminant(&entry.state), line_says_event(entry));
        if let Some((_, line)) = self.lines.iter().find(|(it, _)| *it == of) {
            debug_assert_eq!(*line, derived.value(mailbox, entry));
            return line.clone();
        }
        let value = derived.value(mailbox, entry);
        let is_alike_everywhere = match derived {
            Derived::Line => domino::is_line_of_any_mailbox(&value),
            Derived::NoticeLine => domino::is_notice_line_of_any_mailbox(&value),
            Derived::LongLine | Derived::Notice => false,
        };
        if is_alike_everywhere {
            self.lines.push((of, value.clone()));
        }
        value
    }
}

impl Changes {
    /// Replaces `old` by `new` in an account, or removes `old` if there is no `new`. The commit fails if the account
    /// then holds anything but `old` under this UID.
    pub(crate) fn replace(
        &mut self,
        mailbox: &str,
        uid: &str,
        old: Option<&HeldEntry>,
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
        let is_kept = |entry: &Entry| matches!(entry.state, State::Imported(_));
        if old.is_some_and(|held| is_kept(&held.entry)) || new.is_some_and(is_kept) {
            return self.replace_kept((partition, key), uid, old, new);
        }
        let is_alike = old
            .zip(new)
            .is_some_and(|(old, new)| derive_alike(&old.entry, new));
        debug_assert!(
            !is_alike
                || old.map(|held| records(mailbox, &held.entry))
                    == new.map(|entry| records(mailbox, entry)),
            "what a record is derived from is compared"
        );
        let all = |entry: Option<&Entry>| match entry {
            Some(entry) if !is_alike => derived(entry),
            _ => Vec::new(),
        };
        let (before, after) = (all(old.map(|held| &held.entry)), all(new));
        for gone in before.iter().filter(|gone| !after.contains(gone)) {
            self.batch.delete(partition.clone(), gone.1.clone());
        }
        let Some(entry) = new else {
            self.batch.delete(partition, key);
            return;
        };
        let last = self.last.take().filter(|last| last.is_of(&entry.event));
        let mut stored = last.unwrap_or_else(|| Stored::new(Arc::clone(&entry.event)));
        let value = entry.state.encode_with(&stored.bytes);
        self.batch.put(partition.clone(), key, value);
        for record in after {
            let known = old.filter(|_| before.contains(&record));
            let (derived, key) = record;
            if derived.is_as_in(known, entry) {
                debug_assert_eq!(
                    known.map(|held| derived.value(mailbox, &held.entry)),
                    Some(derived.value(mailbox, entry)),
                );
                continue;
            }
            let value = stored.derive(derived, mailbox, entry);
            self.batch.put(partition.clone(), key, value);
        }
        self.last = Some(stored);
    }

    /// The same for imported objects; the assert was already added.
    fn replace_kept(
        &mut self,
        (partition, key): (Arc<str>, Vec<u8>),
        uid: &str,
        old: Option<&HeldEntry>,
        new: Option<&Entry>,
    ) {
        let before = old.map(|held| match held.entry.imported() {
            Some(imported) => imported.derived_keys(uid).collect(),
            None => derived(&held.entry)
                .into_iter()
                .map(|(_, key)| key)
                .collect(),
        });
        let mut before: BTreeSet<Vec<u8>> = before.unwrap_or_default();
        match new.map(|entry| (entry, entry.imported())) {
            Some((_, Some(imported))) => {
                imported.derived(uid, &mut |key, entry| {
                    before.remove(&key);
                    let line = entry.map(|entry| domino::event_line(&partition, entry));
                    let line = line.unwrap_or_default();
                    self.batch.put(partition.clone(), key, line);
                });
                self.batch.put(partition.clone(), key, imported.encode());
            }
            Some((entry, None)) => {
                for (key, value) in records(&partition, entry) {
                    before.remove(&key);
                    self.batch.put(partition.clone(), key, value);
                }
                let value = entry.state.encode_with(&entry::encode_event(&entry.event));
                self.batch.put(partition.clone(), key, value);
            }
            None => {
                self.batch.delete(partition.clone(), key);
            }
        }
        for gone in before {
            self.batch.delete(partition.clone(), gone);
        }
    }

    /// Returns true if the batch is full and no more objects should be imported in it.
    pub(crate) fn is_full(&self) -> bool {
        let operations = self.batch.ops.len() + self.batch.asserts.len();
        operations >= limits::BATCH_OPS || self.batch.bytes() >= limits::BATCH_BYTES
    }

    /// The finished batch.
    pub(crate) fn into_batch(self) -> Batch {
        self.batch
    }
}

/// Returns true if both have the same derived records: a reply changes only an attendee in the organizer's copy.
fn derive_alike(one: &Entry, other: &Entry) -> bool {
    let Event {
        uid,
        sequence,
        created: _,
        modified,
        organizer,
        attendees: _,
        details,
    } = &*one.event;
    let it = &other.event;
    one.state == other.state
        && one.event.is_meeting() == it.is_meeting()
        && (uid, sequence, modified) == (&it.uid, &it.sequence, &it.modified)
        && organizer == &it.organizer
        && details == &it.details
}

/// The kind of a record that is derived from an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Derived {
    Line,
    LongLine,
    NoticeLine,
    Notice,
}

impl Derived {
    /// Returns true if the old entry's record with the same key has the same value.
    fn is_as_in(self, old: Option<&HeldEntry>, new: &Entry) -> bool {
        old.is_some_and(|held| match self {
            Self::Line => false,
            Self::LongLine | Self::Notice => true,
            Self::NoticeLine => {
                let (old, new) = (&held.entry.event.details, &new.event.details);
                old.summary == new.summary && old.start.instant() == new.start.instant()
            }
        })
    }

    fn value(self, mailbox: &str, entry: &Entry) -> Vec<u8> {
        match (self, entry.notice()) {
            (Self::Line, _) => domino::event_line(mailbox, entry),
            (Self::NoticeLine, Some(notice)) => {
                domino::notice_line(mailbox, notice, &entry.event, line_says_event(entry))
            }
            (Self::Notice, _) => entry.event.uid.clone().into_bytes(),
            (Self::LongLine | Self::NoticeLine, _) => Vec::new(),
        }
    }
}

/// The records derived from an entry, with their keys.
fn derived(entry: &Entry) -> Vec<(Derived, Vec<u8>)> {
    let event = &entry.event;
    let (start, end) = (event.details.start.instant(), event.details.end.instant());
    let mut all = vec![(Derived::Line, keys::line(start, &event.uid))];
    if end.saturating_sub(start) > keys::LONG_S {
        all.push((Derived::LongLine, keys::long_line(end, &event.uid)));
    }
    if let State::Invited { notice, received } = &entry.state {
        let line = keys::notice_line(*received, notice);
        all.push((Derived::NoticeLine, line));
        if !line_says_event(entry) {
            all.push((Derived::Notice, keys::notice(notice)));
        }
    }
    all
}

/// Returns true if an invitation's line, to which the notice's identifier leads, contains the event's identifier.
/// Notices with other identifiers have a pointer record.
fn line_says_event(entry: &Entry) -> bool {
    match &entry.state {
        State::Invited { notice, received } => {
            keys::received(notice) == Some(*received) && u8::try_from(entry.event.uid.len()).is_ok()
        }
        _ => false,
    }
}

/// The keys and values of the derived records.
fn records(mailbox: &str, entry: &Entry) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = derived(entry).into_iter();
    all.map(|(derived, key)| (key, derived.value(mailbox, entry)))
        .collect()
}

#[cfg(test)]
mod tests {
    use groupware_store::Op;

    use super::*;

    #[test]
    fn an_event_in_place_of_a_kept_object_is_put_with_its_line() {
        let original = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:u\r\nDTSTART:20260105T090000Z\r\n\
                        RRULE:FREQ=DAILY;COUNT=3\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        let imported = Imported::read(original, "ada@localhost", 1_767_225_600).unwrap();
        let entry = imported.entry("u", None).unwrap();
        let own = Entry {
            state: State::Own,
            event: entry.event.clone(),
        };
        let (revision, bytes) = (1, 0);
        let held = HeldEntry {
            entry,
            revision,
            bytes,
        };
        let mut changes = Changes::default();
        changes.replace("ada", "u", Some(&held), Some(&own));
        let (mut put, mut gone) = (Vec::new(), Vec::new());
        for op in changes.into_batch().ops {
            match op {
                Op::Put { key, .. } => put.push(key),
                Op::Delete { key, .. } => gone.push(key),
                other => panic!("{other:?}"),
            }
        }
        let start = own.event.details.start.instant();
        assert_eq!(put, [keys::line(start, "u"), keys::entry("u")]);
        assert_eq!(gone.len(), 3);
        assert!(!gone.iter().any(|key| put.contains(key)));
    }
}
