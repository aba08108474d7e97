//! Deliveries whose clients may have missed the response to a commit. A client repeats such a
//! message, to this server after a restart or to another one: it is stored once.
//!
//! ```text
//! $sent/{ab}   {hash}     a delivery: the time of its decision, its number, and the message in the sender's account
//! ```
//! `hash` is that of the sender's account and of the message, and `ab` its first byte. The record is in the batch of
//! the message itself, under an assert that it is absent. The server removes it soon after the commit, whether the
//! response reaches the client or not. So a remaining record is that of a delivery in doubt: the server stopped before
//! or soon after its response, or the store could not report the outcome of the batch.
//!
//! A user may send the same again as another message: the server that has responded to the first one knows
//! its number. Another server waits until the record is removed. If the record is replaced meanwhile, or is
//! so young that its server may yet remove it, nothing proves that its delivery is in doubt: the client gets
//! a temporary error, since a message that isn't stored must not be acknowledged.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groupware_mail::Unid;
use groupware_store::{Batch, CommitError, Record, Snapshot, Store, StoreError};

/// The hash of a message from a client: a retry has the same one.
pub type Fingerprint = [u8; 32];

/// A name that no user can have.
const PARTITION: &str = "$sent";
/// The time for which a delivery is in doubt: mail servers retry within minutes. A user who sends
/// the same again later means another message.
const KEPT_S: i64 = 3600;
/// The time between two checks of a record: each server removes the records of completed deliveries twice a second.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The number of checks after the first one, if other servers may have responded.
const LOOKS: u32 = 10;
/// The time within which a running server certainly removes the record of a completed delivery.
const ANSWERED_S: i64 = 10;
/// The maximum number of completed deliveries in memory. The records of further ones stay until they expire.
const MOST: usize = 100_000;
/// The number of records that are read, and removed, in one batch.
const REMOVED_AT_ONCE: usize = 1000;

/// Returns the fingerprint of the parts of a client's message.
pub fn fingerprint<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// The record of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    key: Fingerprint,
    number: u128,
}

/// The record of a stored delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recorded {
    since_s: i64,
    number: u128,
    /// The message in the sender's account.
    pub(crate) made: Option<Unid>,
    revision: u64,
}

impl Delivery {
    /// Creates the record for a message from an account, with a number of its own.
    pub(crate) fn new(mailbox: &str, sent: Fingerprint, number: u128) -> Self {
        Self {
            key: fingerprint([mailbox.as_bytes(), &sent]),
            number,
        }
    }

    /// Returns the record of the same delivery, if there is one.
    pub(crate) fn recorded(&self, snapshot: &dyn Snapshot) -> Result<Option<Recorded>, StoreError> {
        let record = snapshot.get(&partition(self.key[0]), &self.key)?;
        Ok(record.map(|record| Recorded::of(&record)))
    }

    /// Writes the record in place of an invalid one, or of none.
    pub(crate) fn record(
        &self,
        batch: &mut Batch,
        instead: Option<Recorded>,
        (made, now_s): (Option<Unid>, i64),
    ) {
        let partition = partition(self.key[0]);
        match instead {
            Some(recorded) => {
                batch.assert_revision(partition.clone(), self.key.to_vec(), recorded.revision)
            }
            None => batch.assert_absent(partition.clone(), self.key.to_vec()),
        };
        let made = made.map(|unid| unid.to_string()).unwrap_or_default();
        let head = [&now_s.to_be_bytes()[..], &self.number.to_be_bytes()].concat();
        batch.put(
            partition,
            self.key.to_vec(),
            [&head[..], made.as_bytes()].concat(),
        );
    }
}

impl Recorded {
    /// An unreadable record counts as expired.
    fn of(record: &Record) -> Self {
        Self::read(record).unwrap_or(Self {
            since_s: i64::MIN,
            number: 0,
            made: None,
            revision: record.revision,
        })
    }

    fn read(record: &Record) -> Option<Self> {
        let (since, rest) = record.value.split_first_chunk()?;
        let (number, made) = rest.split_first_chunk()?;
        Some(Self {
            since_s: i64::from_be_bytes(*since),
            number: u128::from_be_bytes(*number),
            made: std::str::from_utf8(made).ok().and_then(Unid::parse),
            revision: record.revision,
        })
    }

    /// Returns true if the record has expired, so that no retry is expected.
    pub(crate) fn is_old(&self, now_s: i64) -> bool {
        self.since_s.saturating_add(KEPT_S) <= now_s
    }
}

/// The checks of the record of a delivery that may be a retry.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// The number in the first record found.
    number: Option<u128>,
    again: u32,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Undecided: check again.
    LookAgain,
    /// The recorded delivery is in doubt: this is its retry.
    Repeated,
    /// It can't be determined whether it is in doubt.
    Unclear,
}

