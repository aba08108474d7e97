//! What users store, over all services, and what anybody puts into others' mailboxes, or where it is in
//! nobody's share.
//!
//! A user's share of the disk is one: messages, meetings, documents, and uploads count in it together.
//! What a mailbox holds is counted when it grows first and then kept up to date by what is added; it is
//! counted anew where the share seems to be used up, and now and then. Whose share is used up can still read,
//! mark, move, and remove; and what is there, as a meeting that others change, may take a little more than the
//! share. That holds for every client: quotas don't depend on addresses. What trusted programs, such as a study's
//! generator, put into others' mailboxes has no rate. On a disk that is nearly full nobody stores more than there was.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_net::Source;
use groupware_runtime::{Caller, Limiter};
use groupware_store::{Assert, Batch, Op, Snapshot, Store, StoreError};

use crate::meetings_bytes::{MeetingsBytes, RECORD_BYTES};

/// Mailboxes whose counts are kept; beyond, all are counted anew.
const KEPT: usize = 16_384;
/// How long a count is kept, for what was removed meanwhile.
const KEPT_FOR: Duration = Duration::from_secs(600);
/// How long a mailbox that was found to be full is taken to be so: counting takes time.
const FULL_FOR: Duration = Duration::from_secs(10);
/// What is there already may become larger until its owner has this part of the share more than all of it: who
/// changes a meeting changes it for all who have it, whether they have room or not.
const MORE_PART: u64 = 8;
/// By how much records may grow on a disk that is nearly full: more than by an answer to a meeting of many, or a name.
const LITTLE_BYTES: i64 = 4 << 10;
/// From so many bytes on a quota is none: the greatest number that a configuration file can have.
const UNBOUNDED: u64 = i64::MAX.unsigned_abs();
/// KiB that one source may put into others' mailboxes at once: 256 MiB, …
const DELIVERED_KIB: u32 = 256 << 10;
/// … and again in an hour.
const DELIVERED_WITHIN: Duration = Duration::from_secs(3600);

/// Why something isn't stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The shares of the owners of these mailboxes are used up.
    Full(BTreeSet<Arc<str>>),
    /// The sender has put so much into others' mailboxes that it has to wait.
    TooMuch(Duration),
    /// The disk is nearly full.
    Disk,
}

impl NoRoom {
    /// A sentence for the user with this mailbox.
    pub(crate) fn message(&self, own: &str) -> String {
        match self {
            Self::Full(mailboxes) => match mailboxes.first() {
                Some(other) if !mailboxes.contains(own) => {
                    format!("The mailbox of {other} is full.")
                }
                _ => "This would take more than your share of the disk.".to_owned(),
            },
            Self::TooMuch(wait) => {
                let seconds = wait.as_secs() + 1;
                format!("You have sent very much. Try again in {seconds} seconds.")
            }
            Self::Disk => "The server's disk is nearly full.".to_owned(),
        }
    }
}

/// One look at what a request stores, however often it decides anew: who decides again stores the same.
#[derive(Debug)]
pub(crate) struct Look {
    now: Duration,
    is_done: AtomicBool,
}

impl Look {
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            now,
            is_done: AtomicBool::new(false),
        }
    }

    /// Whether the batch may be stored, as [`Quotas::check`] has it.
    pub(crate) fn at(
        &self,
        quotas: &Quotas,
        of: (&Caller, &str),
        snapshot: &dyn Snapshot,
        batch: &Batch,
    ) -> Result<Result<(), NoRoom>, StoreError> {
        if self.is_done.load(Relaxed) {
            return Ok(Ok(()));
        }
        let checked = quotas.check(of, snapshot, batch, self.now);
        self.is_done.store(matches!(checked, Ok(Ok(()))), Relaxed);
        checked
    }
}

