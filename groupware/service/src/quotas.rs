//! What users store, over all services, and what anybody puts into others' mailboxes, or where it is in
//! nobody's share.
//!
//! A user's share of the disk is one: messages, meetings, documents, and uploads count in it together.
//! What a mailbox holds is counted when it changes first and then kept up to date by what is added; it is
//! counted anew where the share seems to be used up, and now and then. Whoever is trusted, as a study's
//! generator is, is not counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_net::Source;
use groupware_store::{Batch, Op, Snapshot, Store, StoreError};

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
        let (added, delivered) = added(batch, own);
        for (mailbox, added) in &added {
            if !self.fits(snapshot, (mailbox, added.bytes), now)? {
                return Ok(Err(NoRoom::Full(Arc::clone(mailbox))));
            }
        }
        for (mailbox, added) in &added {
            self.meetings.add(mailbox, added.meetings);
        }
        if delivered == 0 {
            return Ok(Ok(()));
        }
        let put = self.put_elsewhere(caller, delivered, now);
        Ok(put.map_err(NoRoom::TooMuch))
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
            let bytes = count.bytes.saturating_add(added);
            if bytes <= self.quota_bytes.load(Relaxed) {
                self.note(mailbox, Count { bytes, ..count });
                return Ok(true);
            }
            if now < count.counted + FULL_FOR {
                return Ok(false);
            }
        }
        let bytes = self.used_bytes(snapshot, mailbox, now)?;
        let fits = bytes.saturating_add(added) <= self.quota_bytes.load(Relaxed);
        let bytes = if fits { bytes + added } else { bytes };
        let counted = now;
        self.note(mailbox, Count { bytes, counted });
        Ok(fits)
    }

    fn note(&self, mailbox: &Arc<str>, count: Count) {
        let mut counts = self.lock();
        if counts.len() >= KEPT && !counts.contains_key(mailbox) {
            counts.clear();
        }
        counts.insert(Arc::clone(mailbox), count);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a batch adds to a mailbox.
#[derive(Debug, Clone, Copy, Default)]
struct Added {
    bytes: u64,
    /// Those among them that are of meetings.
    meetings: u64,
}

/// What a batch adds to each mailbox, and to others than this one in all. What is replaced is not taken
/// off; a share that is used up is counted anew.
fn added<'a>(batch: &'a Batch, own: &str) -> (HashMap<&'a Arc<str>, Added>, u64) {
    let mut by_mailbox: HashMap<_, Added> = HashMap::new();
    let mut delivered = 0;
    for op in &batch.ops {
        let (partition, key, bytes) = match op {
            Op::Put {
                partition,
                key,
                value,
            } => (partition, &key[..], key.len() + value.len()),
            // Notes of changes take each other's places: whoever removes something needs no room.
            Op::PutNumbered { key, .. } if !key.gaps().is_empty() => continue,
            Op::PutNumbered {
                partition,
                key,
                value,
            } => (
                partition,
                key.around(),
                key.most_bytes() + value.most_bytes(),
            ),
            _ => continue,
        };
        let bytes = bytes as u64 + RECORD_BYTES;
        if **partition != *own {
            delivered += bytes;
        }
        // The server's own partitions are nobody's.
        if !partition.starts_with('$') {
            let added = by_mailbox.entry(partition).or_default();
            added.bytes += bytes;
            let (from, to) = groupware_calendar::ALL;
            let is_meeting = (from..to).contains(&key);
            added.meetings += if is_meeting { bytes } else { 0 };
        }
    }
    (by_mailbox, delivered)
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
