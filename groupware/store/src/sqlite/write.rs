//! Applies groups of batches, each group in one transaction.

use std::io;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension, ToSql};

use super::checkpoint::{Checkpointer, watch_log, written_log};
use super::connect::INLINE_BYTES;
use super::fault;
use super::log_ahead::LogAhead;
use super::read::value;
use super::vacuum::Vacuum;
use crate::batch::added;
use crate::changes::{Change, ChangeLog};
use crate::{Assert, Batch, CommitError, Committed, Op, Outcome, StoreError, Writer, place};

/// Revisions are reserved in runs, so that a commit needn't write the counter.
const REVISION_RUN: u64 = 1 << 20;

const BEGIN: &str = "BEGIN IMMEDIATE";
const REVISION: &str = "SELECT revision FROM records WHERE partition = ?1 AND key = ?2";
/// Most records are new: one descent of the tree then tells so and writes.
const PUT_NEW: &str = "INSERT OR IGNORE INTO records (partition, key, revision, value)
    VALUES (?1, ?2, ?3, ?4)";
const PUT_OVER: &str = "UPDATE records SET revision = ?3, value = ?4
    WHERE partition = ?1 AND key = ?2";
const VALUE: &str = "SELECT value FROM records WHERE partition = ?1 AND key = ?2";
const DELETE: &str = "DELETE FROM records WHERE partition = ?1 AND key = ?2";
const DELETE_RANGE: &str = "DELETE FROM records WHERE partition = ?1 AND key >= ?2 AND key < ?3";
const DELETE_PARTITION: &str = "DELETE FROM records WHERE partition = ?1";
const HAS_LARGE: &str = "SELECT EXISTS (SELECT 1 FROM large_values)";
const PUT_LARGE: &str = "INSERT INTO large_values (value) VALUES (?1)";
const LARGE: &str = "SELECT value FROM records
    WHERE partition = ?1 AND key = ?2 AND typeof(value) = 'integer'";
const FREE: &str = "DELETE FROM large_values WHERE id = ?1";
const FREE_RANGE: &str = "DELETE FROM large_values WHERE id IN (SELECT value FROM records
    WHERE partition = ?1 AND key >= ?2 AND key < ?3 AND typeof(value) = 'integer')";
const FREE_PARTITION: &str = "DELETE FROM large_values WHERE id IN (SELECT value FROM records
    WHERE partition = ?1 AND typeof(value) = 'integer')";
const LIMIT: &str = "SELECT value FROM counters WHERE name = 'revision_limit'";
const RESERVE: &str = "UPDATE counters SET value = ?1 WHERE name = 'revision_limit'";

const LOGGED: &str = "UPDATE counters SET value = ?1 WHERE name = 'changes_number'";

pub(crate) struct SqliteWriter {
    connection: Connection,
    checkpointer: Checkpointer,
    log_ahead: LogAhead,
    /// What is committed is written here first.
    changes: Option<ChangeLog>,
    vacuum: Vacuum,
    /// Pages in the log after a commit that wrote any, until it is tended.
    written_pages: Option<u32>,
    /// The last revision used.
    revision: u64,
    /// The last revision that may be used before the next run is reserved.
    revision_limit: u64,
    /// Whether there may be large values, which go with their records.
    has_large: bool,
}

/// A failure that ends the whole transaction, unlike an assert that doesn't hold.
enum Broken {
    Database(rusqlite::Error),
    ChangeLog(io::Error),
}

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::ChangeLog(error)
    }
}

impl Broken {
    /// A smaller transaction may still fit.
    fn is_for_want_of_room(&self) -> bool {
        match self {
            Self::Database(error) => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::ChangeLog(error) => error.kind() == io::ErrorKind::StorageFull,
        }
    }
}

impl SqliteWriter {
    pub(super) fn new(
        connection: Connection,
        checkpointer: Checkpointer,
        log_ahead: LogAhead,
        changes: Option<ChangeLog>,
    ) -> rusqlite::Result<Self> {
        let limit: i64 = connection.query_row(LIMIT, [], |row| row.get(0))?;
        let has_large = connection.query_row(HAS_LARGE, [], |row| row.get(0))?;
        watch_log(&connection);
        // What was left of the last run is skipped: it isn't known how much of it was used.
        let limit = limit.unsigned_abs();
        Ok(Self {
            vacuum: Vacuum::new(&connection)?,
            connection,
            checkpointer,
            log_ahead,
            changes,
            written_pages: None,
            revision: limit,
            revision_limit: limit,
            has_large,
        })
    }

