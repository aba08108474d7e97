//! What can go wrong with sending. It knows no exit codes and prints nothing.

use std::io;

/// Figures could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The archive that they come from is damaged or gone.
    #[error("the archive can't be read")]
    Archive(#[from] lab_archive::ArchiveError),
    /// Whom this machine trusts can't be read: a file that `SSL_CERT_FILE` names, say.
    #[error("the system's authorities can't be read: {0}")]
    Authorities(String),
    /// A file that they go into can't be written.
    #[error("can't write {path}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("can't start the thread that sends figures")]
    Thread(#[source] io::Error),
}
