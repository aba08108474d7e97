//! What users store, over all services, and what anybody puts into others' mailboxes, or where it is in
//! nobody's share.
//!
//! A user's share of the disk is one: messages, meetings, documents, and uploads count in it together.
//! What a mailbox holds is counted when it grows first and then kept up to date by what is added; it is
//! counted anew where the share seems to be used up, and now and then. Whose share is used up can still read,
//! mark, move, and remove; and what others change of a meeting that both have is not refused for it. Whoever is
//! trusted, as a study's generator is, is not counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_net::Source;
use groupware_store::{Assert, Batch, Op, Snapshot, Store, StoreError};

use crate::caller::Caller;
use crate::limit::Limiter;
use crate::meetings_bytes::{MeetingsBytes, RECORD_BYTES};

/// Mailboxes whose counts are kept; beyond, all are counted anew.
const KEPT: usize = 16_384;
/// How long a count is kept, for what was removed meanwhile.
const KEPT_FOR: Duration = Duration::from_secs(600);
/// How long a mailbox that was found to be full is taken to be so: counting takes time.
const FULL_FOR: Duration = Duration::from_secs(10);
/// KiB that one source may put into others' mailboxes at once: 256 MiB, …
const DELIVERED_KIB: u32 = 256 << 10;
/// … and again in an hour.
const DELIVERED_WITHIN: Duration = Duration::from_secs(3600);

/// Why something isn't stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The share of this mailbox's owner is used up.
    Full(Arc<str>),
    /// The sender has put so much into others' mailboxes that it has to wait.
    TooMuch(Duration),
}

