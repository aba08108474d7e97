//! Options of opening a store.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a store.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoreOptions {
    /// The maximum number of bytes of the records on disk; batches beyond it fail with
    /// [`CommitError::Full`](crate::CommitError::Full). Without it, the disk is the limit.
    pub quota_bytes: Option<u64>,
    /// Opens only an existing store of this program's version: it neither creates nor migrates a store.
    pub as_it_is: bool,
    /// Transactions that take at least this long are logged; none by default.
    pub slow_commit: Option<Duration>,
    /// The folder for a log of all changes, see [`replay`](crate::replay); no log by default. A store that is opened
    /// without it discards its existing log.
    pub changes: Option<PathBuf>,
    /// Bytes of changes that the disk engine gathers in memory before it writes them into its tree; by default about 32
    /// MiB. The changes are durable before that.
    pub pending_bytes: Option<usize>,
    /// The records that [`Store::look`](crate::Store::look) caches; none by default.
    pub remembered: Option<Remember>,
}

/// The records to cache, and the size of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remember {
    /// The prefix of their keys.
    pub prefix: &'static [u8],
    /// The approximate memory limit of the cache, in bytes.
    pub bytes: usize,
}

impl StoreOptions {
    /// Sets the maximum number of bytes of the records.
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.quota_bytes = Some(bytes);
        self
    }

    /// Logs transactions that take at least this long.
    pub fn slow_commit(mut self, time: Duration) -> Self {
        self.slow_commit = Some(time);
        self
    }

    /// Keeps a log of all changes in this folder.
    pub fn changes(mut self, folder: PathBuf) -> Self {
        self.changes = Some(folder);
        self
    }

    /// Caches records with this key prefix when they are read or written, in about this many bytes.
    pub fn remember(mut self, prefix: &'static [u8], bytes: usize) -> Self {
        self.remembered = Some(Remember { prefix, bytes });
        self
    }

    /// Sets the bytes of changes to gather before they are written into the tree.
    pub fn pending_bytes(mut self, bytes: usize) -> Self {
        self.pending_bytes = Some(bytes);
        self
    }

    /// Opens the store only if that needs no change to it.
    pub fn as_it_is(mut self) -> Self {
        self.as_it_is = true;
        self
    }
}
