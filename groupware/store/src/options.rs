//! What a store is told when it is opened.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a store.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Most bytes that the records may take on disk; batches beyond that fail with
    /// [`CommitError::Full`](crate::CommitError::Full). Without it, the disk is the limit.
    pub quota_bytes: Option<u64>,
    /// Opens only a store that is there already and of this program's version: none is made, and none
    /// is brought up to date.
    pub as_it_is: bool,
    /// A transaction that takes so long is noted in the log; none is unless given.
    pub slow_commit: Option<Duration>,
    /// The folder in which a log of all changes is kept, see [`replay`](crate::replay); none is unless
    /// given. A store that is opened without it gives up the log that it had.
    pub changes: Option<PathBuf>,
    /// Bytes of changes that the engine on disk gathers in memory before it writes them into its tree; about 32 MiB
    /// unless given. They are durable before that.
    pub pending_bytes: Option<usize>,
    /// Records that [`Store::look`](crate::Store::look) remembers; none are unless given.
    pub remembered: Option<Remember>,
}

/// Which records are remembered, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remember {
    /// What their keys begin with.
    pub prefix: &'static [u8],
    /// The bytes that they may take in memory, about.
    pub bytes: usize,
}

impl StoreOptions {
    /// Sets the most bytes that the records may take.
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.quota_bytes = Some(bytes);
        self
    }

    /// Has transactions that take so long noted in the log.
    pub fn slow_commit(mut self, time: Duration) -> Self {
        self.slow_commit = Some(time);
        self
    }

    /// Keeps a log of all changes in this folder.
    pub fn changes(mut self, folder: PathBuf) -> Self {
        self.changes = Some(folder);
        self
    }

    /// Has records whose keys begin so remembered when they are read or written, in about so many bytes.
    pub fn remember(mut self, prefix: &'static [u8], bytes: usize) -> Self {
        self.remembered = Some(Remember { prefix, bytes });
        self
    }

    /// Has so many bytes of changes gathered before they are written into the tree.
    pub fn pending_bytes(mut self, bytes: usize) -> Self {
        self.pending_bytes = Some(bytes);
        self
    }

    /// Opens the store only if nothing has to be changed for that.
    pub fn as_it_is(mut self) -> Self {
        self.as_it_is = true;
        self
    }
}
