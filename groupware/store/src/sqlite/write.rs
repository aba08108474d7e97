//! Applies groups of batches, each group in one transaction.

use std::io;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, ToSql};

use super::checkpoint::{Checkpointer, Log, watch_log, written_log};
use super::connect::INLINE_BYTES;
use super::fault;
use super::log_ahead::LogAhead;
use super::read::value;
use super::vacuum::Vacuum;
use crate::changes::{Change, ChangeLog};
use crate::counters::raised;
use crate::{
    Assert, Batch, CommitError, Committed, Numbered, Op, Outcome, StoreError, Writer, place,
};

/// Revisions are reserved in runs, so that a commit needn't write the counter.
const REVISION_RUN: u64 = 1 << 20;

const BEGIN: &str = "BEGIN IMMEDIATE";
const REVISION_AND_LARGE: &str = "SELECT revision, CASE typeof(value) WHEN 'integer' THEN value END
    FROM records WHERE partition = ?1 AND key = ?2";
/// One descent of the tree, whether the record is new or not; nothing is written over one whose value lies
/// elsewhere.
const PUT: &str = "INSERT INTO records (partition, key, revision, value) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (partition, key) DO UPDATE SET revision = excluded.revision, value = excluded.value
    WHERE typeof(value) <> 'integer'";
const PUT_OVER: &str = "UPDATE records SET revision = ?3, value = ?4
    WHERE partition = ?1 AND key = ?2";
const VALUE: &str = "SELECT value FROM records WHERE partition = ?1 AND key = ?2";
const DELETE: &str = "DELETE FROM records WHERE partition = ?1 AND key = ?2";
const DELETE_INLINE: &str = "DELETE FROM records
    WHERE partition = ?1 AND key = ?2 AND typeof(value) <> 'integer'";
const DELETE_RANGE: &str = "DELETE FROM records WHERE partition = ?1 AND key >= ?2 AND key < ?3";
const DELETE_PARTITION: &str = "DELETE FROM records WHERE partition = ?1";
const HAS_LARGE: &str = "SELECT EXISTS (SELECT 1 FROM large_values)";
const PUT_LARGE: &str = "INSERT INTO large_values (value) VALUES (?1)";
const PUT_LARGE_OVER: &str = "UPDATE large_values SET value = ?1 WHERE id = ?2";
const TOUCH: &str = "UPDATE records SET revision = ?3 WHERE partition = ?1 AND key = ?2";
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
    /// Whether the last group removed ranges, or pages were moved after it: many more like it may come.
    is_bulk: bool,
    /// The last revision used.
    revision: u64,
    /// The last revision that may be used before the next run is reserved.
    revision_limit: u64,
    /// Whether there may be large values, which go with their records.
    has_large: bool,
}

/// How a key's record lies in the file.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// There is none, or its value is in it.
    NotLarge,
    /// Its value is in it.
    Inline,
    /// Its value lies under this number.
    Large(i64),
}

/// A partition and a key.
type Target<'a> = (&'a str, &'a [u8]);

