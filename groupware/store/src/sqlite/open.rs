//! Opens the database file: checks that it is ours and of this version, and tunes the connection.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::checkpoint::Checkpointer;
use super::connect::{BUSY_TIMEOUT, PAGE_BYTES, page_bytes};
use super::disk::DiskRoom;
use super::log_ahead::LogAhead;
use super::pending::{self, Pending};
use super::position::start_log;
use super::read::ReadPool;
use super::vacuum;
use super::write::SqliteWriter;
use crate::lock::FolderLock;
use crate::{OpenError, StoreOptions, place};

/// The file of a store in its folder.
pub const FILE_NAME: &str = "groupware.sqlite";

/// "PLIM", in the header of each of our files.
const APPLICATION_ID: i64 = 0x504C_494D;
/// The version of the tables. Each change of their schema gets the next number and a migration step.
const SCHEMA_VERSION: i64 = 3;
/// The first version that is read without a migration: only the table of pending changes is missing.
const READ_VERSION: i64 = 2;

/// The writer's page cache, which it keeps between transactions.
const WRITER_CACHE_KIB: i64 = 64 << 10;
/// A log that grew beyond this is truncated when it restarts. A log of usual length isn't: it would have to grow again,
/// page by page, while commits wait.
const LOG_KEEP_BYTES: i64 = 96 << 20;
/// The room for rows of pending changes, and for those that are being deleted.
const PENDING_ROOM_BYTES: u64 = 128 << 20;
const SCHEMA: &str = "
    CREATE TABLE records (
        partition TEXT NOT NULL,
        key BLOB NOT NULL,
        revision INTEGER NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (partition, key)
    ) WITHOUT ROWID;
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counters VALUES ('revision_limit', 0);
";
/// Since version 2. Earlier versions stored every value in its record, and their values stay there.
const LARGE: &str = "CREATE TABLE large_values (id INTEGER PRIMARY KEY, value BLOB NOT NULL);";

/// Opens the store in a folder, which is created if it doesn't exist, and locks it.
pub(crate) fn open(
    folder: &Path,
    options: &StoreOptions,
) -> Result<(ReadPool, SqliteWriter), OpenError> {
    let lock = FolderLock::take(folder)?;
    let file = folder.join(FILE_NAME);
    let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::Foreign { file: file.clone() },
        _ => OpenError::Database {
            file: file.clone(),
            source: error.into(),
        },
    };
    let io = |source| OpenError::Io {
        path: folder.into(),
        source,
    };
    if !options.as_it_is {
        // SQLite would create it with the rights of the umask; its log gets the file's rights.
        place::open_file(&file).map_err(io)?;
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, !options.as_it_is);
    let mut connection = Connection::open_with_flags(&file, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    let found = identify(&connection).map_err(failed)?;
    match found {
        Found::Empty if !options.as_it_is => create(&mut connection).map_err(failed)?,
        Found::Ours(version @ 1..SCHEMA_VERSION) if !options.as_it_is => {
            upgrade(&mut connection, version).map_err(failed)?;
        }
        Found::Ours(version) => known_version(&file, version)?,
        Found::Empty | Found::Foreign => return Err(OpenError::Foreign { file: file.clone() }),
    }
    tune_writer(&connection, options).map_err(failed)?;
    if !options.as_it_is {
        narrow(&file).map_err(io)?;
    }
    place::sync_folder(folder).map_err(io)?;
    let changes = start_log(&mut connection, (&file, options))?;
    let has_pending = !matches!(found, Found::Ours(READ_VERSION) if options.as_it_is);
    let full_bytes = options.pending_bytes;
    let pending = match has_pending {
        true => Pending::load(&connection, full_bytes).map_err(failed)?,
        false => Pending::new(full_bytes),
    };
    let checkpointer = Checkpointer::start(&file).map_err(|source| OpenError::Database {
        file: file.clone(),
        source,
    })?;
    let may_shrink = !options.as_it_is && vacuum::is_possible(&connection).map_err(failed)?;
    let disk = Arc::new(disk_room(folder, may_shrink, &checkpointer));
    let pool = ReadPool::new(
        file.clone(),
        has_pending.then(|| pending.shared()),
        (Arc::clone(&disk), lock),
    );
    let log_ahead = LogAhead::new(&file, page_bytes(&connection).map_err(failed)?);
    let writer = SqliteWriter::new(
        connection,
        pending,
        (checkpointer, log_ahead, disk),
        changes,
        options,
    );
    pool.open_spares();
    Ok((pool, writer.map_err(failed)?))
}

/// No reserve is kept on a disk where a removal doesn't make the file shorter.
fn disk_room(folder: &Path, may_shrink: bool, checkpointer: &Checkpointer) -> DiskRoom {
    match may_shrink {
        true => DiskRoom::watch(folder, checkpointer.bell()),
        false => DiskRoom::unwatched(),
    }
}

/// Checks that this program reads this version of a store.
pub(super) fn known_version(file: &Path, found: i64) -> Result<(), OpenError> {
    let (file, known) = (file.to_path_buf(), SCHEMA_VERSION);
    match found {
        ..READ_VERSION => Err(OpenError::Older { file, found, known }),
        READ_VERSION..=SCHEMA_VERSION => Ok(()),
        _ => Err(OpenError::Newer { file, found, known }),
    }
}

pub(super) enum Found {
    Empty,
    Ours(i64),
    Foreign,
}

pub(super) fn identify(connection: &Connection) -> rusqlite::Result<Found> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(
        match (number("application_id")?, number("user_version")?, tables) {
            (APPLICATION_ID, version, _) if version >= 1 => Found::Ours(version),
            (0, 0, 0) => Found::Empty,
            _ => Found::Foreign,
        },
    )
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    // Works only before the first table exists; later, it needs a rebuild of the file.
    connection.pragma_update(None, "auto_vacuum", "incremental")?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute_batch(LARGE)?;
    transaction.execute_batch(pending::SCHEMA)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()
}

fn upgrade(connection: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if from < 2 {
        transaction.execute_batch(LARGE)?;
    }
    transaction.execute_batch(pending::SCHEMA)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()
}

fn tune_writer(connection: &Connection, options: &StoreOptions) -> rusqlite::Result<()> {
    if !options.as_it_is {
        connection.pragma_update(None, "journal_mode", "wal")?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // FULL: the log is synced before a commit returns. NORMAL could lose the last commits.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", LOG_KEEP_BYTES)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    if let Some(quota) = options.quota_bytes {
        // Pending changes are in the file, too, and the writer counts them; this limit is a backstop.
        let most = quota_pages(
            quota.saturating_add(PENDING_ROOM_BYTES),
            page_bytes(connection)?,
        );
        connection.pragma_update(None, "max_page_count", most)?;
    }
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

/// The quota in pages; at least one, because SQLite takes 0 for "unchanged".
fn quota_pages(quota_bytes: u64, page_bytes: u32) -> i64 {
    i64::try_from(quota_bytes).map_or(i64::from(u32::MAX - 1), |bytes| {
        (bytes / i64::from(page_bytes)).max(1)
    })
}

/// Makes files of an older version private that other users can read: the database and its companion files, which
/// contain the last changes.
fn narrow(file: &Path) -> io::Result<()> {
    ["", "-wal", "-shm"].iter().try_for_each(|suffix| {
        let mut path = file.as_os_str().to_owned();
        path.push(suffix);
        place::narrow(Path::new(&path))
    })
}
