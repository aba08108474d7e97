//! Errors of opening, reading, and writing a store.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The reason why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another store of this process, holds the folder.
    #[error("the data folder {} is in use by another process", folder.display())]
    InUse {
        /// The data folder.
        folder: PathBuf,
    },
    /// The disk has no room for a second file of records.
    #[error(
        "{} has {free_bytes} bytes free, and {needed_bytes} are needed meanwhile",
        folder.display()
    )]
    NoRoom {
        /// The data folder.
        folder: PathBuf,
        /// Bytes that are needed until the old file is removed.
        needed_bytes: u64,
        /// Free bytes.
        free_bytes: u64,
    },
    /// The file is another program's database, or no database.
    #[error("{} is not a Plimsoll database", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// A later version of the program wrote the file.
    #[error(
        "{} has schema version {found}, and this program knows versions up to {known}",
        file.display()
    )]
    Newer {
        /// The database file.
        file: PathBuf,
        /// The schema version in the file.
        found: i64,
        /// The newest schema version that this program can use.
        known: i64,
    },
    /// An earlier version of the program wrote the file, and the caller asked not to migrate it.
    #[error(
        "{} has schema version {found}, and this program's is {known}: a server that starts on it \
         brings it up to date",
        file.display()
    )]
    Older {
        /// The database file.
        file: PathBuf,
        /// The schema version in the file.
        found: i64,
        /// The schema version of this program.
        known: i64,
    },
    /// The change log is ahead of the records: the records are those of an earlier moment, such as an old copy.
    #[error(
        "the log of changes in {} goes on behind the records of this data folder, as if an old copy of \
         them had been put there",
        folder.display()
    )]
    LogAhead {
        /// The folder of the log.
        folder: PathBuf,
    },
    /// The folder or a file in it could not be created or accessed.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The database could not be opened or set up.
    #[error("cannot open {}", file.display())]
    Database {
        /// The database file.
        file: PathBuf,
        /// The database's error.
        source: StoreError,
    },
}

/// The engine's own error.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// An error of reading or writing stored records: a kind that the caller can act on, and the engine's own error as its
/// source.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk could not be read or written. A full disk is a separate error where the engine reports it.
    #[error("the disk can't be read or written")]
    Disk(#[source] Cause),
    /// The database engine failed, for example because of a damaged file.
    #[error("the database failed")]
    Database(#[source] Cause),
    /// The database is unreachable or accepts no writes now; it may recover.
    #[error("the database can't be reached")]
    Away(#[source] Cause),
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] Arc<io::Error>),
}

impl StoreError {
    /// Returns true if the failure may pass by itself, without a repair of the store.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

/// An error of reading and decoding a record.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The store failed.
    #[error("reading the records failed")]
    Store(#[from] StoreError),
    /// The record can't be decoded: a newer version wrote it, or it is damaged.
    #[error("record {key} can't be read: {cause}")]
    Corrupt {
        /// The record's key, for the administrator.
        key: String,
        /// The decoder's error.
        cause: String,
    },
}

impl ReadError {
    /// Returns the error for a record that can't be decoded.
    pub fn corrupt(key: &[u8], cause: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            key: String::from_utf8_lossy(key).into_owned(),
            cause: cause.to_string(),
        }
    }
}

/// The reason why a batch did not take effect.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// An assert did not hold. Nothing was changed; other batches are not affected.
    #[error("assert {index} of the batch does not hold")]
    Conflict {
        /// The first failed assert, as an index into [`Batch::asserts`](crate::Batch::asserts).
        index: usize,
    },
    /// The disk or the store's quota is full. Reads still work, and a later batch may succeed.
    #[error("no room left to store the batch")]
    Full,
    /// The outcome is unknown: the connection to the database was lost during the commit, and the outcome could not be
    /// determined in time. The batch was applied as a whole or not at all; only a read can tell.
    #[error("it isn't known whether the batch was stored")]
    Unknown(#[source] StoreError),
    /// The store was closed before the batch was committed, or the reply was lost. As after [`CommitError::Unknown`],
    /// the batch may or may not have taken effect.
    #[error("the store is closed")]
    Closed,
    /// The batch, a key, or a partition's name exceeds its limit. Nothing was changed.
    #[error("the batch, one of its keys, or a partition's name is too large")]
    TooLarge,
    /// The engine failed. Readers see no change.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CommitError {
    /// Returns true if the failure may pass by itself, without a repair of the store.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Store(error) => error.is_passing(),
            _ => false,
        }
    }
}
