//! Copies all records as of one moment, from a folder that a server may be using.

use std::fs::File;
use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::config::DbConfig;

use super::connect::open_helper;
use super::open::{FILE_NAME, Found, identify, known_version};
use super::vacuum::for_copies;
use crate::{OpenError, StoreError, place};

/// Copies the records in `folder`, as of one moment, into `to`, a folder without a store, where
/// [`Store::open_sqlite`](crate::Store::open_sqlite) opens them. Writers, in this process or another, continue
/// meanwhile; the store's log grows until the copy is done. The copy is durable when this returns.
///
/// # Errors
/// When the folder has no store, or one of another version, or a disk operation fails.
pub fn copy_records(folder: &Path, to: &Path) -> Result<(), OpenError> {
    let (file, copy) = (folder.join(FILE_NAME), to.join(FILE_NAME));
    let io = |source| OpenError::Io {
        path: copy.clone(),
        source,
    };
    let failed = |source| OpenError::Database {
        file: file.clone(),
        source,
    };
    let broken = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::Foreign { file: file.clone() },
        _ => failed(StoreError::from(error)),
    };
    let connection = open_helper(&file).map_err(failed)?;
    // Checkpoints are the server's work, also if this is the last connection.
    let quiet = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(quiet, true).map_err(broken)?;
    match identify(&connection).map_err(broken)? {
        Found::Ours(version) => known_version(&file, version)?,
        Found::Empty | Found::Foreign => return Err(OpenError::Foreign { file: file.clone() }),
    }
    // Created beforehand, because SQLite would create it with the rights of the umask.
    drop(place::open_file(&copy).map_err(io)?);
    let name = copy.to_str().ok_or_else(|| {
        io(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "the path is not UTF-8",
        ))
    })?;
    // For the copy: its deleted space can be returned, whichever version created the original.
    for_copies(&connection).map_err(broken)?;
    connection
        .execute("VACUUM INTO ?1", [name])
        .map_err(broken)?;
    // SQLite does not sync a file that it creates this way.
    File::open(&copy)
        .and_then(|file| file.sync_all())
        .and_then(|()| place::sync_folder(to))
        .map_err(io)
}
