//! Why an object store can't be used.

use groupware_content::ContentError;
use groupware_documents::DocumentError;
use groupware_store::CommitError;

/// Why the place of the attachments could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// This program can't speak to object stores.
    #[error("this program was built without object stores (feature object-store)")]
    NotBuilt,
    /// Its settings don't fit each other.
    #[error("the object store can't be set up: {0}")]
    Settings(String),
    /// The store can't be reached, or doesn't let us in.
    #[error("cannot use {place}")]
    Unusable {
        /// Where.
        place: String,
        /// What came of it.
        source: ContentError,
    },
    /// It has another server's attachments in it.
    #[error("{place} has attachments of other records ({found}); those of these are in {known}")]
    Others {
        /// Where.
        place: String,
        /// The name that is found there.
        found: String,
        /// The name that the records know, or a word for none.
        known: String,
    },
    /// It is not where the attachments are.
    #[error(
        "{place} has no attachments of these records in it, and they have some elsewhere ({known})"
    )]
    Nothing {
        /// Where.
        place: String,
        /// The name that the records know.
        known: String,
    },
    /// The records can't be read.
    #[error("cannot read where the attachments are")]
    Records(#[from] DocumentError),
    /// The records can't be written.
    #[error("cannot note where the attachments are")]
    Commit(#[from] CommitError),
    /// TLS can't be set up, or a thread can't be started.
    #[error("cannot set up the way to the object store")]
    System(#[from] std::io::Error),
}

impl OpenError {
    /// Whether starting again with the same settings fails again.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::NotBuilt | Self::Settings(_) | Self::Others { .. } | Self::Nothing { .. } => true,
            Self::Unusable { source, .. } => !matches!(source, ContentError::Away(_)),
            Self::Records(_) | Self::Commit(_) | Self::System(_) => false,
        }
    }
}
