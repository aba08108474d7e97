//! Quotas: what users store, over all services, and what callers write to others' accounts, or to
//! no user's quota.
//!
//! A user has one quota: messages, meetings, documents, and uploads count together. An account is measured
//! when it first grows, then updated by additions, and measured again when the quota seems exhausted, and
//! periodically. A user without quota left can still read, mark, move, and remove; and existing records, such
//! as a meeting that others change, may exceed the quota slightly. This holds for every client: quotas don't
//! depend on addresses. Writes of trusted programs, such as a load generator, to others' accounts have no
//! rate limit. On a nearly full disk, stored data can't grow.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_net::Principal;
use groupware_runtime::{Caller, Limiter};
use groupware_store::{Assert, Batch, Op, Snapshot, Store, StoreError};

use crate::meetings_bytes::{MeetingsBytes, RECORD_BYTES};

/// The maximum number of kept counts; beyond it, all are measured again.
const KEPT: usize = 16_384;
/// The maximum age of a count, after which removals are noticed.
const KEPT_FOR: Duration = Duration::from_secs(600);
/// The time for which a full account is not measured again: measuring takes time.
const FULL_FOR: Duration = Duration::from_secs(10);
/// Existing records may grow until the owner exceeds the quota by this part: a change of a meeting
/// applies to all attendees, with or without room.
const MORE_PART: u64 = 8;
/// The growth of records allowed on a nearly full disk: more than a reply to a large meeting, or a name.
const LITTLE_BYTES: i64 = 4 << 10;
/// A quota of at least this many bytes is none: the greatest number in a configuration file.
const UNBOUNDED: u64 = i64::MAX.unsigned_abs();
/// The KiB that one principal may write to others' accounts at once: 256 MiB, …
const DELIVERED_KIB: u32 = 256 << 10;
/// … and the time in which they are refilled.
const DELIVERED_WITHIN: Duration = Duration::from_secs(3600);

/// The reason why a batch is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The quotas of the owners of these accounts are exhausted.
    Full(BTreeSet<Arc<str>>),
    /// The sender has written too much to others' accounts, and must wait this long.
    TooMuch(Duration),
    /// The disk is nearly full.
    Disk,
}

impl NoRoom {
    /// Returns the message for the user with this account.
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

/// A one-shot check of what a request stores: repeated decisions store the same, and count once.
#[derive(Debug)]
pub(crate) struct QuotaCheck {
    now: Duration,
    is_done: AtomicBool,
}

impl QuotaCheck {
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            now,
            is_done: AtomicBool::new(false),
        }
    }

    /// Returns whether the batch may be stored, by [`Quotas::check`].
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
    /// The maximum bytes that a user stores.
    bytes: AtomicU64,
    /// The maximum bytes of the messages of one account; the greatest number for none.
    mail_bytes: AtomicU64,
    counts: Mutex<HashMap<Arc<str>, Count>>,
    store: Store,
    meetings: MeetingsBytes,
    delivered: Limiter<Principal>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    bytes: u64,
    counted: Duration,
    /// Something was removed since, so that a new count may be smaller.
    is_less: bool,
}

impl Quotas {
    /// Creates the quotas: the maximum bytes of a user, and of the messages of one account.
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

    /// Replaces the quotas.
    pub(crate) fn set(&self, (bytes, mail_bytes): (u64, Option<u64>)) {
        // Without a quota, additions are not counted.
        self.lock().clear();
        self.bytes.store(bytes, Relaxed);
        self.mail_bytes
            .store(mail_bytes.unwrap_or(u64::MAX), Relaxed);
    }

    /// The maximum bytes that a user stores.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns true if there is a maximum.
    fn is_bounded(&self) -> bool {
        self.bytes() < UNBOUNDED
    }

    /// The maximum bytes of the messages of one account.
    pub(crate) fn mail_bytes(&self) -> Option<u64> {
        Some(self.mail_bytes.load(Relaxed)).filter(|bytes| *bytes < UNBOUNDED)
    }

    /// Checks whether a caller's batch may be stored: whether the accounts that it grows have
    /// room, and the caller may write this much to others. `own` is the caller's account.
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

    /// Returns true if an account has room for a batch's additions. Computes these more precisely if needed.
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

    /// Takes bytes from the caller's allowance for writes to others' accounts, or to no user's
    /// quota. If it is too small, returns the time until it is refilled.
    pub(crate) fn put_elsewhere(
        &self,
        caller: &Caller,
        bytes: u64,
        now: Duration,
    ) -> Result<(), Duration> {
        let source = caller.source();
        if source == Principal::Trusted {
            return Ok(());
        }
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        self.delivered.admit(source, kib, now)
    }

    /// Returns true if this many bytes have room in an account, as far as that is known before they
    /// arrive.
    pub(crate) fn may_take(
        &self,
        snapshot: &dyn Snapshot,
        (mailbox, bytes): (&Arc<str>, u64),
        now: Duration,
    ) -> Result<bool, StoreError> {
        Ok(!self.is_bounded() || self.fits(snapshot, (mailbox, bytes), self.bytes(), now)?)
    }

    /// Returns the bytes that a user may still store.
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

    /// Measures an account: messages by their folders' counters, documents and uploads by their
    /// usage record, meetings by their records.
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

    /// Marks the accounts from which a batch removes something, or whose counters it lowers: they may have room again.
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

