//! The position in the change log that the records store.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::connect::open_helper;
use crate::changes::{ChangeLog, Opened, Position};
use crate::{OpenError, StoreOptions};

const NUMBER: &str = "SELECT value FROM counters WHERE name = ?1";
const SET: &str = "INSERT OR REPLACE INTO counters (name, value) VALUES (?1, ?2)";
const FORGET: &str = "DELETE FROM counters WHERE name IN ('changes_log', 'changes_number')";

/// Returns the log that the records in a file belong to, and their position in it; `None` if there is none.
pub(crate) fn position(file: &Path) -> Result<Option<Position>, OpenError> {
    let found = open_helper(file).and_then(|connection| Ok(read(&connection)?));
    found.map_err(|source| OpenError::Database {
        file: file.to_path_buf(),
        source,
    })
}

fn read(connection: &Connection) -> rusqlite::Result<Option<Position>> {
    let number = |name: &str| {
        let found = connection.query_row(NUMBER, [name], |row| row.get::<_, i64>(0));
        let found = found.optional();
        found.map(|found| found.map(i64::unsigned_abs))
    };
    let (log, number) = (number("changes_log")?, number("changes_number")?);
    Ok(log
        .zip(number)
        .map(|(log, number)| Position { log, number }))
}

/// Opens the configured log and records its identity with the records. Without a log, the records belong to none from
/// now on: it would lack their later changes.
pub(super) fn start_log(
    connection: &mut Connection,
    (file, options): (&Path, &StoreOptions),
) -> Result<Option<ChangeLog>, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::Database {
        file: file.to_path_buf(),
        source: error.into(),
    };
    let position = read(connection).map_err(failed)?;
    let Some(folder) = &options.changes else {
        if position.is_some() && !options.as_it_is {
            connection.execute(FORGET, []).map_err(failed)?;
        }
        return Ok(None);
    };
    let io = |source| OpenError::Io {
        path: folder.clone(),
        source,
    };
    if let Some(position) = position {
        match ChangeLog::open(folder, position).map_err(io)? {
            Opened::Whole(log) => return Ok(Some(log)),
            Opened::Ahead => {
                let folder = folder.clone();
                return Err(OpenError::LogAhead { folder });
            }
            Opened::Incomplete => {
                let folder = folder.display();
                tracing::warn!(%folder, "the log of changes is not whole: another one begins");
            }
        }
    }
    let (log, position) = ChangeLog::begin(folder).map_err(io)?;
    set(connection, position).map_err(failed)?;
    Ok(Some(log))
}

fn set(connection: &mut Connection, position: Position) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Position { log, number } = position;
    transaction.execute(SET, ("changes_log", log.cast_signed()))?;
    transaction.execute(SET, ("changes_number", number.cast_signed()))?;
    transaction.commit()
}
