//! What can go wrong with files of content.

use std::io;
use std::path::{Path, PathBuf};

/// Why content could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The disk, or the user's share of it, is full. What was acknowledged before is still there.
    #[error("no room left for content")]
    Full,
    /// There is no such content or upload.
    #[error("{} is not there", path.display())]
    Missing {
        /// The file that was looked for.
        path: PathBuf,
    },
    /// More bytes were given than the upload was announced to have.
    #[error("more bytes than were announced")]
    TooLong,
    /// Another server has gone on with the upload.
    #[error("another server has gone on with the upload")]
    Taken,
    /// The name can't name an upload.
    #[error("a name of an upload has 1 to 64 letters, digits, or hyphens")]
    BadName,
    /// The object store can't be reached, or doesn't answer in time; it may later.
    #[error("the object store can't be reached")]
    Away(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The object store refused what it was asked.
    #[error("the object store refuses")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk refused.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ContentError {
    /// Sorts what the system said of a file.
    pub(crate) fn of(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full,
            io::ErrorKind::NotFound => Self::Missing { path: path.into() },
            _ => Self::Io {
                path: path.into(),
                source,
            },
        }
    }
}
