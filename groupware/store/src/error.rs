//! What can go wrong when a store is opened, read, or written.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another store of this one, holds the folder.
    #[error("the data folder {} is in use by another process", folder.display())]
    InUse {
        /// The data folder.
        folder: PathBuf,
    },
    /// There is not room for a second file of records.
    #[error(
        "{} has {free_bytes} bytes free, and {needed_bytes} are needed meanwhile",
        folder.display()
    )]
    NoRoom {
        /// The data folder.
        folder: PathBuf,
        /// Bytes that are needed until the old file is gone.
        needed_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },
    /// The file is a database of something else, or no database at all.
    #[error("{} is not a Plimsoll database", file.display())]
    Foreign {
        /// The file that was found.
        file: PathBuf,
    },
    /// The file was written by a later version of the program.
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
    /// The file was written by an earlier version of the program, and was to be left as it is.
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
    /// The log of changes goes on behind the records: they are those of an earlier moment, as an old copy's
    /// are.
    #[error(
        "the log of changes in {} goes on behind the records of this data folder, as if an old copy of \
         them had been put there",
        folder.display()
    )]
    LogAhead {
        /// The folder of the log.
        folder: PathBuf,
    },
    /// The folder or a file in it could not be made or reached.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The database could not be opened or set up.
    #[error("cannot open {}", file.display())]
    Database {
        /// The database file.
        file: PathBuf,
        /// What the database said.
        source: StoreError,
    },
}

/// What an engine said of its failure.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why stored records could not be read or written: a kind that says what to do, and the engine's own
/// words behind it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk could not be read or written; that it is full is another error where that can be told.
    #[error("the disk can't be read or written")]
    Disk(#[source] Cause),
    /// The database engine failed: a damaged file, say.
    #[error("the database failed")]
    Database(#[source] Cause),
    /// The database can't be reached now, or takes nothing now; it may later.
    #[error("the database can't be reached")]
    Away(#[source] Cause),
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] Arc<io::Error>),
}

impl StoreError {
    /// Whether it may be over in a moment, with nothing to be mended in the store.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

/// Why a record could not be read as what it should be.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The store failed.
    #[error("reading the records failed")]
    Store(#[from] StoreError),
    /// The record can't be understood: written by a newer version, or damaged.
    #[error("record {key} can't be read: {cause}")]
    Corrupt {
        /// Key of the record, for the administrator.
        key: String,
        /// What the decoder said.
        cause: String,
    },
}

impl ReadError {
    /// A record that can't be understood.
    pub fn corrupt(key: &[u8], cause: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            key: String::from_utf8_lossy(key).into_owned(),
            cause: cause.to_string(),
        }
    }
}

/// Why a batch did not take effect.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// An assert did not hold. Nothing was changed; other batches are not affected.
    #[error("assert {index} of the batch does not hold")]
    Conflict {
        /// The first failed assert, as an index into [`Batch::asserts`](crate::Batch::asserts).
        index: usize,
    },
    /// The disk or the store's quota is full. Reads go on, and a later batch may succeed.
    #[error("no room left to store the batch")]
    Full,
    /// The engine can't tell: the connection to a database was lost while it committed, and what became
    /// of the batch could not be found out in time. It has taken effect as a whole or not at all; only a
    /// look tells which.
    #[error("it isn't known whether the batch was stored")]
    Unknown(#[source] StoreError),
    /// The store was closed before the batch's turn came, or the reply was lost: as after
    /// [`CommitError::Unknown`], the batch may or may not have taken effect.
    #[error("the store is closed")]
    Closed,
    /// The batch, a key, or a partition's name exceeds its limit. Nothing was changed.
    #[error("the batch, one of its keys, or a partition's name is too large")]
    TooLarge,
    /// The engine failed. Nothing was changed as far as readers can see.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CommitError {
    /// Whether it may be over in a moment, with nothing to be mended in the store.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Store(error) => error.is_passing(),
            _ => false,
        }
    }
}