    /// Adds bytes to an account's count.
    fn add(&self, mailbox: &Arc<str>, bytes: u64) {
        if let Some(count) = self.lock().get_mut(mailbox) {
            count.bytes = count.bytes.saturating_add(bytes);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes that a batch adds to an account.
#[derive(Debug, Clone, Copy, Default)]
struct Added {
    /// Messages: the difference of their folders' counters.
    mail: i64,
    /// Documents and uploads: the difference of their usage record.
    documents: i64,
    /// Their records, some of which are not in the usage: an upper bound, since removals are not subtracted.
    document_records: i64,
    /// Records of meetings, likewise.
    meetings: i64,
    /// Whether a meeting, document, or upload among them is new.
    is_new: bool,
}

impl Added {
    fn bytes(&self) -> u64 {
        let documents = self.documents.max(self.document_records);
        let bytes = self.mail.saturating_add(documents);
        bytes.saturating_add(self.meetings).max(0).cast_unsigned()
    }

    /// Returns the sum for records with this key, if they are counted individually.
    fn records(&mut self, key: &[u8]) -> Option<&mut i64> {
        match counted_in(key)? {
            Records::Meetings => Some(&mut self.meetings),
            Records::Documents => Some(&mut self.document_records),
        }
    }

    /// Subtracts what a batch replaces and removes.
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

/// The kind of record that a key is counted as.
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

/// Returns what a batch adds to each account. The server's own partitions belong to no user.
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
        // Copies of a meeting that the caller had before are not new.
        if let (Some(added), true) = (by_mailbox.get_mut(partition), of_own.contains(key)) {
            added.is_new = true;
        }
    }
    Ok(by_mailbox)
}

/// Returns true if a batch grows accounts by more than a little, which removals, replies, and
/// cancellations need, too: more mail or documents, a new meeting, or much larger records.
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

/// Returns the bytes that a batch writes to accounts other than this one, or to no user's quota.
/// What it replaces is not subtracted.
fn bytes_elsewhere(batch: &Batch, own: &str) -> u64 {
    let bytes = batch.ops.iter().map(|op| match op {
        Op::Put {
            partition,
            key,
            value,
        } if **partition != *own => record_bytes(key, value),
        // Change-log entries replace each other.
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
        // A removal needs no room for its change-log entry, which replaces an older one.
        let place = Numbered::new("m/l/").number(("m/h".into(), 0), 0, Form::Ring(9));
        let mut removal = Batch::new();
        removal.delete("ada", "m/i/inbox/1").put_numbered(
            "ada",
            place,
            Numbered::new(vec![7; 200]),
        );
        assert_eq!(check(&store, &quotas, &removal, START), Ok(()));
        // An uncommitted addition is noticed after a while, a removal at once.
        let later = START + FULL_FOR;
        assert_eq!(check(&store, &quotas, &more(1_000), later), Ok(()));
        let mut removal = Batch::new();
        removal.delete("ada", "c/e/1");
        assert_eq!(check(&store, &quotas, &more(60_000), later), full);
        assert_eq!(check(&store, &quotas, &removal, later), Ok(()));
        store.commit(removal).await.unwrap();
        assert_eq!(check(&store, &quotas, &more(60_000), later), Ok(()));
        // From any sender, and unless there is no quota.
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
        // By Ada, who has a copy, too.
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
        // Moved and marked: the size stays.
        let mut moved = Batch::new();
        moved
            .put_numbered("ada", Numbered::new("m/i/trash/1"), Numbered::new("{}"))
            .add("ada", "m/c/inbox", [-1, 0, -500])
            .add("ada", "m/c/trash", [1, 0, 500]);
        assert_eq!(check(&store, &quotas, &moved, START), Ok(()));
        let full = |mailbox: &str| Err(NoRoom::Full([mailbox.into()].into()));
        let may = |batch: &Batch| check(&store, &quotas, batch, START);
        // Far above the quota nothing may grow.
        assert_eq!(may(&put("ada", "c/e/1", 19_000)), Ok(()));
        assert_eq!(may(&put("ada", "c/e/1", 20_001)), full("ada"));
        assert_eq!(may(&put("ada", "d/d/x", 10)), full("ada"));
        let mut message = Batch::new();
        message.add("ada", "m/c/inbox", [1, 1, 10]);
        assert_eq!(may(&message), full("ada"));
        // Slightly above it, existing records may grow, and a dropped meeting may return; new ones are rejected.
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
        // A cancelled meeting grows slightly for the notified attendees.
        let mut called_off = put("bob", "c/e/1", 850);
        called_off.delete("ada", "c/e/1");
        assert!(!grows(&called_off).unwrap());
        assert!(grows(&put("bob", "c/e/1", 6000)).unwrap());
        // A complete upload becomes an attachment: its record is new, its bytes are counted already.
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
        // An empty file attached to an existing document; and many of them.
        assert_eq!(changed(3100, 2000), Ok(()));
        assert_eq!(changed(6000, 2000), full);
        let mut removed = Batch::new();
        removed.delete("ada", "d/d/x/1").put("ada", "d/q", usage(0));
        assert_eq!(check(&store, &quotas, &removed, START), Ok(()));
        assert_eq!(
            check(&store, &quotas, &new("ada", "d/d/x/2", 2), START),
            full
        );
        // The unused reservation of an upload is released at once.
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
