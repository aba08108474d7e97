//! Further connections to a database that is known to be there, and the sizes that all agree on.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

/// Of new files. Lists are read from few leaves.
pub(super) const PAGE_BYTES: u32 = 8192;
/// Most bytes of a partition, a key, and a value together that lie in one row; a longer value lies in a
/// table of its own. A long row often finds its leaf full, and then three leaves and their parent are
/// written anew: most of what a write costs. Lines of lists, which are read by the page, are shorter.
pub(super) const INLINE_BYTES: usize = 700;
/// A reader's pages are void after every commit, and dropping them costs the more the more there are: it
/// gets room for the path to a few leaves.
const READER_CACHE_KIB: i64 = 256;
/// Only housekeeping of our own can hold a lock, and never for long.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection that only reads, set up for short transactions.
pub(super) fn open_reader(file: &Path) -> Result<Connection, StoreError> {
    let connection = open_helper(file)?;
    connection.pragma_update(None, "query_only", true)?;
    // No memory map: with many readers, each sync and each growth of the file walks all their maps,
    // which cost a quarter of the server's time under load.
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.set_prepared_statement_cache_capacity(16);
    Ok(connection)
}

/// How long a file's pages are, which is as it was made.
pub(super) fn page_bytes(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "page_size", |row| row.get(0))
}

/// A further connection to a database that is known to be there.
pub(super) fn open_helper(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // One plan per statement: otherwise a statement is compiled anew for each new bound value,
    // in case statistics, of which there are none, say otherwise.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}