/// What a batch has found out of keys, until something changes it.
#[derive(Default)]
struct Looked<'a> {
    /// By its asserts: how the records lie.
    held: Vec<(Target<'a>, Held)>,
    /// By its additions: what the records of counters are.
    sums: Vec<(Target<'a>, Vec<u8>)>,
}

impl<'a> Looked<'a> {
    /// Most keys of which something is kept: each change looks through them.
    const MOST: usize = 64;

    fn note(&mut self, target: Target<'a>, held: Held) {
        if self.held.len() < Self::MOST {
            self.held.push((target, held));
        }
    }

    fn note_sum(&mut self, target: Target<'a>, sum: Vec<u8>) {
        if self.sums.len() < Self::MOST {
            self.sums.push((target, sum));
        }
    }

    /// What counters were added up to.
    fn sum(&self, partition: &str, key: &[u8]) -> Option<&[u8]> {
        let mut sums = self.sums.iter();
        let found = sums.find(|((its, at), _)| *at == key && *its == partition);
        found.map(|(_, sum)| &sum[..])
    }

    /// What was found of a key that is now changed.
    fn take(&mut self, partition: &str, key: &[u8]) -> Option<Held> {
        self.sums
            .retain(|((its, at), _)| *at != key || *its != partition);
        let is_it = |((its, at), _): &(Target<'_>, Held)| *at == key && *its == partition;
        let mut found = None;
        // It may have been looked at twice.
        while let Some(at) = self.held.iter().position(is_it) {
            found = Some(self.held.swap_remove(at).1);
        }
        found
    }

    fn forget_all(&mut self) {
        self.held.clear();
        self.sums.clear();
    }
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
            is_bulk: false,
            revision: limit,
            revision_limit: limit,
            has_large,
        })
    }

    /// One transaction for all batches.
    fn transact(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) -> Result<(), Broken> {
        let before = (self.revision, self.revision_limit);
        self.is_bulk = false;
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
            let mut looked = Looked::default();
            outcomes.push(match self.first_failed(&batch.asserts, &mut looked)? {
                Some(index) => Err(CommitError::Conflict { index }),
                None => Ok(self.change(&batch.ops, looked)?),
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
                self.change_one(op, *revision, &mut Looked::default())?;
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

    fn first_failed<'a>(
        &self,
        asserts: &'a [Assert],
        looked: &mut Looked<'a>,
    ) -> rusqlite::Result<Option<usize>> {
        if asserts.is_empty() {
            return Ok(None);
        }
        let mut look = self.connection.prepare_cached(REVISION_AND_LARGE)?;
        for (index, assert) in asserts.iter().enumerate() {
            let found: Option<(i64, Option<i64>)> = look
                .query_row(assert.target(), |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            if !assert.holds(found.map(|(revision, _)| revision.unsigned_abs())) {
                return Ok(Some(index));
            }
            let held = match found {
                Some((_, Some(id))) => Held::Large(id),
                Some((_, None)) => Held::Inline,
                None => Held::NotLarge,
            };
            looked.note(assert.target(), held);
        }
        Ok(None)
    }

    fn change<'a>(&mut self, ops: &'a [Op], mut looked: Looked<'a>) -> rusqlite::Result<Committed> {
        let revision = self.next_revision()?;
        for op in ops {
            self.change_one(op, revision, &mut looked)?;
        }
        Ok(Committed { revision })
    }

    fn change_one<'a>(
        &mut self,
        op: &'a Op,
        revision: u64,
        looked: &mut Looked<'a>,
    ) -> rusqlite::Result<()> {
        self.vacuum.note(op);
        match op {
            Op::Put {
                partition,
                key,
                value,
            } => {
                let held = looked.take(partition, key);
                self.put((partition, key), revision, value, held)
            }
            Op::PutNumbered {
                partition,
                key,
                value,
            } => {
                let key = self.filled(partition, key, looked)?;
                let value = self.filled(partition, value, looked)?;
                let held = looked.take(partition, &key);
                self.put((partition, &key), revision, &value, held)
            }
            Op::Add {
                partition,
                key,
                by,
                start,
            } => {
                let old = match looked.sum(partition, key) {
                    Some(sum) => Some(sum.to_vec()),
                    None => self.value(partition, key)?,
                };
                let sum = raised(old.as_deref(), start, by);
                let held = looked.take(partition, key);
                self.put((partition, key), revision, &sum, held)?;
                looked.note_sum((partition, key), sum);
                Ok(())
            }
            Op::Delete { partition, key } => {
                let held = looked.take(partition, key);
                self.delete(partition, key, held)
            }
            Op::DeleteRange {
                partition,
                from,
                to,
            } => {
                looked.forget_all();
                self.is_bulk = true;
                self.remove_all(
                    (FREE_RANGE, DELETE_RANGE),
                    &[&&**partition, &&from[..], &&to[..]],
                )
            }
            Op::DeletePartition { partition } => {
                looked.forget_all();
                self.remove_all((FREE_PARTITION, DELETE_PARTITION), &[&&**partition])
            }
        }
    }

    fn value(&self, partition: &str, key: &[u8]) -> rusqlite::Result<Option<Vec<u8>>> {
        let mut value_of = self.connection.prepare_cached(VALUE)?;
        let read = |row: &rusqlite::Row<'_>| value(&self.connection, row.get_ref(0)?);
        let found = value_of.query_row((partition, key), read).optional()?;
        Ok(found.map(Into::into))
    }

    /// A key or value with the numbers that its gaps get.
    fn filled(
        &self,
        partition: &str,
        numbered: &Numbered,
        looked: &Looked<'_>,
    ) -> rusqlite::Result<Vec<u8>> {
        let mut numbers = Vec::with_capacity(numbered.gaps().len());
        for gap in numbered.gaps() {
            numbers.push(match looked.sum(partition, &gap.counter) {
                Some(sum) => gap.number(sum),
                None => {
                    let record = self.value(partition, &gap.counter)?;
                    gap.number(&record.unwrap_or_default())
                }
            });
        }
        Ok(numbered.filled(&numbers))
    }

    /// Writes a record, new or not.
    fn put(
        &mut self,
        (partition, key): (&str, &[u8]),
        revision: u64,
        value: &[u8],
        held: Option<Held>,
    ) -> rusqlite::Result<()> {
        let revision = revision.cast_signed();
        if lies_inline(partition, key, value) {
            return self.put_inline((partition, key), revision, value, held);
        }
        let held = match held {
            Some(held) => held,
            None => self.held(partition, key)?,
        };
        if let Held::Large(id) = held {
            // The record keeps its number, and the value its place.
            let mut put = self.connection.prepare_cached(PUT_LARGE_OVER)?;
            if put.execute((value, id))? == 1 {
                return self.prepared(TOUCH, (partition, key, revision));
            }
        }
        self.prepared(PUT_LARGE, (value,))?;
        self.has_large = true;
        let row = (
            partition,
            key,
            revision,
            self.connection.last_insert_rowid(),
        );
        match held {
            Held::NotLarge => self.prepared(PUT, row),
            // Large only in a damaged store, of a value that is gone.
            Held::Inline | Held::Large(_) => self.prepared(PUT_OVER, row),
        }
    }

    fn put_inline(
        &self,
        (partition, key): (&str, &[u8]),
        revision: i64,
        value: &[u8],
        held: Option<Held>,
    ) -> rusqlite::Result<()> {
        let row = (partition, key, revision, value);
        match held {
            // An update looks for the record once; what may have to insert one does twice where there is one.
            Some(Held::Inline) => return self.prepared(PUT_OVER, row),
            Some(Held::NotLarge) | None => {
                if self.connection.prepare_cached(PUT)?.execute(row)? == 1 {
                    return Ok(());
                }
            }
            Some(Held::Large(_)) => {}
        }
        self.free(partition, key)?;
        self.prepared(PUT_OVER, row)
    }

    fn delete(&self, partition: &str, key: &[u8], held: Option<Held>) -> rusqlite::Result<()> {
        let mut inline = self.connection.prepare_cached(DELETE_INLINE)?;
        if !matches!(held, Some(Held::Large(_))) && inline.execute((partition, key))? == 1 {
            return Ok(());
        }
        self.free(partition, key)?;
        self.prepared(DELETE, (partition, key))
    }

    fn prepared(&self, sql: &str, row: impl Params) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// How a key's record lies.
    fn held(&self, partition: &str, key: &[u8]) -> rusqlite::Result<Held> {
        let large = self.large(partition, key)?;
        Ok(large.map_or(Held::NotLarge, Held::Large))
    }

    /// The number of a record's large value, if it has one: few do, and to look is cheaper than to delete
    /// nothing.
    fn large(&self, partition: &str, key: &[u8]) -> rusqlite::Result<Option<i64>> {
        if !self.has_large {
            return Ok(None);
        }
        let mut large = self.connection.prepare_cached(LARGE)?;
        large
            .query_row((partition, key), |row| row.get(0))
            .optional()
    }

    /// Removes the large value of a record, if it has one.
    fn free(&self, partition: &str, key: &[u8]) -> rusqlite::Result<()> {
        match self.large(partition, key)? {
            Some(id) => self.prepared(FREE, [id]),
            None => Ok(()),
        }
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
    /// The log, if there was a commit since it was tended.
    fn written(&self) -> Option<Log> {
        let is_bulk = self.is_bulk;
        self.written_pages.map(|pages| Log { pages, is_bulk })
    }

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
        self.written().is_some_and(|log| {
            self.checkpointer.wants_tending(log) || self.log_ahead.wants_tending(log.pages)
        })
    }

    fn tend(&mut self) {
        // Twice for the same length would take a checkpoint of nothing for one that caught up.
        if let Some(log) = self.written() {
            self.written_pages = None;
            self.checkpointer.tend(&self.connection, log);
            self.log_ahead.tend(log.pages);
        }
    }

    fn wants_idle_work(&self) -> bool {
        self.vacuum.wants_step()
    }

    fn work_idly(&mut self) {
        match self.vacuum.step(&self.connection) {
            // Only a copy of the log into the file makes the file shorter.
            Ok(true) => self.checkpointer.begin(),
            Ok(false) => {
                self.written_pages = written_log().or(self.written_pages);
                self.is_bulk = true;
            }
            Err(error) => {
                self.vacuum.give_up();
                fault::note_vacuum(error);
            }
        }
        self.tend();
    }
}