/// The counts.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Most that a user stores.
    bytes: AtomicU64,
    /// Most that the messages of one mailbox may have; none, if it is the greatest number.
    mail_bytes: AtomicU64,
    counts: Mutex<HashMap<Arc<str>, Count>>,
    store: Store,
    meetings: MeetingsBytes,
    delivered: Limiter<Source>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    bytes: u64,
    counted: Duration,
    /// Something was removed since, so that it pays to count again.
    is_less: bool,
}

impl Quotas {
    /// Users store so many bytes, and messages in one mailbox have so many of them.
    pub(crate) fn new(store: Store, (bytes, mail_bytes): (u64, Option<u64>)) -> Self {
        Self {
            bytes: AtomicU64::new(bytes),
            mail_bytes: AtomicU64::new(mail_bytes.unwrap_or(u64::MAX)),
            counts: Mutex::default(),
            meetings: MeetingsBytes::new(store.clone()),
            store,
            delivered: Limiter::new(DELIVERED_KIB, DELIVERED_WITHIN / DELIVERED_KIB),
        }
    }

    /// Has other quotas hold from now on.
    pub(crate) fn set(&self, (bytes, mail_bytes): (u64, Option<u64>)) {
        // Without a quota, what is added is not counted.
        self.lock().clear();
        self.bytes.store(bytes, Relaxed);
        self.mail_bytes
            .store(mail_bytes.unwrap_or(u64::MAX), Relaxed);
    }

    /// Most bytes that a user stores.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Whether there is such a bound.
    fn is_bounded(&self) -> bool {
        self.bytes() < UNBOUNDED
    }

    /// Most bytes that the messages of one mailbox may have.
    pub(crate) fn mail_bytes(&self) -> Option<u64> {
        Some(self.mail_bytes.load(Relaxed)).filter(|bytes| *bytes < UNBOUNDED)
    }

    /// Looks whether a caller's batch may be stored: whether those whose mailboxes grow by it have room,
    /// and the caller may put so much into others'. `own` is the caller's mailbox.
    pub(crate) fn check(
        &self,
        (caller, own): (&Caller, &str),
        snapshot: &dyn Snapshot,
        batch: &Batch,
        now: Duration,
    ) -> Result<Result<(), NoRoom>, StoreError> {
        if self.store.is_short_of_room() && grows(snapshot, batch, own)? {
            return Ok(Err(NoRoom::Disk));
        }
        let mut added = match self.is_bounded() {
            true => added(snapshot, batch, own)?,
            false => HashMap::new(),
        };
        if self.is_bounded() {
            self.note_removals(batch, &added);
        }
        let mut full = BTreeSet::new();
        for (mailbox, added) in &mut added {
            if !self.has_room(snapshot, batch, (mailbox, added), now)? {
                full.insert(Arc::clone(mailbox));
            }
        }
        if !full.is_empty() {
            return Ok(Err(NoRoom::Full(full)));
        }
        let delivered = bytes_elsewhere(batch, own);
        if delivered > 0
            && let Err(wait) = self.put_elsewhere(caller, delivered, now)
        {
            return Ok(Err(NoRoom::TooMuch(wait)));
        }
        for (mailbox, added) in &added {
            self.add(mailbox, added.bytes());
            self.meetings
                .add(mailbox, added.meetings.max(0).cast_unsigned());
        }
        Ok(Ok(()))
    }

    /// Whether a mailbox has room for what a batch adds to it, which is then known better.
    fn has_room(
        &self,
        snapshot: &dyn Snapshot,
        batch: &Batch,
        (mailbox, added): (&Arc<str>, &mut Added),
        now: Duration,
    ) -> Result<bool, StoreError> {
        let quota = self.bytes();
        let most = match added.is_new || added.mail > 0 || added.documents > 0 {
            true => quota,
            false => quota.saturating_add(quota / MORE_PART),
        };
        let asked = added.bytes();
        if asked == 0 || self.fits(snapshot, (mailbox, asked), most, now)? {
            return Ok(true);
        }
        added.take_off_what_goes(snapshot, batch, mailbox)?;
        let grown = added.bytes();
        Ok(grown == 0 || (grown < asked && self.fits(snapshot, (mailbox, grown), most, now)?))
    }