impl Looks {
    /// Evaluates a check on a fresh snapshot that found a record which isn't one of this server's deliveries.
    /// One check is never enough: the server may have dropped the delivery after the snapshot was taken.
    pub(crate) fn at(&mut self, recorded: &Recorded, is_shared: bool, now_s: i64) -> Shown {
        if *self.number.get_or_insert(recorded.number) != recorded.number {
            return Shown::Unclear;
        }
        let most = if is_shared { LOOKS } else { 1 };
        if self.again < most {
            self.again += 1;
            return Shown::LookAgain;
        }
        let is_settled = recorded.since_s.saturating_add(ANSWERED_S) <= now_s;
        match is_settled || !is_shared {
            true => Shown::Repeated,
            false => Shown::Unclear,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("an equal message was stored a moment ago, and its client may have been told so")]
struct EqualMessage;

/// The error if a message may or may not repeat the recorded one.
pub(crate) fn unclear() -> CommitError {
    CommitError::Unknown(StoreError::Away(Arc::new(EqualMessage)))
}

/// This server's pending and completed deliveries.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<HashMap<u128, State>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    /// Completed: its record must be removed.
    Answered(Fingerprint),
}

impl Deliveries {
    fn lock(&self) -> MutexGuard<'_, HashMap<u128, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a pending delivery until the returned guard is dropped.
    pub(crate) fn begin(&self, delivery: Delivery) -> UnderWay<'_> {
        self.lock().insert(delivery.number, State::UnderWay);
        UnderWay {
            deliveries: self,
            delivery,
        }
    }

    /// Records that it was stored, and that its client gets the response.
    fn answer(&self, delivery: &Delivery) {
        let mut all = self.lock();
        match all.len() > MOST {
            true => all.remove(&delivery.number),
            false => all.insert(delivery.number, State::Answered(delivery.key)),
        };
    }

    /// Returns true if a recorded delivery is one of this server's own, whose client gets the response.
    pub(crate) fn has(&self, recorded: &Recorded) -> bool {
        self.lock().contains_key(&recorded.number)
    }

    /// Removes the records of completed deliveries. Failures are retried the next time.
    pub(crate) fn remove_answered(&self, store: &Store) {
        loop {
            let answered = self.lock();
            let some = answered.iter().filter_map(|(number, state)| match state {
                State::Answered(key) => Some((*number, *key)),
                State::UnderWay => None,
            });
            let some: Vec<_> = some.take(REMOVED_AT_ONCE).collect();
            drop(answered);
            if some.is_empty() || remove(store, &some).is_none() {
                return;
            }
            let mut all = self.lock();
            for (number, _) in &some {
                all.remove(number);
            }
        }
    }
}

/// A pending delivery. If it is dropped without a response, as with its request, its outcome is unknown.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    deliveries: &'a Deliveries,
    delivery: Delivery,
}

impl UnderWay<'_> {
    /// Completes it: it was stored, and its client gets the response.
    pub(crate) fn answer(self) {
        self.deliveries.answer(&self.delivery);
    }

    /// Completes the delivery that it repeats, which another server, or this one before a restart, has stored.
    pub(crate) fn answer_for(self, recorded: &Recorded) {
        self.deliveries.answer(&Delivery {
            number: recorded.number,
            ..self.delivery
        });
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut all = self.deliveries.lock();
        if all.get(&self.delivery.number) == Some(&State::UnderWay) {
            all.remove(&self.delivery.number);
        }
    }
}

/// Removes these records, unless they were replaced; `None` if the store fails.
fn remove(store: &Store, some: &[(u128, Fingerprint)]) -> Option<()> {
    let partitions: Vec<_> = some.iter().map(|(_, key)| partition(key[0])).collect();
    let places = partitions.iter().zip(some);
    let places: Vec<_> = places.map(|(of, (_, key))| (&**of, &key[..])).collect();
    let found = store.read(|snapshot| snapshot.get_many(&places)).ok()?;
    let mut batch = Batch::new();
    for (((number, key), of), record) in some.iter().zip(&partitions).zip(found) {
        let recorded = record.as_ref().map(Recorded::of);
        if let Some(recorded) = recorded.filter(|recorded| recorded.number == *number) {
            batch
                .assert_revision(of.clone(), key.to_vec(), recorded.revision)
                .delete(of.clone(), key.to_vec());
        }
    }
    match batch.is_empty() {
        true => Some(()),
        false => store.commit_blocking(batch).ok().map(drop),
    }
}

/// Removes the expired records. Failures are retried the next time.
pub(crate) fn sweep(store: &Store, now_s: i64) -> Result<(), StoreError> {
    for first in 0..=u8::MAX {
        let partition = partition(first);
        let mut from = Some(Vec::new());
        while let Some(some) = from {
            from = sweep_some(store, (&partition, &some), now_s)?;
        }
    }
    Ok(())
}