    /// One transaction for all batches.
    fn transact(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) -> Result<(), Broken> {
        let before = (self.revision, self.revision_limit);
        let result = self.try_transact(group, outcomes);
        if result.is_err() {
            (self.revision, self.revision_limit) = before;
            outcomes.clear();
            if !self.connection.is_autocommit() {
                // If this fails too, the next BEGIN does, and its batches learn of it.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
        }
        result
    }

    fn try_transact(
        &mut self,
        group: &[&Batch],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Broken> {
        self.connection.prepare_cached(BEGIN)?.execute([])?;
        for batch in group {
            outcomes.push(match self.first_failed(&batch.asserts)? {
                Some(index) => Err(CommitError::Conflict { index }),
                None => Ok(self.change(&batch.ops)?),
            });
        }
        self.log(group, outcomes)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        if let Some(changes) = &mut self.changes {
            changes.committed();
        }
        self.written_pages = written_log().or(self.written_pages);
        Ok(())
    }

    /// Has the log of changes written what is about to be committed, and the records say how far it is.
    fn log(&mut self, group: &[&Batch], outcomes: &[Outcome]) -> Result<(), Broken> {
        let Some(changes) = &mut self.changes else {
            return Ok(());
        };
        let pairs = group.iter().zip(outcomes);
        let committed: Vec<(u64, &[Op])> = pairs
            .filter_map(|(batch, outcome)| Some((outcome.as_ref().ok()?.revision, &batch.ops[..])))
            .filter(|(_, ops)| !ops.is_empty())
            .collect();
        if committed.is_empty() {
            return Ok(());
        }
        let number = changes.write(&committed)?;
        let mut logged = self.connection.prepare_cached(LOGGED)?;
        logged.execute([number.cast_signed()])?;
        Ok(())
    }

    /// Does again what a log says was committed, in one transaction.
    pub(crate) fn redo(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.connection.prepare_cached(BEGIN)?.execute([])?;
        for Change { revision, ops } in changes {
            self.revision = self.revision.max(*revision);
            for op in ops {
                self.change_one(op, *revision)?;
            }
        }
        if self.revision > self.revision_limit {
            self.revision_limit = self.revision;
            self.connection
                .prepare_cached(RESERVE)?
                .execute([self.revision_limit.cast_signed()])?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.written_pages = written_log().or(self.written_pages);
        self.tend();
        Ok(())
    }

    fn first_failed(&self, asserts: &[Assert]) -> rusqlite::Result<Option<usize>> {
        if asserts.is_empty() {
            return Ok(None);
        }
        let mut revision = self.connection.prepare_cached(REVISION)?;
        for (index, assert) in asserts.iter().enumerate() {
            let found: Option<i64> = revision
                .query_row(assert.target(), |row| row.get(0))
                .optional()?;
            if !assert.holds(found.map(i64::unsigned_abs)) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn change(&mut self, ops: &[Op]) -> rusqlite::Result<Committed> {
        let revision = self.next_revision()?;
        for op in ops {
            self.change_one(op, revision)?;
        }
        Ok(Committed { revision })
    }

    fn change_one(&mut self, op: &Op, revision: u64) -> rusqlite::Result<()> {
        self.vacuum.note(op);
        match op {
            Op::Put {
                partition,
                key,
                value,
            } => self.put((partition, key), revision, value),
            Op::Add { partition, key, by } => {
                let old = self
                    .connection
                    .prepare_cached(VALUE)?
                    .query_row((&**partition, key), |row| {
                        value(&self.connection, row.get_ref(0)?)
                    })
                    .optional()?;
                self.put(
                    (partition, key),
                    revision,
                    &added(&old.unwrap_or_default(), by),
                )
            }
            Op::Delete { partition, key } => {
                self.free(partition, key)?;
                self.connection
                    .prepare_cached(DELETE)?
                    .execute((&**partition, key))?;
                Ok(())
            }
            Op::DeleteRange {
                partition,
                from,
                to,
            } => self.remove_all(
                (FREE_RANGE, DELETE_RANGE),
                &[&&**partition, &&from[..], &&to[..]],
            ),
            Op::DeletePartition { partition } => {
                self.remove_all((FREE_PARTITION, DELETE_PARTITION), &[&&**partition])
            }
        }
    }

    /// Writes a record, new or not.
    fn put(
        &mut self,
        (partition, key): (&str, &[u8]),
        revision: u64,
        value: &[u8],
    ) -> rusqlite::Result<()> {
        let revision = revision.cast_signed();
        if lies_inline(partition, key, value) {
            return self.put_row((partition, key), revision, &value);
        }
        let mut put_large = self.connection.prepare_cached(PUT_LARGE)?;
        put_large.execute((value,))?;
        let id = self.connection.last_insert_rowid();
        drop(put_large);
        self.has_large = true;
        self.put_row((partition, key), revision, &id)
    }

    fn put_row(
        &self,
        (partition, key): (&str, &[u8]),
        revision: i64,
        value: &dyn ToSql,
    ) -> rusqlite::Result<()> {
        let row: [&dyn ToSql; 4] = [&partition, &key, &revision, value];
        if self.connection.prepare_cached(PUT_NEW)?.execute(row)? == 1 {
            return Ok(());
        }
        self.free(partition, key)?;
        self.connection.prepare_cached(PUT_OVER)?.execute(row)?;
        Ok(())
    }

    /// Removes the large value of a record, if it has one: few do, and to look is cheaper than to
    /// delete nothing.
    fn free(&self, partition: &str, key: &[u8]) -> rusqlite::Result<()> {
        if !self.has_large {
            return Ok(());
        }
        let id: Option<i64> = self
            .connection
            .prepare_cached(LARGE)?
            .query_row((partition, key), |row| row.get(0))
            .optional()?;
        if let Some(id) = id {
            self.connection.prepare_cached(FREE)?.execute([id])?;
        }
        Ok(())
    }

    /// Removes records, and the large values among theirs first.
    fn remove_all(&self, (free, delete): (&str, &str), of: &[&dyn ToSql]) -> rusqlite::Result<()> {
        if self.has_large {
            self.connection.prepare_cached(free)?.execute(of)?;
        }
        self.connection.prepare_cached(delete)?.execute(of)?;
        Ok(())
    }

    fn next_revision(&mut self) -> rusqlite::Result<u64> {
        if self.revision == self.revision_limit {
            let limit = self.revision_limit + REVISION_RUN;
            self.connection
                .prepare_cached(RESERVE)?
                .execute([limit.cast_signed()])?;
            self.revision_limit = limit;
        }
        self.revision += 1;
        Ok(self.revision)
    }

    /// A group that found the disk full is tried batch by batch: a small one may still fit where
    /// a large one didn't.
    fn one_by_one(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) {
        let mut single = Vec::with_capacity(1);
        for batch in group {
            match self.transact(&[batch], &mut single) {
                Ok(()) => outcomes.append(&mut single),
                Err(broken) => outcomes.push(Err(self.failed(broken))),
            }
        }
    }
}

impl SqliteWriter {
    fn failed(&self, broken: Broken) -> CommitError {
        let file = self.connection.path().map(Path::new);
        match broken {
            Broken::Database(error) => fault::of_write(error, || file.is_some_and(place::is_full)),
            Broken::ChangeLog(error) => fault::of_log(error),
        }
    }
}

fn lies_inline(partition: &str, key: &[u8], value: &[u8]) -> bool {
    partition.len() + key.len() + value.len() <= INLINE_BYTES
}

impl Writer for SqliteWriter {
    fn commit(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) {
        let Err(broken) = self.transact(group, outcomes) else {
            return;
        };
        if group.len() > 1 && broken.is_for_want_of_room() {
            return self.one_by_one(group, outcomes);
        }
        let error = self.failed(broken);
        outcomes.extend(group.iter().map(|_| Err(error.clone())));
    }

    fn wants_tending(&self) -> bool {
        self.written_pages.is_some_and(|pages| {
            self.checkpointer.wants_tending(pages) || self.log_ahead.wants_tending(pages)
        })
    }

    fn tend(&mut self) {
        // Twice for the same length would take a checkpoint of nothing for one that caught up.
        if let Some(pages) = self.written_pages.take() {
            self.checkpointer.tend(&self.connection, pages);
            self.log_ahead.tend(pages);
        }
    }

    fn wants_idle_work(&self) -> bool {
        self.vacuum.wants_step()
    }

    fn work_idly(&mut self) {
        match self.vacuum.step(&self.connection) {
            // Only a copy of the log into the file makes the file shorter.
            Ok(true) => self.checkpointer.begin(),
            Ok(false) => self.written_pages = written_log().or(self.written_pages),
            Err(error) => {
                self.vacuum.give_up();
                fault::note_vacuum(error);
            }
        }
        self.tend();
    }
}
