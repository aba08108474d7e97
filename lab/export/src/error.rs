//! Errors of sending. It knows no exit codes and prints nothing.

use std::io;

/// Figures could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The archive of the figures is damaged or missing.
    #[error("the archive can't be read")]
    Archive(#[from] lab_archive::ArchiveError),
    /// The trusted authorities can't be read: for example a file that `SSL_CERT_FILE` names.
    #[error("the system's authorities can't be read: {0}")]
    Authorities(String),
    /// A destination file can't be written.
    #[error("can't write {path}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The operating system provides no thread.
    #[error("can't start the thread that sends figures")]
    Thread(#[source] io::Error),
}
