//! Checks that accounts are consistent: each message has all its bytes, each folder's counters
//! match its content, and a shared body exists as long as a message refers to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use groupware_store::{Snapshot, StoreError, counters};

use crate::numbers::{Head, Numbers, UidCounters};
use crate::{Counts, Entry, Folder, MailError, Unid, folders, keys};

/// The result of a check of accounts.
#[derive(Debug, Default)]
pub struct Found {
    /// The messages.
    pub messages: u64,
    /// Their bytes; a shared body counts once for each of its messages.
    pub bytes: u64,
    /// The defects, one sentence each.
    pub wrong: Vec<String>,
    /// The number of messages that hold each shared body, and its length according to the last of them.
    shared: BTreeMap<Unid, (i64, u64)>,
}

/// The records of one account besides its entries.
struct Mailbox<'a> {
    name: &'a str,
    folders: BTreeSet<Folder>,
    /// The lengths of the messages with a body of their own.
    bodies: BTreeMap<Unid, u64>,
    /// The references to shared bodies.
    marks: BTreeMap<Unid, Option<Unid>>,
    counted: BTreeMap<Folder, Counts>,
    /// The UIDs of messages, and the last UID that each folder has assigned.
    uids: BTreeMap<Folder, BTreeSet<u64>>,
    handed: BTreeMap<Folder, u64>,
    /// The account's last change.
    modseq: u64,
}

impl<'a> Mailbox<'a> {
    fn read(snapshot: &dyn Snapshot, name: &'a str) -> Result<Self, MailError> {
        let own = folders::own(snapshot, name)?.into_iter();
        let own = own.map(|folder| Folder::Own(folder.unid));
        let mut marks = BTreeMap::new();
        let (from, to) = keys::MARKS;
        snapshot.browse(name, from, Some(to), usize::MAX, &mut |key, value| {
            marks.extend(keys::unid_of(key).map(|unid| (unid, keys::unid_of(value))));
            ControlFlow::Continue(())
        })?;
        Ok(Self {
            name,
            folders: Folder::BUILT_IN.into_iter().chain(own).collect(),
            bodies: lengths(snapshot, name, keys::BODIES)?,
            marks,
            counted: BTreeMap::new(),
            uids: BTreeMap::new(),
            handed: handed(snapshot, name)?,
            modseq: Head::of(snapshot, name)?.modseq,
        })
    }
}

