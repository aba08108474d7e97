//! What lies behind a store: how records are kept, and how long they last.
//!
//! An engine has two halves. The one that reads is shared by all threads; the one that writes belongs to
//! the store's writer, which hands it whatever batches wait as one group. Locks of files, housekeeping, and
//! connections are the engine's own, inside these halves.

use std::time::Duration;

use crate::{Batch, CommitError, Committed, Snapshot, StoreError};

/// What comes of a batch.
pub type Outcome = Result<Committed, CommitError>;

/// The half of an engine that reads. It lives as long as the store, and what it holds, such as the lock of
/// a folder, is let go with it.
pub trait Engine: Send + Sync {
    /// What it is called in messages: one lower-case word.
    fn name(&self) -> &'static str;

    /// Whether nobody else changes its records as long as it is open, so that they may be remembered.
    fn is_alone(&self) -> bool {
        false
    }

    /// One consistent state of all records: what was acknowledged before this call is in it.
    ///
    /// # Errors
    /// When the engine can't be read now.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError>;

    /// The bytes that records and their index take, free pages included.
    ///
    /// # Errors
    /// When the engine fails.
    fn data_bytes(&self) -> Result<u64, StoreError>;

    /// The bytes of changes that are committed, and held in memory until they are where they will stay.
    fn pending_bytes(&self) -> u64 {
        0
    }

    /// Whether the disk has no room for more than what is kept for removing. No where that isn't known, or is another
    /// machine's.
    fn is_short_of_room(&self) -> bool {
        false
    }

    /// Looks through all that is stored, and says what is wrong, a sentence each.
    ///
    /// # Errors
    /// When the engine fails.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}

/// The half of an engine that writes. Only one thread has it at a time.
pub trait Writer: Send {
    /// Applies the batches one after another, makes the result durable, and pushes one outcome per batch.
    /// A batch sees the effects of those before it; one that fails changes nothing. Batches are within
    /// their limits, and there are [`GROUP_BATCHES`](crate::GROUP_BATCHES) of them at most.
    fn commit(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>);

    /// Whether a thread that brings a batch may write in the writer's place while nobody else does: right
    /// where that saves waking a thread, wrong where writing means waiting for another machine.
    fn can_be_lent(&self) -> bool {
        true
    }

    /// Whether there is housekeeping to do.
    fn wants_tending(&self) -> bool {
        false
    }

    /// Called after the group's replies went out: housekeeping that nobody waits for.
    fn tend(&mut self) {}

    /// How long nobody is to have come before a little of that work is done: it takes the processor from whoever
    /// is about to.
    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether there is work to be done while nobody writes.
    fn wants_idle_work(&self) -> bool {
        false
    }

    /// Does a little of it: who comes meanwhile waits for it.
    fn work_idly(&mut self) {}
}
