//! Per-key mutexes that serialize changes of one record after a conflict.
//!
//! They only save work: the store itself separates changes, by rejecting a batch decided on an
//! older state. So different records may share a mutex, and all servers of a process share them.

use std::hash::{DefaultHasher, Hash, Hasher};

use groupware_store::{Assert, Batch};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The number of mutexes.
const MUTEXES: usize = 256;

static MUTEX: [Semaphore; MUTEXES] = [const { Semaphore::const_new(1) }; MUTEXES];

/// The index of a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordMutex(usize);

impl RecordMutex {
    /// The mutexes of the records that a batch was decided on, in the order of its asserts.
    pub(crate) fn of_all(batch: &Batch) -> Vec<Self> {
        batch.asserts.iter().map(Self::of).collect()
    }

    fn of(assert: &Assert) -> Self {
        let (Assert::Absent { partition, key }
        | Assert::Exists { partition, key }
        | Assert::Revision { partition, key, .. }) = assert;
        let mut hasher = DefaultHasher::new();
        (partition, key).hash(&mut hasher);
        let places = hasher.finish() % MUTEXES as u64;
        Self(usize::try_from(places).unwrap_or_default())
    }

    /// Returns true if it is taken.
    pub(crate) fn is_taken(self) -> bool {
        MUTEX[self.0].available_permits() == 0
    }

    /// Takes it if it is free.
    pub(crate) fn try_enter(self) -> Option<RecordGuard> {
        let permit = MUTEX[self.0].try_acquire().ok()?;
        Some(RecordGuard {
            lane: self,
            _permit: permit,
        })
    }

    /// Waits for it in FIFO order. The holder of a mutex must release it before waiting for
    /// another.
    pub(crate) async fn enter(self) -> RecordGuard {
        let permit = MUTEX[self.0].acquire().await;
        RecordGuard {
            lane: self,
            _permit: permit.expect("no lane is ever closed"),
        }
    }
}

/// A mutex guard; dropping it releases the mutex.
#[derive(Debug)]
pub(crate) struct RecordGuard {
    lane: RecordMutex,
    _permit: SemaphorePermit<'static>,
}

impl RecordGuard {
    /// Returns true if it guards this mutex.
    pub(crate) fn is(&self, lane: RecordMutex) -> bool {
        self.lane == lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_one_lane_whatever_is_asserted() {
        let mut batch = Batch::new();
        batch.assert_absent("ann", "c/e/1");
        batch.assert_revision("ann", "c/e/1", 7);
        for number in 0..100 {
            batch.assert_exists("bob", format!("c/e/{number}"));
        }
        let lanes = RecordMutex::of_all(&batch);
        assert_eq!(lanes[0], lanes[1]);
        assert!(lanes.iter().any(|lane| *lane != lanes[0]));
    }

    #[tokio::test]
    async fn one_at_a_time_goes_in_a_lane() {
        let lane = RecordMutex(7);
        let first = lane.enter().await;
        assert!(lane.try_enter().is_none());
        assert!(lane.is_taken() && first.is(lane) && !first.is(RecordMutex(8)));
        let mut second = std::pin::pin!(lane.enter());
        assert!(is_pending(second.as_mut()).await);
        drop(first);
        drop(second.await);
        assert!(!lane.is_taken());
    }

    async fn is_pending<F: Future>(future: std::pin::Pin<&mut F>) -> bool {
        tokio::select! {
            biased;
            _ = future => false,
            () = std::future::ready(()) => true,
        }
    }
}
