//! The reasons why an object store can't be used.

use groupware_content::ContentError;
use groupware_documents::DocumentError;
use groupware_store::CommitError;

/// The reason why the place of the attachments could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// This program was built without object stores.
    #[error("this program was built without object stores (feature object-store)")]
    NotBuilt,
    /// The settings conflict.
    #[error("the object store can't be set up: {0}")]
    Settings(String),
    /// The store can't be reached, or denies access.
    #[error("cannot use {place}")]
    Unusable {
        /// The place.
        place: String,
        /// The error of the request.
        source: ContentError,
    },
    /// The place has the attachments of another server.
    #[error("{place} has attachments of other records ({found}); those of these are in {known}")]
    Others {
        /// The place.
        place: String,
        /// The name found there.
        found: String,
        /// The name in the records, or a word for none.
        known: String,
    },
    /// The place is not the one that has the attachments.
    #[error(
        "{place} has no attachments of these records in it, and they have some elsewhere ({known})"
    )]
    Nothing {
        /// The place.
        place: String,
        /// The name in the records.
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
    /// Returns true if another start with the same settings will fail again.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::NotBuilt | Self::Settings(_) | Self::Others { .. } | Self::Nothing { .. } => true,
            Self::Unusable { source, .. } => !matches!(source, ContentError::Away(_)),
            Self::Records(_) | Self::Commit(_) | Self::System(_) => false,
        }
    }
}
