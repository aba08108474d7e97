//! What can go wrong with backups.

use std::io;
use std::path::{Path, PathBuf};

use groupware_content::{ContentError, ContentHash};
use groupware_store::{CommitError, OpenError, ReplayError, StoreError};

/// Why a backup could not be made, looked through, or put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is no data to back up.
    #[error("there is no data folder {}", .0.display())]
    NoData(PathBuf),
    /// The folder has something else in it.
    #[error("{} is not empty, and has no backups in it", .0.display())]
    Foreign(PathBuf),
    /// There is no backup at all, or none of this name, or none so early.
    #[error("there is no such backup in {}", .0.display())]
    NoBackup(PathBuf),
    /// Another process writes into the folder.
    #[error("another process is making a backup in {}, or of it", .0.display())]
    Busy(PathBuf),
    /// Data would be overwritten.
    #[error("{} is there already and is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The manifest can't be read.
    #[error("{} can't be read: {why}", file.display())]
    Manifest {
        /// The manifest.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The records are not those that the backup was made with.
    #[error("{} is damaged: its hash is not the one in the manifest", .0.display())]
    Records(PathBuf),
    /// The records don't fit each other, or can't be understood.
    #[error("the records are damaged: {0}")]
    Damaged(String),
    /// Content is missing or damaged.
    #[error("content {hash} is missing or damaged in {}", folder.display())]
    Content {
        /// The content.
        hash: ContentHash,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// The content is in an object store, and none was named.
    #[error(
        "the attachments of these records are in an object store (as {0}), and no --content says where"
    )]
    Elsewhere(String),
    /// The object store can't be used.
    #[error(transparent)]
    Objects(#[from] groupware_objects::OpenError),
    /// The kept changes don't lead from the backup to that moment.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The records can't be opened or copied.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The records can't be read.
    #[error("cannot read the records")]
    Store(#[from] StoreError),
    /// What was put back can't be told to be that.
    #[error("cannot write to the records")]
    Commit(#[from] CommitError),
    /// The content can't be read or written.
    #[error(transparent)]
    Files(#[from] ContentError),
    /// A disk refuses.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl BackupError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }
}
