//! Read transactions, each on a connection of its own: the tree as of their start, and above it the changes that were
//! then pending.
//!
//! Connections are pooled, last used first: with N reading threads, N connections are open, and each thread mostly gets
//! its previous one.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};

use super::connect::open_reader;
use super::disk::DiskRoom;
use super::pending::{Above, Change, Changed, GroupNumber, LAST_GROUP, Now, Shared, Tables};
use super::values::{large, large_length, value};
use crate::lock::FolderLock;
use crate::{Engine, Record, Show, Snapshot, StoreError, Walk};

/// The maximum number of idle connections.
const IDLE_CONNECTIONS: usize = 128;
/// Connections that are open from the start: for one or two long sweeps, and for others.
const SPARE_CONNECTIONS: usize = 4;

const GET: &str = "SELECT revision, value FROM records WHERE partition = ?1 AND key = ?2";
const SCAN_FROM: &str = "SELECT key, revision, value FROM records
    WHERE partition = ?1 AND key >= ?2 ORDER BY key LIMIT ?3";
const SCAN_RANGE: &str = "SELECT key, revision, value FROM records
    WHERE partition = ?1 AND key >= ?2 AND key < ?4 ORDER BY key LIMIT ?3";
const WALK: &str = "SELECT key, revision, value, partition FROM records
    WHERE (partition, key) > (?1, ?2) ORDER BY partition, key";
const WALK_ALL: &str = "SELECT key, revision, value, partition FROM records
    ORDER BY partition, key";
const INTEGRITY: &str = "SELECT integrity_check FROM pragma_integrity_check";
const LOST: &str = "SELECT count(*) FROM records
    WHERE typeof(value) = 'integer' AND value NOT IN (SELECT id FROM large_values)";
const LEFT_OVER: &str = "SELECT count(*) FROM large_values
    WHERE id NOT IN (SELECT value FROM records WHERE typeof(value) = 'integer')";
const SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";

pub(crate) struct ReadPool {
    file: PathBuf,
    /// The pending changes; `None` for a file of a version without them.
    pending: Option<Arc<Shared>>,
    idle: Mutex<Vec<Connection>>,
    disk: Arc<DiskRoom>,
    /// Released after the connections are closed.
    _lock: FolderLock,
}

impl ReadPool {
    pub(super) fn new(
        file: PathBuf,
        pending: Option<Arc<Shared>>,
        (disk, lock): (Arc<DiskRoom>, FolderLock),
    ) -> Self {
        Self {
            file,
            pending,
            idle: Mutex::new(Vec::new()),
            disk,
            _lock: lock,
        }
    }

    /// Opens some connections in advance: opening one blocks while the disk hangs. A connection that fails here is
    /// opened when it is needed, and that call reports the error.
    pub(super) fn open_spares(&self) {
        let open = |_| self.begin().inspect(|session| drop(session.get("", b"")));
        let _at_once: Vec<_> = (0..SPARE_CONNECTIONS).map(open).collect();
    }

    /// Starts a read transaction.
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
        let Some(pending) = &self.pending else {
            connection.prepare_cached("BEGIN")?.execute([])?;
            return Ok(Session {
                pool: self,
                connection: Some(connection),
                tables: Tables::default(),
                at: 0,
            });
        };
        loop {
            let tables = pending.tables();
            connection.prepare_cached("BEGIN")?.execute([])?;
            // The first read takes the snapshot.
            let last: Option<i64> = connection
                .prepare_cached(LAST_GROUP)?
                .query_row([], |row| row.get(0))?;
            if pending.are(&tables) {
                return Ok(Session {
                    pool: self,
                    connection: Some(connection),
                    tables,
                    at: last.unwrap_or_default().unsigned_abs(),
                });
            }
            // A memtable was replaced meanwhile: the memtables and the snapshot may not match.
            connection.prepare_cached("COMMIT")?.execute([])?;
        }
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

    fn pending_bytes(&self) -> u64 {
        let pending = self.pending.as_ref();
        pending.map_or(0, |shared| shared.tables().bytes() as u64)
    }

    fn is_short_of_room(&self) -> bool {
        self.disk.is_used_up()
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
    tables: Tables,
    /// The last visible group.
    at: GroupNumber,
}

impl Session<'_> {
    fn connection(&self) -> &Connection {
        self.connection
            .as_ref()
            .expect("the connection is taken only by drop")
    }

    /// SQLite returns "ok" if it finds no problem.
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
        // A connection whose transaction can't end is closed instead of reused.
        if ended.is_ok() {
            self.pool.put_back(connection);
        }
    }
}

