//! Read transactions, each on a connection of its own while it lasts.
//!
//! Connections are pooled, last used first: with N threads that read, N connections are open and
//! each thread mostly gets the one it had before.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};

use super::connect::open_reader;
use crate::lock::FolderLock;
use crate::{Engine, Record, Show, Snapshot, StoreError, Walk};

/// Most connections kept open without work.
const IDLE_CONNECTIONS: usize = 128;
/// Connections that are open from the start: for a sweep or two that read for long, and for others.
const SPARE_CONNECTIONS: usize = 4;

const GET: &str = "SELECT revision, value FROM records WHERE partition = ?1 AND key = ?2";
const SCAN_FROM: &str = "SELECT key, revision, value FROM records
    WHERE partition = ?1 AND key >= ?2 ORDER BY key LIMIT ?3";
const SCAN_RANGE: &str = "SELECT key, revision, value FROM records
    WHERE partition = ?1 AND key >= ?2 AND key < ?4 ORDER BY key LIMIT ?3";
const WALK: &str = "SELECT key, revision, value, partition FROM records
    WHERE (partition, key) > (?1, ?2) ORDER BY partition, key LIMIT ?3";
const WALK_ALL: &str = "SELECT key, revision, value, partition FROM records
    ORDER BY partition, key LIMIT ?1";
const LARGE: &str = "SELECT value FROM large_values WHERE id = ?1";
/// SQLite tells it without reading the value.
const LARGE_LENGTH: &str = "SELECT length(value) FROM large_values WHERE id = ?1";
const INTEGRITY: &str = "SELECT integrity_check FROM pragma_integrity_check";
const LOST: &str = "SELECT count(*) FROM records
    WHERE typeof(value) = 'integer' AND value NOT IN (SELECT id FROM large_values)";
const LEFT_OVER: &str = "SELECT count(*) FROM large_values
    WHERE id NOT IN (SELECT value FROM records WHERE typeof(value) = 'integer')";
const SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";

pub(crate) struct ReadPool {
    file: PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// Let go after the connections are closed.
    _lock: FolderLock,
}

impl ReadPool {
    pub(super) fn new(file: PathBuf, lock: FolderLock) -> Self {
        Self {
            file,
            idle: Mutex::new(Vec::new()),
            _lock: lock,
        }
    }

    /// Opens some connections before they are needed: one that is opened while the disk hangs hangs with it.
    /// What can't be opened yet is when it is needed, and says why then.
    pub(super) fn open_spares(&self) {
        let open = |_| self.begin().inspect(|session| drop(session.get("", b"")));
        let _at_once: Vec<_> = (0..SPARE_CONNECTIONS).map(open).collect();
    }

    /// Starts a read transaction; its snapshot is taken by its first read.
    fn begin(&self) -> Result<Session<'_>, StoreError> {
        let pooled = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => open_reader(&self.file)?,
        };
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Session {
            pool: self,
            connection: Some(connection),
        })
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }
}

impl Engine for ReadPool {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        Ok(Box::new(self.begin()?))
    }

    fn data_bytes(&self) -> Result<u64, StoreError> {
        self.begin()?.data_bytes()
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.begin()?.integrity()
    }
}

/// One read transaction.
struct Session<'pool> {
    pool: &'pool ReadPool,
    /// Taken when the session ends.
    connection: Option<Connection>,
}

impl Session<'_> {
    fn connection(&self) -> &Connection {
        self.connection
            .as_ref()
            .expect("the connection is taken only by drop")
    }

    /// SQLite says "ok" where all is well.
    fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut check = self.connection().prepare(INTEGRITY)?;
        let lines = check.query_map([], |row| row.get::<_, String>(0))?;
        let mut wrong = lines.collect::<Result<Vec<_>, _>>()?;
        wrong.retain(|line| line != "ok");
        for (sql, what) in [
            (LOST, "records without their value"),
            (LEFT_OVER, "values without their record"),
        ] {
            let found: i64 = self.connection().query_row(sql, [], |row| row.get(0))?;
            if found > 0 {
                wrong.push(format!("{found} {what}"));
            }
        }
        Ok(wrong)
    }

    fn data_bytes(&self) -> Result<u64, StoreError> {
        let bytes: i64 = self
            .connection()
            .prepare_cached(SIZE)?
            .query_row([], |row| row.get(0))?;
        Ok(bytes.unsigned_abs())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let ended = connection
            .prepare_cached("COMMIT")
            .and_then(|mut end| end.execute([]));
        // A connection whose transaction can't end is closed, not used again.
        if ended.is_ok() {
            self.pool.put_back(connection);
        }
    }
}