    /// Takes so many bytes from what a caller may put where they are in nobody's share, or in another's; if
    /// there aren't so many, the time after which there are.
    pub(crate) fn put_elsewhere(
        &self,
        caller: &Caller,
        bytes: u64,
        now: Duration,
    ) -> Result<(), Duration> {
        let source = caller.source();
        if source == Source::Trusted {
            return Ok(());
        }
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        self.delivered.admit(source, kib, now)
    }

    /// Whether so many bytes that somebody sends have room in a mailbox, as far as that is known before they
    /// are there.
    pub(crate) fn may_take(
        &self,
        snapshot: &dyn Snapshot,
        (mailbox, bytes): (&Arc<str>, u64),
        now: Duration,
    ) -> Result<bool, StoreError> {
        Ok(!self.is_bounded() || self.fits(snapshot, (mailbox, bytes), self.bytes(), now)?)
    }

    /// The bytes that a user may still store.
    pub(crate) fn room(
        &self,
        snapshot: &dyn Snapshot,
        mailbox: &str,
        now: Duration,
    ) -> Result<u64, StoreError> {
        if !self.is_bounded() {
            return Ok(u64::MAX);
        }
        let used = self.used_bytes(snapshot, mailbox, now)?;
        Ok(self.bytes().saturating_sub(used))
    }

    /// What a mailbox takes: messages as their folders count them, documents and uploads as their usage says,
    /// meetings as they are.
    fn used_bytes(
        &self,
        snapshot: &dyn Snapshot,
        mailbox: &str,
        now: Duration,
    ) -> Result<u64, StoreError> {
        let mail = groupware_mail::stored_bytes(snapshot, mailbox)?;
        let documents = groupware_documents::stored_bytes(snapshot, mailbox)?;
        Ok(mail + documents + self.meetings.of(snapshot, mailbox, now)?)
    }

    fn fits(
        &self,
        snapshot: &dyn Snapshot,
        (mailbox, added): (&Arc<str>, u64),
        most: u64,
        now: Duration,
    ) -> Result<bool, StoreError> {
        let known = self.lock().get(mailbox).copied();
        let is_fresh = |count: &Count| now < count.counted + KEPT_FOR;
        if let Some(count) = known.filter(is_fresh) {
            if count.bytes.saturating_add(added) <= most {
                return Ok(true);
            }
            if !count.is_less && now < count.counted + FULL_FOR {
                return Ok(false);
            }
        }
        let bytes = self.used_bytes(snapshot, mailbox, now)?;
        let count = Count {
            bytes,
            counted: now,
            is_less: false,
        };
        self.note(mailbox, count);
        Ok(bytes.saturating_add(added) <= most)
    }

    fn note(&self, mailbox: &Arc<str>, count: Count) {
        let mut counts = self.lock();
        if counts.len() >= KEPT && !counts.contains_key(mailbox) {
            counts.clear();
        }
        counts.insert(Arc::clone(mailbox), count);
    }

    /// Mailboxes from which a batch removes something, or whose own counts it lowers, may have room again.
    fn note_removals(&self, batch: &Batch, added: &HashMap<&Arc<str>, Added>) {
        let deletes = batch.ops.iter().filter_map(|op| match op {
            Op::Delete { partition, .. } | Op::DeleteRange { partition, .. } => Some(partition),
            _ => None,
        });
        let lowered = added
            .iter()
            .filter(|(_, one)| one.mail < 0 || one.documents < 0);
        let mut counts = self.lock();
        for mailbox in deletes.chain(lowered.map(|(mailbox, _)| *mailbox)) {
            if let Some(count) = counts.get_mut(mailbox) {
                count.is_less = true;
            }
        }
    }

