//! Copies all records from one place to another, independent of the engine. Attachments stay in their folder.

use std::fmt;
use std::path::PathBuf;

use groupware_postgres::{Database, OpenError as DatabaseError, PostgresOptions};
use groupware_store::{
    CommitError, FILE_NAME, OpenError, Stage, Store, StoreOptions, TransferError, Transferred,
};

/// The place of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Records {
    /// In a data folder, in SQLite.
    Folder(PathBuf),
    /// In a PostgreSQL database.
    Database(Database),
}

impl fmt::Display for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Database(database) => write!(f, "{database}"),
        }
    }
}

/// Why records could not be copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The source is the destination.
    #[error("{0} can't be copied to itself")]
    Same(String),
    /// There is no data folder.
    #[error("there is no data folder {0}")]
    NoFolder(String),
    /// There are no records in the folder.
    #[error("{0} has no records: there is no file {FILE_NAME} in it")]
    NoRecords(String),
    /// A data folder can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A database can't be opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The transfer failed.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The records can't be marked as restored.
    #[error(transparent)]
    Note(#[from] CommitError),
}

/// Copies all records, or continues a copy, and compares both sides at the end. No server may use either. The copy is
/// marked as one, for the server that starts on it ([`groupware_mail::restored`]).
///
/// # Errors
/// See [`CopyError`].
pub fn copy(
    from: &Records,
    to: &Records,
    tell: &mut dyn FnMut(Stage),
) -> Result<Transferred, CopyError> {
    if from == to {
        return Err(CopyError::Same(from.to_string()));
    }
    let from = open_what_is_there(from)?;
    let to = open(to, StoreOptions::default())?;
    // The original may have been in use since the copy began, or still be.
    let note = groupware_mail::restored::note();
    let done = groupware_store::transfer(&from, &to, note, tell);
    from.close_blocking();
    to.close_blocking();
    Ok(done?)
}

/// Marks records as restored to an earlier state, by whatever means ([`groupware_mail::restored`]). No server may use
/// them.
///
/// # Errors
/// See [`CopyError`].
pub fn note_restored(records: &Records) -> Result<(), CopyError> {
    // Fails if there are no records, without creating any.
    open_what_is_there(records)?.close_blocking();
    let store = open(records, StoreOptions::default())?;
    let noted = store.commit_blocking(groupware_mail::restored::note());
    store.close_blocking();
    noted?;
    Ok(())
}

fn open_what_is_there(records: &Records) -> Result<Store, CopyError> {
    if let Records::Folder(folder) = records {
        if !folder.is_dir() {
            return Err(CopyError::NoFolder(records.to_string()));
        }
        if !folder.join(FILE_NAME).is_file() {
            return Err(CopyError::NoRecords(records.to_string()));
        }
    }
    open(records, StoreOptions::default().as_it_is())
}

fn open(records: &Records, options: StoreOptions) -> Result<Store, CopyError> {
    Ok(match records {
        Records::Folder(folder) => Store::open_sqlite(folder, options)?,
        Records::Database(database) => {
            let how = PostgresOptions::default().readers(2);
            groupware_postgres::open(database, &options, &how)?
        }
    })
}