/// Returns the lengths of the values whose keys end with the id of a message or body.
fn lengths(
    snapshot: &dyn Snapshot,
    partition: &str,
    (from, to): (&[u8], &[u8]),
) -> Result<BTreeMap<Unid, u64>, StoreError> {
    let mut found = BTreeMap::new();
    snapshot.measure(partition, from, Some(to), usize::MAX, &mut |key, bytes| {
        found.extend(keys::unid_of(key).map(|unid| (unid, bytes)));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The last UID of each folder.
fn handed(snapshot: &dyn Snapshot, mailbox: &str) -> Result<BTreeMap<Folder, u64>, StoreError> {
    let (from, to) = keys::COUNTS;
    let mut found = BTreeMap::new();
    snapshot.browse(mailbox, from, Some(to), usize::MAX, &mut |key, value| {
        let folder = std::str::from_utf8(&key[from.len()..]).ok();
        let folder = folder.and_then(Folder::parse);
        found.extend(folder.map(|folder| (folder, UidCounters::decode(value).uids)));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

impl Found {
    /// Checks an account. Holds the ids of its messages in memory.
    ///
    /// # Errors
    /// If the store or the list of folders can't be read.
    pub fn look(&mut self, snapshot: &dyn Snapshot, mailbox: &str) -> Result<(), MailError> {
        let mut there = Mailbox::read(snapshot, mailbox)?;
        let (from, to) = keys::ENTRIES;
        snapshot.browse(mailbox, from, Some(to), usize::MAX, &mut |key, value| {
            self.message(&mut there, key, value);
            ControlFlow::Continue(())
        })?;
        for unid in there.bodies.keys() {
            self.complain(mailbox, &format!("the bytes {unid} belong to no message"));
        }
        for unid in there.marks.keys() {
            let words = format!("the mark {unid} of a shared body belongs to no message");
            self.complain(mailbox, &words);
        }
        self.counters(snapshot, &there)
    }

    fn complain(&mut self, mailbox: &str, words: &str) {
        self.wrong.push(format!("{mailbox}: {words}"));
    }

    fn message(&mut self, there: &mut Mailbox<'_>, key: &[u8], value: &[u8]) {
        let name = there.name;
        let (Some((folder, unid)), Ok(entry)) = (keys::entry_of(key), Entry::decode(key, value))
        else {
            let key = String::from_utf8_lossy(key);
            return self.complain(name, &format!("record {key} is no message's"));
        };
        self.messages += 1;
        self.bytes += entry.size;
        let counted = there.counted.entry(folder).or_default();
        counted.messages += 1;
        counted.unread += u64::from(!entry.read);
        counted.bytes += entry.size;
        if !there.folders.contains(&folder) {
            let words = format!("message {unid} lies in the folder {folder}, which is not there");
            self.complain(name, &words);
        }
        if let Some(numbers) = entry.numbers {
            self.numbers(there, (folder, unid), numbers);
        }
        let Some(body) = entry.shared else {
            return match there.bodies.remove(&unid) {
                Some(bytes) if bytes == entry.size => {}
                Some(bytes) => self.complain(
                    name,
                    &format!(
                        "message {unid} has {bytes} bytes in place of {}",
                        entry.size
                    ),
                ),
                None => self.complain(name, &format!("message {unid} has lost its bytes")),
            };
        };
        let held = self.shared.entry(body).or_default();
        *held = (held.0 + 1, entry.size);
        if there.marks.remove(&unid) != Some(Some(body)) {
            let words = format!("message {unid} has no mark that it holds the shared body {body}");
            self.complain(name, &words);
        }
    }

    /// Checks that UIDs are unique within a folder and not above the last one assigned.
    fn numbers(
        &mut self,
        there: &mut Mailbox<'_>,
        (folder, unid): (Folder, Unid),
        Numbers { uid, modseq }: Numbers,
    ) {
        let handed = there.handed.get(&folder).copied();
        let is_new = there.uids.entry(folder).or_default().insert(uid);
        if !is_new {
            let words = format!("message {unid} has the UID {uid}, which another has in {folder}");
            self.complain(there.name, &words);
        }
        // A folder without counters is reported as such.
        if let Some(handed) = handed.filter(|handed| uid > *handed) {
            let words = format!("message {unid} has the UID {uid}, and {folder} is at {handed}");
            self.complain(there.name, &words);
        }
        if modseq > there.modseq {
            let last = there.modseq;
            let words = format!("message {unid} was changed by {modseq}, and the last is {last}");
            self.complain(there.name, &words);
        }
    }

    /// Compares a folder's counters with its content.
    fn counters(&mut self, snapshot: &dyn Snapshot, there: &Mailbox<'_>) -> Result<(), MailError> {
        let mut told = BTreeMap::new();
        let (from, to) = keys::COUNTS;
        snapshot.browse(there.name, from, Some(to), usize::MAX, &mut |key, value| {
            let folder = String::from_utf8_lossy(&key[from.len()..]).into_owned();
            told.insert(folder, Counts::decode(value));
            ControlFlow::Continue(())
        })?;
        let counted = there.counted.iter();
        let mut counted: BTreeMap<String, Counts> = counted
            .map(|(folder, counts)| (folder.to_string(), *counts))
            .collect();
        for (folder, told) in told {
            let found = counted.remove(&folder).unwrap_or_default();
            self.compare(there.name, &folder, (told, found));
        }
        for (folder, found) in counted {
            self.compare(there.name, &folder, (Counts::default(), found));
        }
        Ok(())
    }

    fn compare(&mut self, mailbox: &str, folder: &str, (told, found): (Counts, Counts)) {
        if told != found {
            let Counts {
                messages,
                unread,
                bytes,
            } = told;
            let words = format!(
                "the folder {folder} counts {messages} messages, {unread} unread, with {bytes} bytes, and has {}, {}, \
                 with {}",
                found.messages, found.unread, found.bytes
            );
            self.complain(mailbox, &words);
        }
    }

    /// Checks the shared bodies of all accounts, after the accounts themselves. A body may have
    /// more holders than were found: an account that is being removed may still hold some.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn look_at_shared(&mut self, snapshot: &dyn Snapshot) -> Result<(), StoreError> {
        let bodies = lengths(snapshot, keys::SHARED, keys::SHARED_BODIES)?;
        let mut holders = BTreeMap::new();
        let (from, to) = keys::HOLDERS;
        snapshot.browse(
            keys::SHARED,
            from,
            Some(to),
            usize::MAX,
            &mut |key, value| {
                let count = counters(value).next().unwrap_or_default();
                holders.extend(keys::unid_of(key).map(|body| (body, count)));
                ControlFlow::Continue(())
            },
        )?;
        for (body, (held, bytes)) in &self.shared {
            let words = match (
                bodies.get(body),
                holders.get(body).copied().unwrap_or_default(),
            ) {
                (None, _) => format!("is gone, and {held} messages hold it"),
                (Some(found), _) if found != bytes => {
                    format!("has {found} bytes in place of {bytes}")
                }
                (Some(_), told) if told < *held => {
                    format!(
                        "is held by {held} messages, and {told} are counted: it would go too early"
                    )
                }
                (Some(_), _) => continue,
            };
            self.wrong.push(format!("the shared body {body} {words}"));
        }
        Ok(())
    }
}
