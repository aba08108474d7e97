//! Errors of opening a server's data.

use std::io;
use std::path::PathBuf;

use groupware_content::ContentError;
use groupware_objects::OpenError as ObjectsError;
use groupware_postgres::OpenError as DatabaseError;
use groupware_store::{CommitError, FormsError, OpenError, StoreError};

/// Why a server's data could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The data folder can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database can't be opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A copy of another store into this one was begun and not finished.
    #[error("a copy into {0} is not finished")]
    HalfCopied(String),
    /// A newer version has written the records, or the version can't be read.
    #[error(transparent)]
    Forms(#[from] FormsError),
    /// A folder for a database's attachments has records of its own.
    #[error("{} has records in it, which the database would hide", .0.display())]
    TwoStores(PathBuf),
    /// A database's attachments are in another folder.
    #[error(
        "the attachments of this database are in a folder that has {known} in its file folder-id, and {} has {}",
        folder.display(),
        found.as_deref().unwrap_or("no such file"),
    )]
    OtherFolder {
        /// The configured data folder.
        folder: PathBuf,
        /// The identifier of the folder that the database knows.
        known: String,
        /// The identifier of this folder, if it has one.
        found: Option<String>,
    },
    /// The identifier of the data folder can't be read or written.
    #[error("cannot read or write {}", file.display())]
    FolderId {
        /// The file with the identifier.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The store rejected a write at the start.
    #[error("cannot write to the store")]
    Commit(#[from] CommitError),
    /// The store can't be read.
    #[error("cannot start the store")]
    Store(#[from] StoreError),
    /// The folder of attachments' content can't be opened.
    #[error("cannot open the content")]
    Content(#[from] ContentError),
    /// The object store can't be used.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// Attachments are in an object store, and none is configured.
    #[error(
        "attachments of these records are in an object store (as {0}), and no --content says where"
    )]
    ObjectsElsewhere(String),
}

impl DataError {
    /// Returns true if the settings are wrong: with the same settings, opening fails in any state of the machine.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::TwoStores(_) | Self::OtherFolder { .. } | Self::ObjectsElsewhere(_) => true,
            Self::Objects(error) => error.is_configuration(),
            Self::Forms(error) => error.is_newer(),
            Self::Database(error) => {
                use DatabaseError::{Newer, NewerForms, Unfit};
                matches!(error, Newer { .. } | NewerForms { .. } | Unfit { .. })
            }
            Self::Open(_)
            | Self::HalfCopied(_)
            | Self::FolderId { .. }
            | Self::Commit(_)
            | Self::Store(_)
            | Self::Content(_) => false,
        }
    }
}
