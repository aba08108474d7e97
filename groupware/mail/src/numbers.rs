//! The numbers of messages, and the change log.
//!
//! Each message has a number in its folder, its UID: greater than all before it, however the message was added, and
//! never assigned twice. Each change of an account, such as of a message's flags, has a number, too, the MODSEQ; an
//! entry holds the one of its last change. The commit of a batch assigns both
//! ([`Op::PutNumbered`](groupware_store::Op::PutNumbered)), so that they cause no conflicts between deliveries.
//!
//! Each change of a message adds a change-log entry under its number: the message's new folder, or
//! the one that it left. The log keeps the last [`limits::CHANGES`] changes: a client with a newer
//! state gets all changes since then, any other resynchronizes.
//!
//! Earlier versions know none of this, but can read what this one writes. They omit numbers from
//! what they write: [`crate::numbering`] adds them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use groupware_store::{Batch, Form, Numbered, Snapshot, counters};

use crate::{Folder, MailError, Unid, keys, limits};

/// The version of a change-log entry's stored form. A reader rejects unknown versions.
const FORMAT: u8 = 1;
const THERE: u8 = 1;
const GONE: u8 = 2;
/// Bytes before the folder: format, kind, number, UID, id.
const FIXED_BYTES: usize = 1 + 1 + 8 + 8 + 16;

/// The index of the last UID among a folder's counters, after messages, unread messages, and bytes.
const UIDS: u32 = 3;
/// The index of the number of messages with a UID.
const NUMBERED: u32 = 4;

/// The MODSEQs of an account start at the second of its first change times this. So a state of an earlier
/// account of the same name, or of none, is older than the whole log.
const FROM: i64 = 1 << 13;

/// An upper bound of the changes lost by a restore, where the clock gives none.
const UNKNOWN: i64 = 1 << 20;

/// The numbers of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Its UID.
    pub uid: u64,
    /// The MODSEQ of its last change.
    pub modseq: u64,
}

/// The state of a folder's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The MODSEQ of the account's last change; 0 if there was none.
    pub modseq: u64,
    /// The smallest possible UID of the next message.
    pub uid_next: u64,
    /// As long as this is the same, UIDs name the same messages; `None` if there was no message yet.
    pub uid_validity: Option<u32>,
}

impl State {
    /// Reads the state of a folder.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn of(snapshot: &dyn Snapshot, mailbox: &str, folder: Folder) -> Result<Self, MailError> {
        let head = Head::of(snapshot, mailbox)?;
        let handed = UidCounters::of(snapshot, mailbox, folder)?;
        Ok(Self::under(head, handed, folder))
    }

    /// The same, from the account's head and the folder's counters.
    pub(crate) fn under(head: Head, handed: UidCounters, folder: Folder) -> Self {
        let made_s = match folder {
            // The counters were deleted with an earlier folder of its name, if there was one; its own id is new.
            Folder::Own(unid) => unid.received_us() / 1_000_000,
            _ => 0,
        };
        let validity = head.began_s.map(|began| began.max(made_s));
        Self {
            modseq: head.modseq,
            uid_next: handed.uids + 1,
            uid_validity: validity.and_then(|it| u32::try_from(it).ok()),
        }
    }
}

/// The state of an account's numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Head {
    pub(crate) modseq: u64,
    began_s: Option<i64>,
}

impl Head {
    pub(crate) fn of(snapshot: &dyn Snapshot, mailbox: &str) -> Result<Self, MailError> {
        let record = snapshot.get(mailbox, keys::HEAD)?;
        Ok(record.map_or_else(Self::default, |record| Self::decode(&record.value)))
    }

    pub(crate) fn decode(value: &[u8]) -> Self {
        let mut numbers = counters(value);
        let mut next = || numbers.next().unwrap_or_default();
        Self {
            modseq: next().cast_unsigned(),
            began_s: Some(next()),
        }
    }

    /// Returns the additions after which no number is one that was assigned after this head was
    /// read, and folders have another UIDVALIDITY. Allows for clocks that were somewhat wrong.
    pub(crate) fn to_new_numbers(self, now_s: i64) -> [i64; 2] {
        let (modseq, began_s) = (self.modseq.cast_signed(), self.began_s.unwrap_or_default());
        let new_modseq = now_s
            .saturating_mul(FROM)
            .max(modseq.saturating_add(UNKNOWN));
        let new_began_s = now_s.max(began_s.saturating_add(1));
        [
            new_modseq.saturating_sub(modseq),
            new_began_s.saturating_sub(began_s),
        ]
    }
}

/// The UID counters of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UidCounters {
    /// The last UID.
    pub(crate) uids: u64,
    /// The number of messages with a UID.
    pub(crate) numbered: i64,
}

