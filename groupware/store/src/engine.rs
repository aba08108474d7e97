//! The storage engine behind a store: where records are kept, and how durable they are.
//!
//! An engine has two halves. All threads share the half that reads. The half that writes belongs to the store's writer,
//! which passes all waiting batches to it as one group. File locks, housekeeping, and connections are internal to these
//! halves.

use std::time::Duration;

use crate::{Batch, CommitError, Committed, Snapshot, StoreError};

/// The outcome of a batch.
pub type Outcome = Result<Committed, CommitError>;

/// The half of an engine that reads. It lives as long as the store and then releases its resources, such as the lock of
/// a folder.
pub trait Engine: Send + Sync {
    /// The engine's name in messages: one lower-case word.
    fn name(&self) -> &'static str;

    /// Returns true if no other process changes the records while the engine is open, so that they may be cached.
    fn is_alone(&self) -> bool {
        false
    }

    /// Returns one consistent state of all records. It includes everything acknowledged before this call.
    ///
    /// # Errors
    /// When the engine can't be read now.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError>;

    /// The bytes that records and their index take, free pages included.
    ///
    /// # Errors
    /// When the engine fails.
    fn data_bytes(&self) -> Result<u64, StoreError>;

    /// The bytes of committed changes that are held in memory until they reach their final place.
    fn pending_bytes(&self) -> u64 {
        0
    }

    /// Returns true if the disk has only the reserve left that is kept for removals. False if the free space is unknown
    /// or belongs to another machine.
    fn is_short_of_room(&self) -> bool {
        false
    }

    /// Checks all stored data and returns one sentence for each problem.
    ///
    /// # Errors
    /// When the engine fails.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}

/// The half of an engine that writes. Only one thread uses it at a time.
pub trait Writer: Send {
    /// Applies the batches one after another, makes the result durable, and pushes one outcome per batch. A batch sees
    /// the effects of earlier batches; a failed batch changes nothing. Batches are within their limits, and a group has
    /// at most [`GROUP_BATCHES`](crate::GROUP_BATCHES) of them.
    fn commit(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>);

    /// Returns true if a committing thread may write in place of the idle writer. This is right where it saves waking a
    /// thread, and wrong where writing means waiting for another machine.
    fn can_be_lent(&self) -> bool {
        true
    }

    /// Returns true if there is housekeeping to do.
    fn wants_tending(&self) -> bool {
        false
    }

    /// Does housekeeping after the group's replies were sent, so that no caller waits for it.
    fn tend(&mut self) {}

    /// How long the store must be idle before the next step of idle work. The work takes CPU time from callers that are
    /// about to commit.
    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns true if there is work to do while the store is idle.
    fn wants_idle_work(&self) -> bool {
        false
    }

    /// Does one short step of idle work. A caller that arrives meanwhile waits for it.
    fn work_idly(&mut self) {}
}