    /// So many bytes are to be added to what a mailbox holds.
    fn add(&self, mailbox: &Arc<str>, bytes: u64) {
        if let Some(count) = self.lock().get_mut(mailbox) {
            count.bytes = count.bytes.saturating_add(bytes);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a batch adds to a mailbox, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Added {
    /// Messages: by what the counts of their folders change.
    mail: i64,
    /// Documents and uploads: by what their count changes.
    documents: i64,
    /// Their records, some of which that count leaves out: at most, since what goes is not taken off.
    document_records: i64,
    /// Records of meetings, likewise.
    meetings: i64,
    /// There is a meeting, document, or upload among them that is new altogether.
    is_new: bool,
}

impl Added {
    fn bytes(&self) -> u64 {
        let documents = self.documents.max(self.document_records);
        let bytes = self.mail.saturating_add(documents);
        bytes.saturating_add(self.meetings).max(0).cast_unsigned()
    }

    /// The records of this kind of key, if they count by themselves.
    fn records(&mut self, key: &[u8]) -> Option<&mut i64> {
        match counted_in(key)? {
            Records::Meetings => Some(&mut self.meetings),
            Records::Documents => Some(&mut self.document_records),
        }
    }

    /// Takes off what a batch replaces and removes.
    fn take_off_what_goes(
        &mut self,
        snapshot: &dyn Snapshot,
        batch: &Batch,
        mailbox: &Arc<str>,
    ) -> Result<(), StoreError> {
        let places = batch.ops.iter().filter_map(|op| match op {
            Op::Put { partition, key, .. } | Op::Delete { partition, key } => {
                let counts = partition == mailbox && counted_in(key).is_some();
                counts.then_some((&**mailbox, &key[..]))
            }
            _ => None,
        });
        let places: Vec<_> = places.collect();
        let found = snapshot.get_many(&places)?;
        for ((_, key), record) in places.into_iter().zip(found) {
            if let (Some(record), Some(records)) = (record, self.records(key)) {
                *records = records.saturating_sub(record_bytes(key, &record.value).cast_signed());
            }
        }
        Ok(())
    }
}

/// Which records a record counts among.
#[derive(Debug, Clone, Copy)]
enum Records {
    Meetings,
    Documents,
}

fn counted_in(key: &[u8]) -> Option<Records> {
    let is_in = |(from, to): (&[u8], &[u8])| (from..to).contains(&key);
    if is_in(groupware_calendar::ALL) {
        return Some(Records::Meetings);
    }
    is_in(groupware_documents::ALL).then_some(Records::Documents)
}

/// What a batch adds to each mailbox. The server's own partitions are nobody's.
fn added<'a>(
    snapshot: &dyn Snapshot,
    batch: &'a Batch,
    own: &str,
) -> Result<HashMap<&'a Arc<str>, Added>, StoreError> {
    let mut by_mailbox: HashMap<_, Added> = HashMap::new();
    for op in &batch.ops {
        let partition = match op {
            Op::Put { partition, .. } | Op::Add { partition, .. } => partition,
            _ => continue,
        };
        if partition.starts_with('$') {
            continue;
        }
        let added = by_mailbox.entry(partition).or_default();
        added.mail = added.mail.saturating_add(groupware_mail::added_bytes(op));
        if let Some(after) = groupware_documents::stored_bytes_after(op) {
            let before = groupware_documents::stored_bytes(snapshot, partition)?;
            added.documents = after.cast_signed().saturating_sub(before.cast_signed());
        }
        if let Op::Put { key, value, .. } = op
            && let Some(records) = added.records(key)
        {
            *records = records.saturating_add(record_bytes(key, value).cast_signed());
        }
    }
    let absent = batch.asserts.iter().filter_map(|assert| match assert {
        Assert::Absent { partition, key } => counted_in(key).map(|_| (partition, key)),
        _ => None,
    });
    let of_own = absent
        .clone()
        .filter_map(|(partition, key)| (**partition == *own).then_some(key));
    let of_own: HashSet<_> = of_own.collect();
    for (partition, key) in absent {
        // What others get of a meeting that the caller had before is no new one.
        if let (Some(added), true) = (by_mailbox.get_mut(partition), of_own.contains(key)) {
            added.is_new = true;
        }
    }
    Ok(by_mailbox)
}

/// Whether a batch brings mailboxes more than a little, which removing, answering, and calling off do, too: more mail,
/// more of documents, a meeting that wasn't there, or much larger records.
fn grows(snapshot: &dyn Snapshot, batch: &Batch, own: &str) -> Result<bool, StoreError> {
    let is_new_meeting = |assert: &Assert| match assert {
        Assert::Absent { key, .. } => matches!(counted_in(key), Some(Records::Meetings)),
        _ => false,
    };
    if batch.asserts.iter().any(is_new_meeting) {
        return Ok(true);
    }
    let (mut mail, mut documents, mut records) = (0_i64, 0_i64, 0_i64);
    for (mailbox, mut added) in added(snapshot, batch, own)? {
        added.take_off_what_goes(snapshot, batch, mailbox)?;
        mail = mail.saturating_add(added.mail);
        documents = documents.saturating_add(added.documents);
        records = records.saturating_add(added.document_records.saturating_add(added.meetings));
    }
    Ok(mail > 0 || documents > 0 || records > LITTLE_BYTES)
}

/// What a batch puts into others' mailboxes than this one, or where it is in nobody's share. What is replaced
/// is not taken off.
fn bytes_elsewhere(batch: &Batch, own: &str) -> u64 {
    let bytes = batch.ops.iter().map(|op| match op {
        Op::Put {
            partition,
            key,
            value,
        } if **partition != *own => record_bytes(key, value),
        // Notes of changes take each other's places.
        Op::PutNumbered {
            partition,
            key,
            value,
        } if **partition != *own && key.gaps().is_empty() => {
            (key.most_bytes() + value.most_bytes()) as u64 + RECORD_BYTES
        }
        _ => 0,
    });
    bytes.sum()
}

fn record_bytes(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + RECORD_BYTES
}

#[cfg(test)]
mod tests {
    use groupware_store::{Form, Numbered, Store, StoreOptions};

