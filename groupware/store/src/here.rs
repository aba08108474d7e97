//! Reading and writing in the writer's place, on the calling thread, while nobody else writes.

use tokio::sync::MutexGuard;

use crate::handle::Store;
use crate::writer::{Job, Outcome, Place};
use crate::{Batch, CommitError, Snapshot};

/// The writer's place. Nobody else commits while it is held, so that what is read from it is still so
/// when it is committed to. It is not for keeping: everybody who writes waits for its end.
pub struct Here<'store> {
    pub(crate) place: MutexGuard<'store, Place>,
    pub(crate) store: &'store Store,
}

impl Here<'_> {
    /// Reads what was committed last.
    ///
    /// # Errors
    /// What `read` returns.
    pub fn read<T, E>(&self, read: impl FnOnce(&dyn Snapshot) -> Result<T, E>) -> Result<T, E> {
        let mut read = Some(read);
        let mut out = None;
        self.place.engine().read(&mut |snapshot| {
            out = read.take().map(|read| read(snapshot));
        });
        out.expect("an engine reads once")
    }

    /// Commits a batch; returns when it is durable.
    ///
    /// # Errors
    /// See [`CommitError`]; whichever it is, the batch has not taken effect in part.
    pub fn commit(mut self, batch: &Batch) -> Outcome {
        batch.checked_bytes().ok_or(CommitError::TooLarge)?;
        let outcome = self.place.commit(batch, self.store.counters());
        if self.place.engine().wants_tending() {
            // A full queue has others in it, after whom the writer tends the engine anyway.
            let _ = self.store.queue().try_send(Job::Tend);
        }
        outcome
    }
}
