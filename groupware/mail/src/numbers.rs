//! The numbers that messages have, and the log of what became of them.
//!
//! In its folder, each message has a number of its own, its UID: the next greater one for each that comes in, by
//! whatever way, and none is given out twice. Each change of a mailbox, such as of a message's marks, has a number,
//! too, the MODSEQ: that of its last change stands with the message. Both are handed out as a batch is committed
//! ([`Op::PutNumbered`](groupware_store::Op::PutNumbered)): deliveries never get in each other's way by them.
//!
//! Each change of a message leaves a note under its number: where the message lies since, or whence it is gone. The
//! notes of the last [`limits::CHANGES`] changes are kept, in a ring: who was there later than that is told all that
//! has changed since, and whoever was not begins anew.
//!
//! Versions before this one know nothing of all that, and read what this one writes. They leave numbers out of what
//! they write: such messages get theirs from [`crate::numbering`].

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use groupware_store::{Batch, Form, Numbered, Snapshot, counters};

use crate::{Folder, MailError, Unid, keys, limits};

/// Version of a note's stored form. A reader refuses what it doesn't know.
const FORMAT: u8 = 1;
const THERE: u8 = 1;
const GONE: u8 = 2;
/// Bytes before the folder: format, kind, number, UID, name.
const FIXED_BYTES: usize = 1 + 1 + 8 + 8 + 16;

/// Where the number of the last UID stands among a folder's counters, behind messages, unread ones, and bytes.
const UIDS: u32 = 3;
/// Behind it stands how many of the messages have one.
const NUMBERED: u32 = 4;

/// Where a mailbox begins to count its changes: at the second in which it does, times this. What somebody knows of an
/// earlier mailbox of the same name, or of none, is then before all that the log has.
const FROM: i64 = 1 << 13;

/// More changes than a mailbox has seen that nobody knows of any more, where the clock doesn't tell.
const UNKNOWN: i64 = 1 << 20;

/// The numbers of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Its number in its folder.
    pub uid: u64,
    /// That of its last change in its mailbox.
    pub modseq: u64,
}

/// How far a folder's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The number of the mailbox's last change; 0 where there was none.
    pub modseq: u64,
    /// The least that the UID of the next message may be.
    pub uid_next: u64,
    /// As long as this is the same, UIDs mean the same messages; none where there was no message.
    pub uid_validity: Option<u32>,
}

impl State {
    /// Of a folder.
    ///
    /// # Errors
    /// The store's.
    pub fn of(snapshot: &dyn Snapshot, mailbox: &str, folder: Folder) -> Result<Self, MailError> {
        let head = Head::of(snapshot, mailbox)?;
        let handed = Handed::of(snapshot, mailbox, folder)?;
        Ok(Self::under(head, handed, folder))
    }

    /// The same where the mailbox's head and the folder's counters are known.
    pub(crate) fn under(head: Head, handed: Handed, folder: Folder) -> Self {
        let made_s = match folder {
            // Its counters went with an earlier one of its name, if there was one; its own name is a new one.
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

/// How far a mailbox's numbers are.
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

    /// What to add to its counters so that no number after that was ever given out, whatever was given out after this
    /// head, and folders have another UIDVALIDITY. Clocks may have been wrong then, by some.
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

/// What was handed out in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Handed {
    /// The last UID.
    pub(crate) uids: u64,
    /// How many of the messages have one.
    pub(crate) numbered: i64,
}

impl Handed {
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

/// What became of a message, under construction.
#[derive(Debug)]
pub(crate) enum Became {
    /// It lies in the folder, with this entry, whose numbers are to be written between the two, and with this UID
    /// where it has one that stays.
    There {
        fixed: Vec<u8>,
        summary: Vec<u8>,
        uid: Option<u64>,
    },
    /// It is gone from the folder, where it had this UID.
    Gone { uid: Option<u64> },
}

/// A change of a mailbox, under construction.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) folder: Folder,
    pub(crate) unid: Unid,
    pub(crate) became: Became,
}

/// Has a batch write entries with their numbers, and a note of each change, after what was added to the counters: so
/// many new UIDs by folder.
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
            Became::Gone { uid } => note(GONE, uid, (folder, unid), behind),
            Became::There {
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

/// Has a batch count a change of which nobody notes what it was: whoever was there before begins anew.
pub(crate) fn write_unknown(batch: &mut Batch, mailbox: &str) {
    batch.add(mailbox, keys::HEAD, [1]);
}

enum Uid {
    Stays(u64),
    /// So far behind the last one of the folder.
    New(Folder, u32),
}

fn head() -> (Bytes, u32) {
    (Bytes::from_static(keys::HEAD), 0)
}

const BEFORE_UID: &[u8] = b"{\"uid\":";
const BEFORE_MODSEQ: &[u8] = b",\"modseq\":";

/// An entry's stored form: its numbers are the first members of its summary, which is a JSON object. So they are where
/// lists show them, and versions that know nothing of them pass over them.
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

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) modseq: u64,
    pub(crate) folder: Folder,
    pub(crate) unid: Unid,
    /// Whether the message is gone from the folder, and which UID it had there.
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

/// The notes of all changes of a mailbox after this one, in their order; `None` if not all of them are known, or can be
/// read.
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
                // Whoever asks begins anew, as where it is forgotten: an error would stay until the ring comes round.
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
