//! Why what a server keeps could not be opened.

use std::io;
use std::path::PathBuf;

use groupware_content::ContentError;
use groupware_objects::OpenError as ObjectsError;
use groupware_postgres::OpenError as DatabaseError;
use groupware_store::{CommitError, FormsError, OpenError, StoreError};

/// Why what a server keeps could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The data folder can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database can't be opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A copy of another store into this one was begun and never finished.
    #[error("a copy into {0} is not finished")]
    HalfCopied(String),
    /// A later version has written to the records, or it can't be found out.
    #[error(transparent)]
    Forms(#[from] FormsError),
    /// A folder for attachments has records of its own.
    #[error("{} has records in it, which the database would hide", .0.display())]
    TwoStores(PathBuf),
    /// A database's attachments are in another folder.
    #[error(
        "the attachments of this database are in a folder that has {known} in its file folder-id, and {} has {}",
        folder.display(),
        found.as_deref().unwrap_or("no such file"),
    )]
    OtherFolder {
        /// The data folder.
        folder: PathBuf,
        /// The name of the folder that the database knows.
        known: String,
        /// This one's, if it has one.
        found: Option<String>,
    },
    /// The name of the data folder can't be read or written.
    #[error("cannot read or write {}", file.display())]
    FolderId {
        /// The file that has it.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The store did not take what a start writes.
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
    /// Attachments are in an object store, and none is to be used.
    #[error(
        "attachments of these records are in an object store (as {0}), and no --content says where"
    )]
    ObjectsElsewhere(String),
}

impl DataError {
    /// Whether the settings are wrong: opening it again with the same ones fails again, whatever the machine's state.
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
