//! Errors of content in files and objects.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why content could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The disk, or the user's quota, is full. Acknowledged content is still there.
    #[error("no room left for content")]
    Full,
    /// There is no such content or upload.
    #[error("{} is not there", path.display())]
    Missing {
        /// The missing file.
        path: PathBuf,
    },
    /// More bytes were sent than the upload announced.
    #[error("more bytes than were announced")]
    TooLong,
    /// Another server has continued the upload.
    #[error("another server has gone on with the upload")]
    Taken,
    /// The name is invalid for an upload.
    #[error("a name of an upload has 1 to 64 letters, digits, or hyphens")]
    BadName,
    /// The object store can't be reached, or is too slow; a retry may succeed.
    #[error("the object store can't be reached")]
    Away(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The object store rejected the request.
    #[error("the object store refuses")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk returned an error.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ContentError {
    /// Classifies the system's error about a file.
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