impl Snapshot for Session<'_> {
    fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError> {
        match self.tables.get(partition, key, self.at) {
            Some(change) if change.now == Now::Gone => return Ok(None),
            Some(change) if change.now != Now::InTree => return Ok(recorded(&change)),
            _ => {}
        }
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
        self.rows((partition, from, to, limit), &mut |found| {
            Ok(match found {
                Found::Row(row) => {
                    let record = record(self.connection(), row, 1)?;
                    visit(row.get_ref(0)?.as_blob()?, record)
                }
                Found::Changed(key, value, revision) => {
                    let value = value.clone();
                    visit(key, Record { value, revision })
                }
            })
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
        self.rows((partition, from, to, limit), &mut |found| {
            let row = match found {
                Found::Row(row) => row,
                Found::Changed(key, value, _) => return Ok(show(key, value)),
            };
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
        self.rows((partition, from, to, limit), &mut |found| {
            let row = match found {
                Found::Row(row) => row,
                Found::Changed(key, value, _) => return Ok(tell(key, value.len() as u64)),
            };
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
        let mut merge = Merge {
            above: Above::all(&self.tables, self.at, after),
            left: limit,
            is_over: limit == 0,
        };
        let visit: &mut dyn FnMut(&str, &[u8], Found<'_, '_>) -> Visited =
            &mut |partition, key, found| {
                let record = match found {
                    Found::Row(row) => record(self.connection(), row, 1)?,
                    Found::Changed(_, value, revision) => Record {
                        value: value.clone(),
                        revision,
                    },
                };
                Ok(visit(partition, key, record))
            };
        let mut row = |row: &Row<'_>| {
            let place = (row.get_ref(3)?.as_str()?, row.get_ref(0)?.as_blob()?);
            merge.row(place, row, visit)
        };
        match after {
            Some((partition, key)) => {
                let mut walk = self.connection().prepare_cached(WALK)?;
                visit_rows(walk.query(params![partition, key])?, &mut row)?;
            }
            None => {
                let mut walk = self.connection().prepare_cached(WALK_ALL)?;
                visit_rows(walk.query([])?, &mut row)?;
            }
        }
        Ok(merge.rest(visit)?)
    }
}

fn recorded(change: &Change) -> Option<Record> {
    match &change.now {
        Now::Value(value) => Some(Record {
            value: value.clone(),
            revision: change.revision,
        }),
        Now::Gone | Now::InTree => None,
    }
}

/// A record in place: in the tree, or above it with its key, value, and revision.
enum Found<'a, 'row> {
    Row(&'a Row<'row>),
    Changed(&'a [u8], &'a Bytes, u64),
}

type Visited = rusqlite::Result<ControlFlow<()>>;

/// Merges rows of the tree with the changes above it, in key order.
struct Merge<'a> {
    above: Above<'a>,
    /// The number of records still to visit.
    left: usize,
    is_over: bool,
}

type KeyRef<'a> = (&'a str, &'a [u8]);
type AllVisit<'a> = &'a mut dyn FnMut(&str, &[u8], Found<'_, '_>) -> Visited;

impl Merge<'_> {
    /// Visits the changes before a row of the tree, and then the row, unless a change replaces it.
    fn row(&mut self, place: KeyRef<'_>, row: &Row<'_>, visit: AllVisit<'_>) -> Visited {
        let mut instead = None;
        while let Some(changed) = self.above.peek() {
            match changed.place().cmp(&place) {
                Ordering::Greater => break,
                Ordering::Less => {
                    if self.next(visit)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ordering::Equal => {
                    instead = self.above.next();
                    break;
                }
            }
        }
        match instead {
            Some(changed) if changed.change.now != Now::InTree => self.show(&changed, visit),
            _ if self.is_over => Ok(ControlFlow::Break(())),
            _ => {
                let went = visit(place.0, place.1, Found::Row(row))?;
                Ok(self.went(went))
            }
        }
    }

    /// Visits the changes after all rows.
    fn rest(&mut self, visit: AllVisit<'_>) -> rusqlite::Result<()> {
        while !self.is_over && self.above.peek().is_some() {
            let _ = self.next(visit)?;
        }
        Ok(())
    }

    fn next(&mut self, visit: AllVisit<'_>) -> Visited {
        match self.above.next() {
            Some(changed) => self.show(&changed, visit),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    fn show(&mut self, changed: &Changed, visit: AllVisit<'_>) -> Visited {
        let Now::Value(value) = &changed.change.now else {
            return Ok(ControlFlow::Continue(()));
        };
        if self.is_over {
            return Ok(ControlFlow::Break(()));
        }
        let (partition, key) = changed.place();
        let found = Found::Changed(key, value, changed.change.revision);
        let went = visit(partition, key, found)?;
        Ok(self.went(went))
    }

    fn went(&mut self, went: ControlFlow<()>) -> ControlFlow<()> {
        self.left -= 1;
        self.is_over |= self.left == 0 || went.is_break();
        match self.is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// A partition, the first key, the first key after the range, and a limit.
type Range<'a> = (&'a str, &'a [u8], Option<&'a [u8]>, usize);
type Visit<'a> = &'a mut dyn FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>;

impl Session<'_> {
    fn rows(
        &self,
        (partition, from, to, limit): Range<'_>,
        visit: &mut dyn FnMut(Found<'_, '_>) -> Visited,
    ) -> Result<(), StoreError> {
        if limit == 0 {
            return Ok(());
        }
        let mut above = Above::range(&self.tables, self.at, (partition, from, to));
        if above.peek().is_none() {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            return self.tree_rows((partition, from, to), limit, &mut |row| {
                visit(Found::Row(row))
            });
        }
        let mut merge = Merge {
            above,
            left: limit,
            is_over: false,
        };
        let visit: AllVisit<'_> = &mut |_, _, found| visit(found);
        // Without a limit: some of the rows may be removed above the tree.
        self.tree_rows((partition, from, to), -1, &mut |row| {
            let key = row.get_ref(0)?.as_blob()?;
            merge.row((partition, key), row, visit)
        })?;
        Ok(merge.rest(visit)?)
    }

    fn tree_rows(
        &self,
        (partition, from, to): (&str, &[u8], Option<&[u8]>),
        limit: i64,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
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