/// Sweeps some records of a partition from this key on; returns the key to continue from, unless these were the last.
fn sweep_some(
    store: &Store,
    (partition, from): (&str, &[u8]),
    now_s: i64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let (mut batch, mut count, mut last) = (Batch::new(), 0, Vec::new());
    store.read(|snapshot| {
        snapshot.scan(
            partition,
            from,
            None,
            REMOVED_AT_ONCE,
            &mut |key, record| {
                if Recorded::of(&record).is_old(now_s) {
                    batch
                        .assert_revision(partition, key.to_vec(), record.revision)
                        .delete(partition, key.to_vec());
                }
                count += 1;
                last = key.to_vec();
                ControlFlow::Continue(())
            },
        )
    })?;
    if !batch.is_empty() {
        let _ = store.commit_blocking(batch);
    }
    // The first key after the last one.
    last.push(0);
    Ok((count == REMOVED_AT_ONCE).then_some(last))
}

fn partition(first: u8) -> String {
    format!("{PARTITION}/{first:02x}")
}

#[cfg(test)]
mod tests {
    use groupware_store::StoreOptions;

    use super::*;

    #[test]
    fn parts_of_what_was_sent_dont_run_together() {
        let of = |parts: &[&str]| fingerprint(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["ab", ""]), of(&["a", "b"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }

    #[test]
    fn only_a_record_that_stays_the_same_is_one_in_doubt() {
        let of = |number, since_s| Recorded {
            since_s,
            number,
            made: None,
            revision: 1,
        };
        let now_s = 1000;
        let old = of(1, now_s - ANSWERED_S);
        let young = of(1, now_s - ANSWERED_S + 1);
        // A single server knows all of its completed deliveries, except those dropped since the snapshot was taken.
        for (is_shared, recorded, again, last) in [
            (false, &young, 1, Shown::Repeated),
            (true, &old, LOOKS, Shown::Repeated),
            (true, &young, LOOKS, Shown::Unclear),
        ] {
            let mut looks = Looks::default();
            for _ in 0..again {
                assert_eq!(looks.at(recorded, is_shared, now_s), Shown::LookAgain);
            }
            assert_eq!(looks.at(recorded, is_shared, now_s), last);
        }
        for is_shared in [false, true] {
            let mut looks = Looks::default();
            assert_eq!(looks.at(&old, is_shared, now_s), Shown::LookAgain);
            let replaced = of(2, old.since_s);
            assert_eq!(looks.at(&replaced, is_shared, now_s), Shown::Unclear);
        }
    }

    #[test]
    fn records_are_removed_once_they_are_answered_or_old_and_no_others() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let deliveries = Deliveries::default();
        let of = |sent: u8, number| Delivery::new("ada", [sent; 32], number);
        let made = Unid::parse("0123456789ABCDEF0123456789ABCDEF");
        assert!(made.is_some());
        let put = |delivery: &Delivery, since_s| {
            let mut batch = Batch::new();
            let instead = store.read(|snapshot| delivery.recorded(snapshot)).unwrap();
            delivery.record(&mut batch, instead, (made, since_s));
            store.commit_blocking(batch).unwrap();
        };
        let is_there = |delivery: &Delivery| {
            let found = store.read(|snapshot| delivery.recorded(snapshot)).unwrap();
            found.is_some_and(|found| found.number == delivery.number && found.made == made)
        };
        let [answered, under_way, in_doubt, replaced] =
            [1, 2, 3, 4].map(|at| of(at, u128::from(at)));
        let all = [answered, under_way, in_doubt, replaced];
        let [first, _held, third, fourth] = all.map(|delivery| deliveries.begin(delivery));
        for delivery in &all {
            put(delivery, 1000);
        }
        first.answer();
        drop(third);
        fourth.answer();
        let again = of(4, 5);
        put(&again, 2000);
        for _ in 0..2 {
            deliveries.remove_answered(&store);
            let all = [&answered, &under_way, &in_doubt, &again].map(is_there);
            assert_eq!(all, [false, true, true, true]);
        }
        assert_eq!(deliveries.lock().len(), 1);
        sweep(&store, 1000 + KEPT_S).unwrap();
        assert_eq!([&in_doubt, &again].map(is_there), [false, true]);
    }

    #[test]
    fn a_sweep_looks_at_all_records_however_many_are_young() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let of = |at: usize| {
            let mut key = [7; 32];
            key[1..9].copy_from_slice(&(at as u64).to_be_bytes());
            Delivery { key, number: 1 }
        };
        // The last record of the first read, of the second, and of all are old.
        let old = [
            REMOVED_AT_ONCE,
            2 * REMOVED_AT_ONCE,
            2 * REMOVED_AT_ONCE + 1,
        ];
        let mut batch = Batch::new();
        for at in 1..=2 * REMOVED_AT_ONCE + 1 {
            let since_s = if old.contains(&at) { 1000 } else { 2000 };
            of(at).record(&mut batch, None, (None, since_s));
        }
        store.commit_blocking(batch).unwrap();
        sweep(&store, 1000 + KEPT_S).unwrap();
        let is_there = |at| {
            store
                .read(|snapshot| of(at).recorded(snapshot))
                .unwrap()
                .is_some()
        };
        for at in 1..=2 * REMOVED_AT_ONCE + 1 {
            assert_eq!(is_there(at), !old.contains(&at), "{at}");
        }
    }
}
