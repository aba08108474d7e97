//! The writing half of the engine.

use groupware_store::{Batch, CommitError, Outcome, Writer};
use tokio::runtime::Runtime;

use crate::writer_connection::WriterConnection;

/// The writing half of the engine. It drives its connection itself on the store's thread, so that a
/// response wakes no other thread.
pub(crate) struct PostgresWriter {
    runtime: Runtime,
    link: WriterConnection,
}

impl PostgresWriter {
    pub(crate) fn new(runtime: Runtime, link: WriterConnection) -> Self {
        Self { runtime, link }
    }

    fn store(&mut self, group: &[&Batch]) -> Result<Vec<Outcome>, CommitError> {
        self.runtime.block_on(self.link.commit(group))
    }
}

impl Writer for PostgresWriter {
    fn commit(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) {
        match self.store(group) {
            Ok(all) => outcomes.extend(all),
            // A small batch may still fit where a large one didn't.
            Err(CommitError::Full) if group.len() > 1 => {
                for batch in group {
                    let single = self.store(&[batch]);
                    outcomes.extend(single.unwrap_or_else(|error| vec![Err(error)]));
                }
            }
            Err(error) => outcomes.extend(group.iter().map(|_| Err(error.clone()))),
        }
    }

    /// Writing blocks on the server: it must not block a caller's thread.
    fn can_be_lent(&self) -> bool {
        false
    }
}

impl Drop for PostgresWriter {
    fn drop(&mut self) {
        self.runtime.block_on(self.link.leave());
    }
}