impl Snapshot for Session<'_> {
    fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError> {
        let mut get = self.connection().prepare_cached(GET)?;
        Ok(get
            .query_row((partition, key), |row| record(self.connection(), row, 0))
            .optional()?)
    }

    fn scan(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let range = (partition, from, to, limit);
        self.rows(range, &mut |row| {
            let record = record(self.connection(), row, 1)?;
            Ok(visit(row.get_ref(0)?.as_blob()?, record))
        })
    }

    fn browse(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        show: Show<'_>,
    ) -> Result<(), StoreError> {
        let range = (partition, from, to, limit);
        self.rows(range, &mut |row| {
            let key = row.get_ref(0)?.as_blob()?;
            Ok(match row.get_ref(2)? {
                ValueRef::Integer(id) => show(key, &large(self.connection(), id)?),
                value => show(key, value.as_blob()?),
            })
        })
    }

    fn measure(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        tell: &mut dyn FnMut(&[u8], u64) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let range = (partition, from, to, limit);
        self.rows(range, &mut |row| {
            let key = row.get_ref(0)?.as_blob()?;
            Ok(match row.get_ref(2)? {
                ValueRef::Integer(id) => tell(key, large_length(self.connection(), id)?),
                value => tell(key, value.as_blob()?.len() as u64),
            })
        })
    }

    fn walk(
        &self,
        after: Option<(&str, &[u8])>,
        limit: usize,
        visit: Walk<'_>,
    ) -> Result<(), StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let visit: Visit<'_> = &mut |row| {
            let record = record(self.connection(), row, 1)?;
            let (key, partition) = (row.get_ref(0)?.as_blob()?, row.get_ref(3)?.as_str()?);
            Ok(visit(partition, key, record))
        };
        match after {
            Some((partition, key)) => {
                let mut walk = self.connection().prepare_cached(WALK)?;
                visit_rows(walk.query(params![partition, key, limit])?, visit)
            }
            None => {
                let mut walk = self.connection().prepare_cached(WALK_ALL)?;
                visit_rows(walk.query([limit])?, visit)
            }
        }
    }
}

fn large_length(connection: &Connection, id: i64) -> rusqlite::Result<u64> {
    let mut length = connection.prepare_cached(LARGE_LENGTH)?;
    let bytes: i64 = length.query_row([id], |row| row.get(0))?;
    Ok(bytes.unsigned_abs())
}

/// A partition, the first key, the first key after, and how many.
type Range<'a> = (&'a str, &'a [u8], Option<&'a [u8]>, usize);
type Visit<'a> = &'a mut dyn FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>;

impl Session<'_> {
    fn rows(&self, range: Range<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
        let (partition, from, to, limit) = range;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match to {
            Some(to) => {
                let mut scan = self.connection().prepare_cached(SCAN_RANGE)?;
                visit_rows(scan.query(params![partition, from, limit, to])?, visit)
            }
            None => {
                let mut scan = self.connection().prepare_cached(SCAN_FROM)?;
                visit_rows(scan.query(params![partition, from, limit])?, visit)
            }
        }
    }
}

fn visit_rows(mut rows: Rows<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
    while let Some(row) = rows.next()? {
        if visit(row)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The record whose revision is in column `at` and whose value is in the next one.
fn record(connection: &Connection, row: &Row<'_>, at: usize) -> rusqlite::Result<Record> {
    let revision: i64 = row.get(at)?;
    Ok(Record {
        value: value(connection, row.get_ref(at + 1)?)?,
        revision: revision.unsigned_abs(),
    })
}

/// A value, wherever it lies.
pub(super) fn value(connection: &Connection, stored: ValueRef<'_>) -> rusqlite::Result<Bytes> {
    match stored {
        ValueRef::Integer(id) => large(connection, id),
        value => Ok(Bytes::copy_from_slice(value.as_blob()?)),
    }
}

fn large(connection: &Connection, id: i64) -> rusqlite::Result<Bytes> {
    connection.prepare_cached(LARGE)?.query_row([id], |row| {
        Ok(Bytes::copy_from_slice(row.get_ref(0)?.as_blob()?))
    })
}