impl UidCounters {
    pub(crate) fn of(
        snapshot: &dyn Snapshot,
        mailbox: &str,
        folder: Folder,
    ) -> Result<Self, MailError> {
        let record = snapshot.get(mailbox, &keys::counts(folder))?;
        Ok(record.map_or_else(Self::default, |record| Self::decode(&record.value)))
    }

    pub(crate) fn decode(value: &[u8]) -> Self {
        let number = |at: u32| counters(value).nth(at as usize).unwrap_or_default();
        Self {
            uids: number(UIDS).cast_unsigned(),
            numbered: number(NUMBERED),
        }
    }
}

/// The outcome of a change for a message, under construction.
#[derive(Debug)]
pub(crate) enum MessageOutcome {
    /// The message is in the folder, with this entry, between whose halves the numbers are written,
    /// and with this UID if it keeps one.
    There {
        fixed: Vec<u8>,
        summary: Vec<u8>,
        uid: Option<u64>,
    },
    /// The message left the folder, where it had this UID.
    Gone { uid: Option<u64> },
}

/// A change of an account, under construction.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) folder: Folder,
    pub(crate) unid: Unid,
    pub(crate) became: MessageOutcome,
}

/// Makes a batch write entries with their numbers, and a change-log entry for each, after the
/// additions to the counters: the number of new UIDs by folder.
pub(crate) fn write(
    batch: &mut Batch,
    mailbox: &std::sync::Arc<str>,
    now_us: i64,
    mut new: BTreeMap<Folder, u32>,
    events: Vec<Event>,
) {
    let began_s = (now_us / 1_000_000).max(1);
    let mut behind = u32::try_from(events.len()).expect("batches are bounded");
    let start = [began_s.saturating_mul(FROM), began_s];
    batch.add_from(mailbox.clone(), keys::HEAD, start, [i64::from(behind)]);
    for Event {
        folder,
        unid,
        became,
    } in events
    {
        behind -= 1;
        let note = match became {
            MessageOutcome::Gone { uid } => note(GONE, uid, (folder, unid), behind),
            MessageOutcome::There {
                fixed,
                summary,
                uid,
            } => {
                let uid = uid.map_or_else(
                    || {
                        let left = new.entry(folder).or_default();
                        *left = left.saturating_sub(1);
                        Uid::New(folder, *left)
                    },
                    Uid::Stays,
                );
                let entry = entry(fixed, &summary, uid, behind);
                let key = Numbered::new(keys::entry(folder, unid));
                batch.put_numbered(mailbox.clone(), key, entry);
                note(THERE, None, (folder, unid), behind)
            }
        };
        let key = Numbered::new(keys::LOG.0).number(head(), behind, Form::Ring(limits::CHANGES));
        batch.put_numbered(mailbox.clone(), key, note);
    }
}

/// Makes a batch count a change without a log entry: clients with an older state must resynchronize.
pub(crate) fn write_unknown(batch: &mut Batch, mailbox: &str) {
    batch.add(mailbox, keys::HEAD, [1]);
}

enum Uid {
    Stays(u64),
    /// The offset from the folder's last UID.
    New(Folder, u32),
}

fn head() -> (Bytes, u32) {
    (Bytes::from_static(keys::HEAD), 0)
}

const BEFORE_UID: &[u8] = b"{\"uid\":";
const BEFORE_MODSEQ: &[u8] = b",\"modseq\":";

/// The stored form of an entry: its numbers are the first members of its summary, which is a JSON
/// object. So lists can copy them, and earlier versions ignore them.
fn entry(fixed: Vec<u8>, summary: &[u8], uid: Uid, behind: u32) -> Numbered {
    let begun = Numbered::new(fixed).bytes(BEFORE_UID);
    let with_uid = match uid {
        Uid::Stays(uid) => begun.bytes(uid.to_string().as_bytes()),
        Uid::New(folder, behind) => {
            let counter = (keys::counts(folder).into(), UIDS);
            begun.number(counter, behind, Form::Decimal)
        }
    };
    let rest = summary.strip_prefix(b"{").unwrap_or(summary);
    with_uid
        .bytes(BEFORE_MODSEQ)
        .number(head(), behind, Form::Decimal)
        .bytes(b",")
        .bytes(rest)
}

/// The numbers in a stored summary, if it has any.
pub(crate) fn of_summary(summary: &[u8]) -> Option<Numbers> {
    let (uid, rest) = digits(summary.strip_prefix(BEFORE_UID)?)?;
    let (modseq, _) = digits(rest.strip_prefix(BEFORE_MODSEQ)?)?;
    Some(Numbers { uid, modseq })
}

fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = text.split_at(end);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

fn note(kind: u8, uid: Option<u64>, (folder, unid): (Folder, Unid), behind: u32) -> Numbered {
    Numbered::new([FORMAT, kind])
        .number(head(), behind, Form::Bytes)
        .bytes(&uid.unwrap_or_default().to_be_bytes())
        .bytes(&unid.bits().to_be_bytes())
        .bytes(folder.to_string().as_bytes())
}

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) modseq: u64,
    pub(crate) folder: Folder,
    pub(crate) unid: Unid,
    /// Whether the message left the folder, and the UID that it had there.
    pub(crate) gone: Option<Option<u64>>,
}

impl Note {
    fn decode(key: &[u8], value: &[u8]) -> Result<Self, MailError> {
        let corrupt = || MailError::corrupt(key, "it is no note of a change");
        let (fixed, folder) = value
            .split_first_chunk::<FIXED_BYTES>()
            .ok_or_else(corrupt)?;
        let number = |at: usize| {
            let bytes = fixed[at..at + 8].try_into().expect("eight of eight");
            u64::from_be_bytes(bytes)
        };
        let unid = u128::from(number(18)) << 64 | u128::from(number(26));
        let uid = Some(number(10)).filter(|uid| *uid > 0);
        let folder = std::str::from_utf8(folder).ok().and_then(Folder::parse);
        Ok(Self {
            modseq: number(2),
            folder: folder.ok_or_else(corrupt)?,
            unid: Unid::from_bits(unid),
            gone: match fixed[..2] {
                [FORMAT, THERE] => None,
                [FORMAT, GONE] => Some(uid),
                _ => return Err(corrupt()),
            },
        })
    }
}

/// Returns the log entries of all changes of an account after this one, in order; `None` if some are
/// no longer known or can't be read.
pub(crate) fn notes(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    head: Head,
    since: u64,
) -> Result<Option<Vec<Note>>, MailError> {
    let Some(count) = head.modseq.checked_sub(since) else {
        return Ok(None);
    };
    let ring = u64::from(limits::CHANGES);
    if count > ring {
        return Ok(None);
    }
    let (first, after) = ((since + 1) % ring, (head.modseq + 1) % ring);
    let ranges = match count {
        0 => vec![],
        _ if first < after => vec![(first, after)],
        _ => vec![(first, ring), (0, after)],
    };
    let mut found = Vec::new();
    for (from, to) in ranges {
        let (from, to) = (keys::log(from), keys::log(to));
        snapshot.browse(mailbox, &from, Some(&to), usize::MAX, &mut |key, value| {
            match Note::decode(key, value) {
                Ok(note) => found.push(note),
                // The client resynchronizes, as if the entry were dropped: an error would last until the ring wraps.
                Err(_) => return ControlFlow::Break(()),
            }
            ControlFlow::Continue(())
        })?;
    }
    let is_whole = found.len() as u64 == count
        && (since + 1..)
            .zip(&found)
            .all(|(modseq, note)| note.modseq == modseq);
    Ok(is_whole.then_some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_first_in_a_summary() {
        let entry = entry(
            vec![1],
            b"{\"subject\":\"\"}",
            Uid::New(Folder::Inbox, 0),
            0,
        );
        let stored = entry.filled(&[7, 90]);
        let (_, summary) = stored.split_first().unwrap();
        assert_eq!(summary, br#"{"uid":7,"modseq":90,"subject":""}"#);
        let numbers = Numbers { uid: 7, modseq: 90 };
        assert_eq!(of_summary(summary), Some(numbers));
        for none in [
            &br#"{"subject":""}"#[..],
            b"{\"uid\":7",
            b"{\"uid\":x,",
            b"",
        ] {
            assert_eq!(of_summary(none), None);
        }
    }

    #[test]
    fn notes_come_back() {
        let unid = Unid::new(5, 6);
        for folder in [Folder::Inbox, Folder::Own(Unid::new(7, 8))] {
            for (kind, uid, gone) in [
                (THERE, None, None),
                (GONE, Some(3), Some(Some(3))),
                (GONE, None, Some(None)),
            ] {
                let stored = note(kind, uid, (folder, unid), 0).filled(&[11]);
                let modseq = 11;
                let expected = Note {
                    modseq,
                    folder,
                    unid,
                    gone,
                };
                assert_eq!(Note::decode(b"k", &stored).unwrap(), expected);
                for end in 0..stored.len() {
                    assert!(Note::decode(b"k", &stored[..end]).is_err());
                }
            }
        }
        assert!(Note::decode(b"k", &[2; 80]).is_err());
    }
}