    use super::*;

    const START: Duration = Duration::from_secs(1000);

    fn put(mailbox: &str, key: &str, bytes: usize) -> Batch {
        let mut batch = Batch::new();
        batch.put(mailbox, key, vec![7; bytes]);
        batch
    }

    fn check(store: &Store, quotas: &Quotas, batch: &Batch, now: Duration) -> Result<(), NoRoom> {
        let ada = Caller::at([192, 0, 2, 1].into());
        let checked = store.read(|snapshot| quotas.check((&ada, "ada"), snapshot, batch, now));
        checked.unwrap()
    }

    #[tokio::test]
    async fn a_share_is_one_over_all_services() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let quotas = Quotas::new(store.clone(), (100_000, None));
        store.commit(put("ada", "c/e/1", 60_000)).await.unwrap();
        let mut mail = Batch::new();
        mail.add("ada", "m/c/inbox", [1, 1, 30_000]);
        store.commit(mail).await.unwrap();
        let more = |bytes| new("ada", "c/e/2", bytes);
        assert_eq!(check(&store, &quotas, &more(9_000), START), Ok(()));
        let full = Err(NoRoom::Full(["ada".into()].into()));
        assert_eq!(check(&store, &quotas, &more(1_000), START), full);
        // Whoever removes something needs no room for the note of it, which takes an older one's place.
        let place = Numbered::new("m/l/").number(("m/h".into(), 0), 0, Form::Ring(9));
        let mut removal = Batch::new();
        removal.delete("ada", "m/i/inbox/1").put_numbered(
            "ada",
            place,
            Numbered::new(vec![7; 200]),
        );
        assert_eq!(check(&store, &quotas, &removal, START), Ok(()));
        // What wasn't stored after all is noticed after a while, what is removed at once.
        let later = START + FULL_FOR;
        assert_eq!(check(&store, &quotas, &more(1_000), later), Ok(()));
        let mut removal = Batch::new();
        removal.delete("ada", "c/e/1");
        assert_eq!(check(&store, &quotas, &more(60_000), later), full);
        assert_eq!(check(&store, &quotas, &removal, later), Ok(()));
        store.commit(removal).await.unwrap();
        assert_eq!(check(&store, &quotas, &more(60_000), later), Ok(()));
        // Whoever sends it, and unless there is no quota.
        let trusted = Caller::internal();
        let huge = more(200_000);
        let by_trusted =
            || store.read(|snapshot| quotas.check((&trusted, "ada"), snapshot, &huge, later));
        assert_eq!(by_trusted().unwrap(), full);
        quotas.set((UNBOUNDED, None));
        assert_eq!(by_trusted().unwrap(), Ok(()));
        assert_eq!(check(&store, &quotas, &huge, later), Ok(()));
        quotas.set((100_000, None));
        assert_eq!(by_trusted().unwrap(), full);
    }