impl NoRoom {
    /// A sentence for the user with this mailbox.
    pub(crate) fn message(&self, own: &str) -> String {
        match self {
            Self::Full(mailbox) if **mailbox == *own => {
                "This would take more than your share of the disk.".to_owned()
            }
            Self::Full(mailbox) => format!("The mailbox of {mailbox} is full."),
            Self::TooMuch(wait) => {
                let seconds = wait.as_secs() + 1;
                format!("You have sent very much. Try again in {seconds} seconds.")
            }
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
    quota_bytes: AtomicU64,
    counts: Mutex<HashMap<Arc<str>, Count>>,
    meetings: MeetingsBytes,
    delivered: Limiter<Source>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    bytes: u64,
    counted: Duration,
}

impl Quotas {
    pub(crate) fn new(store: Store, quota_bytes: u64) -> Self {
        Self {
            quota_bytes: AtomicU64::new(quota_bytes),
            counts: Mutex::default(),
            meetings: MeetingsBytes::new(store),
            delivered: Limiter::new(DELIVERED_KIB, DELIVERED_WITHIN / DELIVERED_KIB),
        }
    }

    /// Has users store so many bytes from now on.
    pub(crate) fn set(&self, quota_bytes: u64) {
        self.quota_bytes.store(quota_bytes, Relaxed);
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
        let source = caller.source();
        if source == Source::Trusted {
            return Ok(Ok(()));
        }
        let mut added = added(snapshot, batch)?;
        for (mailbox, added) in &mut added {
            let is_own = ***mailbox == *own;
            if !self.has_room(snapshot, batch, (mailbox, is_own), added, now)? {
                return Ok(Err(NoRoom::Full(Arc::clone(mailbox))));
            }
        }
        let delivered = bytes_elsewhere(batch, own);
        if delivered > 0
            && let Err(wait) = self.put_elsewhere(caller, delivered, now)
        {
            return Ok(Err(NoRoom::TooMuch(wait)));
        }
        for (mailbox, added) in &added {
            self.add(mailbox, added.bytes());
            self.meetings.add(mailbox, added.meetings);
        }
        Ok(Ok(()))
    }

    /// Whether a mailbox has room for what a batch adds to it, which is then known better.
    fn has_room(
        &self,
        snapshot: &dyn Snapshot,
        batch: &Batch,
        (mailbox, is_own): (&Arc<str>, bool),
        added: &mut Added,
        now: Duration,
    ) -> Result<bool, StoreError> {
        let asked = match is_own || added.is_new {
            true => added.bytes(),
            // Who changes a meeting changes it for all who have it, whether they have room or not.
            false => added.counted.max(0).cast_unsigned(),
        };
        if asked == 0 || self.fits(snapshot, (mailbox, asked), now)? {
            return Ok(true);
        }
        if !is_own {
            return Ok(false);
        }
        let meetings = meetings_grow(snapshot, batch, mailbox)?;
        added.counted = added.counted.saturating_add(meetings.min(0));
        added.meetings = meetings.max(0).cast_unsigned();
        let grown = added.bytes();
        Ok(grown == 0 || (grown < asked && self.fits(snapshot, (mailbox, grown), now)?))
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

    /// Whether so many bytes that a caller sends have room in a mailbox, as far as that is known before they
    /// are there.
    pub(crate) fn may_take(
        &self,
        caller: &Caller,
        snapshot: &dyn Snapshot,
        (mailbox, bytes): (&Arc<str>, u64),
        now: Duration,
    ) -> Result<bool, StoreError> {
        match caller.source() {
            Source::Trusted => Ok(true),
            _ => self.fits(snapshot, (mailbox, bytes), now),
        }
    }

    /// The bytes that a user may still store.
    pub(crate) fn room(
        &self,
        snapshot: &dyn Snapshot,
        mailbox: &str,
        now: Duration,
    ) -> Result<u64, StoreError> {
        let used = self.used_bytes(snapshot, mailbox, now)?;
        Ok(self.quota_bytes.load(Relaxed).saturating_sub(used))
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
        now: Duration,
    ) -> Result<bool, StoreError> {
        let known = self.lock().get(mailbox).copied();
        let is_fresh = |count: &Count| now < count.counted + KEPT_FOR;
        if let Some(count) = known.filter(is_fresh) {
            if count.bytes.saturating_add(added) <= self.quota_bytes.load(Relaxed) {
                return Ok(true);
            }
            if now < count.counted + FULL_FOR {
                return Ok(false);
            }
        }
        let bytes = self.used_bytes(snapshot, mailbox, now)?;
        let counted = now;
        self.note(mailbox, Count { bytes, counted });
        Ok(bytes.saturating_add(added) <= self.quota_bytes.load(Relaxed))
    }

    fn note(&self, mailbox: &Arc<str>, count: Count) {
        let mut counts = self.lock();
        if counts.len() >= KEPT && !counts.contains_key(mailbox) {
            counts.clear();
        }
        counts.insert(Arc::clone(mailbox), count);
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

/// What a batch adds to a mailbox.
#[derive(Debug, Clone, Copy, Default)]
struct Added {
    /// Messages, documents, and uploads: as much as their counts grow by, or less.
    counted: i64,
    /// Meetings: at most, since what is replaced is not taken off.
    meetings: u64,
    /// There is a meeting among them that was not in the mailbox.
    is_new: bool,
}

impl Added {
    fn bytes(&self) -> u64 {
        let meetings = i64::try_from(self.meetings).unwrap_or(i64::MAX);
        let bytes = self.counted.saturating_add(meetings);
        bytes.max(0).cast_unsigned()
    }
}

/// What a batch adds to each mailbox. The server's own partitions are nobody's.
fn added<'a>(
    snapshot: &dyn Snapshot,
    batch: &'a Batch,
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
        let counted = match groupware_documents::stored_bytes_after(op) {
            Some(after) => {
                let before = groupware_documents::stored_bytes(snapshot, partition)?;
                after.cast_signed().saturating_sub(before.cast_signed())
            }
            None => groupware_mail::added_bytes(op),
        };
        added.counted = added.counted.saturating_add(counted);
        if let Op::Put { key, value, .. } = op
            && is_meetings(key)
        {
            added.meetings += record_bytes(key, value);
        }
    }
    for assert in &batch.asserts {
        if let Assert::Absent { partition, key } = assert
            && is_meetings(key)
            && let Some(added) = by_mailbox.get_mut(partition)
        {
            added.is_new = true;
        }
    }
    Ok(by_mailbox)
}

/// By how much a batch has the meetings of a mailbox grow, or shrink.
fn meetings_grow(
    snapshot: &dyn Snapshot,
    batch: &Batch,
    mailbox: &Arc<str>,
) -> Result<i64, StoreError> {
    let (mut places, mut put) = (Vec::new(), 0);
    for op in &batch.ops {
        match op {
            Op::Put {
                partition,
                key,
                value,
            } if partition == mailbox && is_meetings(key) => {
                put += record_bytes(key, value);
                places.push((&**mailbox, &key[..]));
            }
            Op::Delete { partition, key } if partition == mailbox && is_meetings(key) => {
                places.push((&**mailbox, &key[..]));
            }
            _ => {}
        }
    }
    let found = snapshot.get_many(&places)?;
    let found = places.iter().zip(found);
    let gone: u64 = found
        .filter_map(|((_, key), record)| Some(record_bytes(key, &record?.value)))
        .sum();
    Ok(put.cast_signed().saturating_sub(gone.cast_signed()))
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

fn is_meetings(key: &[u8]) -> bool {
    let (from, to) = groupware_calendar::ALL;
    (from..to).contains(&key)
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
        let quotas = Quotas::new(store.clone(), 100_000);
        store.commit(put("ada", "c/e/1", 60_000)).await.unwrap();
        let mut mail = Batch::new();
        mail.add("ada", "m/c/inbox", [1, 1, 30_000]);
        store.commit(mail).await.unwrap();
        let more = |bytes| put("ada", "c/e/2", bytes);
        assert_eq!(check(&store, &quotas, &more(9_000), START), Ok(()));
        let full = Err(NoRoom::Full("ada".into()));
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
        // What wasn't stored after all, and what was removed, is noticed after a while.
        let later = START + FULL_FOR;
        assert_eq!(check(&store, &quotas, &more(1_000), later), Ok(()));
        let mut removal = Batch::new();
        removal.delete("ada", "c/e/1");
        store.commit(removal).await.unwrap();
        let later = later + FULL_FOR;
        assert_eq!(check(&store, &quotas, &more(60_000), later), Ok(()));
        let trusted = Caller::internal();
        let huge = more(200_000);
        let checked = store.read(|snapshot| quotas.check((&trusted, ""), snapshot, &huge, later));
        assert_eq!(checked.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn what_does_not_grow_needs_no_room() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let quotas = Quotas::new(store.clone(), 10_000);
        let mut full = put("ada", "c/e/1", 20_000);
        full.put("bob", "c/e/1", vec![7; 20_000]);
        store.commit(full).await.unwrap();
        // Moved and marked: as many bytes as there were.
        let mut moved = Batch::new();
        moved
            .put_numbered("ada", Numbered::new("m/i/trash/1"), Numbered::new("{}"))
            .add("ada", "m/c/inbox", [-1, 0, -500])
            .add("ada", "m/c/trash", [1, 0, 500]);
        assert_eq!(check(&store, &quotas, &moved, START), Ok(()));
        let full = |mailbox: &str| Err(NoRoom::Full(mailbox.into()));
        // One of her own may become smaller, and not larger; one of his that she has, too, either.
        assert_eq!(
            check(&store, &quotas, &put("ada", "c/e/1", 19_000), START),
            Ok(())
        );
        let larger = put("ada", "c/e/1", 20_001);
        assert_eq!(check(&store, &quotas, &larger, START), full("ada"));
        assert_eq!(
            check(&store, &quotas, &put("bob", "c/e/1", 20_001), START),
            Ok(())
        );
        let mut new = put("bob", "c/e/2", 10);
        new.assert_absent("bob", "c/e/2");
        assert_eq!(check(&store, &quotas, &new, START), full("bob"));
    }

    #[tokio::test]
    async fn what_was_refused_takes_no_room() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let quotas = Quotas::new(store.clone(), 300 << 20);
        let mut meeting = put("bob", "c/e/1", 200 << 20);
        meeting.assert_absent("bob", "c/e/1");
        assert_eq!(check(&store, &quotas, &meeting, START), Ok(()));
        for _ in 0..3 {
            let refused = check(&store, &quotas, &put("bob", "c/e/1", 90 << 20), START);
            assert!(matches!(refused, Err(NoRoom::TooMuch(_))), "{refused:?}");
        }
        let mut small = put("bob", "c/e/2", 90_000);
        small.assert_absent("bob", "c/e/2");
        assert_eq!(check(&store, &quotas, &small, START), Ok(()));
    }

    #[test]
    fn what_is_put_into_others_mailboxes_has_a_rate() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let quotas = Quotas::new(store.clone(), u64::MAX);
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
