//! Further connections to an existing database, and the sizes that they share.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

/// The page size of new files. Lists are then read from few leaves.
pub(super) const PAGE_BYTES: u32 = 8192;
/// The maximum bytes of a partition, a key, and a value together in one row; a longer value is stored in a separate
/// table. A long row often finds its leaf full, and then three leaves and their parent are rewritten: most of the cost
/// of a write. Rows of lists, which are read by the page, are shorter.
pub(super) const INLINE_BYTES: usize = 700;
/// The page cache of a reader. Every commit invalidates it, and dropping more pages costs more: it has room for the
/// path to a few leaves.
const READER_CACHE_KIB: i64 = 256;
/// Only our own housekeeping can hold a lock, and never for long.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Opens a read-only connection, tuned for short transactions.
pub(super) fn open_reader(file: &Path) -> Result<Connection, StoreError> {
    let connection = open_helper(file)?;
    connection.pragma_update(None, "query_only", true)?;
    // No memory map: with many readers, each sync and each growth of the file walks all their maps,
    // which cost a quarter of the server's time under load.
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.set_prepared_statement_cache_capacity(16);
    Ok(connection)
}

/// The page size of a file, which is fixed at its creation.
pub(super) fn page_bytes(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "page_size", |row| row.get(0))
}

/// Opens a further connection to an existing database.
pub(super) fn open_helper(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // One plan per statement: otherwise a statement is recompiled for each new bound value, in case of statistics,
    // which we don't have.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}
