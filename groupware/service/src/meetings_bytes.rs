//! The size of users' meetings. A calendar has no counter, so the records are measured. A small
//! calendar is measured on each request; a large one in the background, and updated by additions
//! until the next time.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groupware_runtime::blocking;
use groupware_store::{Snapshot, Store, StoreError};

/// The number of records measured in the foreground: a millisecond or two.
const FEW: usize = 1000;
/// The validity of a background count, after which removals are noticed.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// The maximum number of kept counts; beyond it, all are measured again.
const KEPT: usize = 4096;
/// The maximum number of concurrent counts.
const AT_ONCE: usize = 2;
/// The approximate overhead of a record besides its key and value.
pub(crate) const RECORD_BYTES: u64 = 200;

/// The counts of large calendars.
#[derive(Debug)]
pub(crate) struct MeetingsBytes {
    store: Store,
    counts: Arc<Mutex<HashMap<Arc<str>, Count>>>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    bytes: u64,
    /// The time of the last count.
    at: Duration,
    /// The bytes at the start of the count under way, if there is one.
    under_way: Option<u64>,
}

impl MeetingsBytes {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            counts: Arc::default(),
        }
    }

    /// Returns the known size of an account's meetings: for a large calendar without a count, the
    /// size of its first records.
    pub(crate) fn of(
        &self,
        snapshot: &dyn Snapshot,
        mailbox: &str,
        now: Duration,
    ) -> Result<u64, StoreError> {
        let known = self.lock().get(mailbox).copied();
        let is_good = |count: &Count| count.under_way.is_some() || now < count.at + GOOD_FOR;
        if let Some(count) = known.filter(is_good) {
            return Ok(count.bytes);
        }
        let (bytes, is_all) = measured(snapshot, mailbox, FEW)?;
        if is_all {
            self.lock().remove(mailbox);
            return Ok(bytes);
        }
        let bytes = known.map_or(bytes, |count| count.bytes.max(bytes));
        self.count_apart(mailbox, bytes, now);
        Ok(bytes)
    }

    /// Adds bytes to an account's count.
    pub(crate) fn add(&self, mailbox: &str, bytes: u64) {
        if let Some(count) = self.lock().get_mut(mailbox) {
            count.bytes = count.bytes.saturating_add(bytes);
        }
    }

    /// Starts a background count, unless the maximum number is running.
    fn count_apart(&self, mailbox: &str, bytes: u64, now: Duration) {
        let mut counts = self.lock();
        let under_way = counts.values().filter(|count| count.under_way.is_some());
        if under_way.count() >= AT_ONCE {
            return;
        }
        if counts.len() >= KEPT {
            counts.retain(|_, count| count.under_way.is_some());
        }
        let mailbox: Arc<str> = mailbox.into();
        let count = Count {
            bytes,
            at: now,
            under_way: Some(bytes),
        };
        counts.insert(Arc::clone(&mailbox), count);
        drop(counts);
        let (store, counts) = (self.store.clone(), Arc::clone(&self.counts));
        blocking::spawn_background(move || {
            let found = store.read(|snapshot| measured(snapshot, &mailbox, usize::MAX));
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(count) = counts.get_mut(&mailbox) else {
                return;
            };
            let before = count.under_way.take().unwrap_or_default();
            // After a failed read the estimate stays, and the next request counts again.
            if let Ok((bytes, _)) = found {
                count.bytes = bytes.saturating_add(count.bytes.saturating_sub(before));
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Measures the first records of a calendar; returns whether these are all.
fn measured(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    most: usize,
) -> Result<(u64, bool), StoreError> {
    let (from, to) = groupware_calendar::ALL;
    let (mut bytes, mut records) = (0, 0);
    let limit = most.saturating_add(1);
    snapshot.measure(mailbox, from, Some(to), limit, &mut |key, size| {
        records += 1;
        bytes += key.len() as u64 + size + RECORD_BYTES;
        ControlFlow::Continue(())
    })?;
    Ok((bytes, records <= most))
}

#[cfg(test)]
mod tests {
    use groupware_store::{Batch, StoreOptions};

    use super::*;

    const START: Duration = Duration::from_secs(1000);
    /// The key's seven bytes, a value of ten, and a record's overhead.
    const BYTES: u64 = 7 + 10 + RECORD_BYTES;

    fn put(store: &Store, numbers: std::ops::Range<u64>) {
        let mut batch = Batch::new();
        for number in numbers {
            batch.put("ada", format!("c/e{number:04}"), vec![7; 10]);
        }
        store.commit_blocking(batch).unwrap();
    }

    fn of(store: &Store, meetings: &MeetingsBytes, now: Duration) -> u64 {
        let found = store.read(|snapshot| meetings.of(snapshot, "ada", now));
        found.unwrap()
    }

    /// Returns the size once no count is running.
    fn counted(store: &Store, meetings: &MeetingsBytes, now: Duration) -> u64 {
        let is_under_way = || {
            let counts = meetings.lock();
            counts.values().any(|count| count.under_way.is_some())
        };
        of(store, meetings, now);
        while is_under_way() {
            std::thread::yield_now();
        }
        of(store, meetings, now)
    }

    #[test]
    fn few_are_counted_at_once() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let meetings = MeetingsBytes::new(store.clone());
        assert_eq!(of(&store, &meetings, START), 0);
        put(&store, 0..FEW as u64);
        assert_eq!(of(&store, &meetings, START), FEW as u64 * BYTES);
        assert!(meetings.lock().is_empty());
    }

    #[test]
    fn many_are_counted_apart_and_then_by_what_is_added() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let meetings = MeetingsBytes::new(store.clone());
        put(&store, 0..3000);
        // The size of the first records is known at once, without waiting for the rest.
        assert!(of(&store, &meetings, START) >= FEW as u64 * BYTES);
        assert_eq!(counted(&store, &meetings, START), 3000 * BYTES);
        put(&store, 3000..3001);
        meetings.add("ada", BYTES);
        meetings.add("ben", BYTES);
        assert_eq!(of(&store, &meetings, START), 3001 * BYTES);
        // Unreported additions are noticed later, and so are removals.
        put(&store, 3001..4000);
        assert_eq!(of(&store, &meetings, START), 3001 * BYTES);
        let later = START + GOOD_FOR;
        assert_eq!(counted(&store, &meetings, later), 4000 * BYTES);
        let mut batch = Batch::new();
        batch.delete_range("ada", "c/e0010", "c/f");
        store.commit_blocking(batch).unwrap();
        let later = later + GOOD_FOR;
        assert_eq!(of(&store, &meetings, later), 10 * BYTES);
    }
}