    fn new(mailbox: &str, key: &str, bytes: usize) -> Batch {
        let mut batch = put(mailbox, key, bytes);
        // By Ada, who has it, too.
        batch.assert_absent("ada", key).assert_absent(mailbox, key);
        batch
    }

    #[tokio::test]
    async fn what_does_not_grow_needs_no_room() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let quotas = Quotas::new(store.clone(), (16_000, None));
        let mut full = put("ada", "c/e/1", 20_000);
        full.put("bob", "c/e/1", vec![7; 16_000]);
        store.commit(full).await.unwrap();
        // Moved and marked: as many bytes as there were.
        let mut moved = Batch::new();
        moved
            .put_numbered("ada", Numbered::new("m/i/trash/1"), Numbered::new("{}"))
            .add("ada", "m/c/inbox", [-1, 0, -500])
            .add("ada", "m/c/trash", [1, 0, 500]);
        assert_eq!(check(&store, &quotas, &moved, START), Ok(()));
        let full = |mailbox: &str| Err(NoRoom::Full([mailbox.into()].into()));
        let may = |batch: &Batch| check(&store, &quotas, batch, START);
        // Far beyond the share nothing may become larger.
        assert_eq!(may(&put("ada", "c/e/1", 19_000)), Ok(()));
        assert_eq!(may(&put("ada", "c/e/1", 20_001)), full("ada"));
        assert_eq!(may(&put("ada", "d/d/x", 10)), full("ada"));
        let mut message = Batch::new();
        message.add("ada", "m/c/inbox", [1, 1, 10]);
        assert_eq!(may(&message), full("ada"));
        // A little beyond, what is there may, and who has dropped a meeting gets it again; no new one comes.
        assert_eq!(may(&put("bob", "c/e/1", 16_500)), Ok(()));
        assert_eq!(may(&put("bob", "c/e/1", 26_000)), full("bob"));
        let mut again = put("bob", "c/e/2", 500);
        again.assert_absent("bob", "c/e/2");
        assert_eq!(may(&again), Ok(()));
        assert_eq!(may(&new("bob", "c/e/3", 10)), full("bob"));
    }

    #[tokio::test]
    async fn a_disk_that_is_nearly_full_takes_what_makes_nobody_larger() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let mut there = put("ada", "c/e/1", 900);
        there.put("bob", "c/e/1", vec![7; 800]);
        store.commit(there).await.unwrap();
        let grows = |batch: &Batch| store.read(|snapshot| grows(snapshot, batch, "ada"));
        assert!(grows(&new("ada", "c/e/2", 1)).unwrap());
        let mut message = Batch::new();
        message.add("ada", "m/c/inbox", [1, 1, 10]);
        assert!(grows(&message).unwrap());
        let mut trashed = Batch::new();
        trashed
            .add("ada", "m/c/inbox", [-1, 0, -10])
            .add("ada", "m/c/trash", [1, 0, 10]);
        assert!(!grows(&trashed).unwrap());
        // A meeting that is called off takes a little more with those who are told of it.
        let mut called_off = put("bob", "c/e/1", 850);
        called_off.delete("ada", "c/e/1");
        assert!(!grows(&called_off).unwrap());
        assert!(grows(&put("bob", "c/e/1", 6000)).unwrap());
        // An upload whose bytes are there becomes an attachment: its record is new, its bytes are counted.
        let mut attached = new("ada", "d/a/x", 300);
        attached.put("ada", "d/q", "{\"bytes\":0}");
        assert!(!grows(&attached).unwrap());
        attached.put("ada", "d/q", "{\"bytes\":1}");
        assert!(grows(&attached).unwrap());
    }

    #[tokio::test]
    async fn documents_take_what_they_grow_by() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let quotas = Quotas::new(store.clone(), (10_000, None));
        let usage = |bytes: u64| format!(r#"{{"bytes":{bytes}}}"#);
        let mut full = put("ada", "d/d/x/1", 3000);
        full.put("ada", "d/q", usage(2000));
        full.add("ada", "m/c/inbox", [1, 1, 8000]);
        store.commit(full).await.unwrap();
        let full = Err(NoRoom::Full(["ada".into()].into()));
        let changed = |bytes, counted| {
            let mut batch = put("ada", "d/d/x/1", bytes);
            batch.put("ada", "d/q", usage(counted));
            check(&store, &quotas, &batch, START)
        };
        assert_eq!(changed(3100, 2100), full);
        assert_eq!(changed(3000, 1900), Ok(()));
        // A file without content that is attached to one that is there; and many of them.
        assert_eq!(changed(3100, 2000), Ok(()));
        assert_eq!(changed(6000, 2000), full);
        let mut removed = Batch::new();
        removed.delete("ada", "d/d/x/1").put("ada", "d/q", usage(0));
        assert_eq!(check(&store, &quotas, &removed, START), Ok(()));
        assert_eq!(
            check(&store, &quotas, &new("ada", "d/d/x/2", 2), START),
            full
        );
        // What is set aside for an upload and isn't needed is free at once.
        let mut settled = Batch::new();
        settled.put("ada", "d/q", usage(1000));
        assert_eq!(check(&store, &quotas, &settled, START), Ok(()));
        store.commit(settled).await.unwrap();
        assert_eq!(changed(3100, 1500), Ok(()));
    }

    #[tokio::test]
    async fn what_was_refused_takes_no_room() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let quotas = Quotas::new(store.clone(), (300 << 20, None));
        let meeting = new("bob", "c/e/1", 200 << 20);
        assert_eq!(check(&store, &quotas, &meeting, START), Ok(()));
        for _ in 0..3 {
            let refused = check(&store, &quotas, &put("bob", "c/e/1", 90 << 20), START);
            assert!(matches!(refused, Err(NoRoom::TooMuch(_))), "{refused:?}");
        }
        let small = new("bob", "c/e/2", 90_000);
        assert_eq!(check(&store, &quotas, &small, START), Ok(()));
    }

    #[test]
    fn what_is_put_into_others_mailboxes_has_a_rate() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let quotas = Quotas::new(store.clone(), (u64::MAX, None));
        let meeting = put("bob", "c/e/1", 64 << 20);
        let sent = (0..9).take_while(|_| check(&store, &quotas, &meeting, START).is_ok());
        assert_eq!(sent.count(), 3);
        let own = put("ada", "c/e/1", 64 << 20);
        assert_eq!(check(&store, &quotas, &own, START), Ok(()));
        let refused = check(&store, &quotas, &meeting, START);
        assert!(matches!(refused, Err(NoRoom::TooMuch(_))), "{refused:?}");
        let later = START + DELIVERED_WITHIN;
        assert_eq!(check(&store, &quotas, &meeting, later), Ok(()));
    }
}
