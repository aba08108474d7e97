//! Errors of backups.

use std::io;
use std::path::{Path, PathBuf};

use groupware_content::{ContentError, ContentHash};
use groupware_store::{CommitError, OpenError, ReplayError, StoreError};

/// Why a backup could not be made, checked, or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is no data to back up.
    #[error("there is no data folder {}", .0.display())]
    NoData(PathBuf),
    /// The folder contains something other than backups.
    #[error("{} is not empty, and has no backups in it", .0.display())]
    Foreign(PathBuf),
    /// There is no backup at all, none of this name, or none from before this time.
    #[error("there is no such backup in {}", .0.display())]
    NoBackup(PathBuf),
    /// Another process writes into the folder.
    #[error("another process is making a backup in {}, or of it", .0.display())]
    Busy(PathBuf),
    /// The restore would overwrite data.
    #[error("{} is there already and is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The manifest can't be read.
    #[error("{} can't be read: {why}", file.display())]
    Manifest {
        /// The manifest.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// The hash of the records is not the one in the manifest.
    #[error("{} is damaged: its hash is not the one in the manifest", .0.display())]
    Records(PathBuf),
    /// The records are inconsistent or invalid.
    #[error("the records are damaged: {0}")]
    Damaged(String),
    /// Content is missing or damaged.
    #[error("content {hash} is missing or damaged in {}", folder.display())]
    Content {
        /// The content's hash.
        hash: ContentHash,
        /// The folder without it.
        folder: PathBuf,
    },
    /// The content is in an object store, but none was configured.
    #[error(
        "the attachments of these records are in an object store (as {0}), and no --content says where"
    )]
    Elsewhere(String),
    /// The object store can't be used.
    #[error(transparent)]
    Objects(#[from] groupware_objects::OpenError),
    /// The kept changes don't lead from the backup to the requested moment.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The records can't be opened or copied.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The records can't be read.
    #[error("cannot read the records")]
    Store(#[from] StoreError),
    /// The records can't be marked as restored.
    #[error("cannot write to the records")]
    Commit(#[from] CommitError),
    /// The content can't be read or written.
    #[error(transparent)]
    Files(#[from] ContentError),
    /// A file operation failed.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl BackupError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }
}
