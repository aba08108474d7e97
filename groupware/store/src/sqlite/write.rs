//! Applies groups of batches, each group in one transaction.

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::checkpoint::{Checkpointer, log_pages, watch_log};
use crate::batch::added;
use crate::writer::{Engine, Outcome};
use crate::{Assert, Batch, CommitError, Committed, Op};

/// Revisions are reserved in runs, so that a commit needn't write the counter.
const REVISION_RUN: u64 = 1 << 20;

const BEGIN: &str = "BEGIN IMMEDIATE";
const REVISION: &str = "SELECT revision FROM records WHERE partition = ?1 AND key = ?2";
const PUT: &str = "INSERT OR REPLACE INTO records (partition, key, revision, value)
    VALUES (?1, ?2, ?3, ?4)";
const VALUE: &str = "SELECT value FROM records WHERE partition = ?1 AND key = ?2";
const DELETE: &str = "DELETE FROM records WHERE partition = ?1 AND key = ?2";
const DELETE_RANGE: &str = "DELETE FROM records WHERE partition = ?1 AND key >= ?2 AND key < ?3";
const DELETE_PARTITION: &str = "DELETE FROM records WHERE partition = ?1";
const LIMIT: &str = "SELECT value FROM counters WHERE name = 'revision_limit'";
const RESERVE: &str = "UPDATE counters SET value = ?1 WHERE name = 'revision_limit'";

pub(crate) struct SqliteEngine {
    connection: Connection,
    checkpointer: Checkpointer,
    /// The last revision used.
    revision: u64,
    /// The last revision that may be used before the next run is reserved.
    revision_limit: u64,
}

/// A failure that ends the whole transaction, unlike an assert that doesn't hold.
struct Broken(rusqlite::Error);

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        Self(error)
    }
}

impl SqliteEngine {
    pub(super) fn new(
        connection: Connection,
        checkpointer: Checkpointer,
    ) -> rusqlite::Result<Self> {
        let limit: i64 = connection.query_row(LIMIT, [], |row| row.get(0))?;
        watch_log(&connection);
        // What was left of the last run is skipped: it isn't known how much of it was used.
        let limit = limit.unsigned_abs();
        Ok(Self {
            connection,
            checkpointer,
            revision: limit,
            revision_limit: limit,
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
        self.connection.prepare_cached("COMMIT")?.execute([])?;
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

    fn change_one(&self, op: &Op, revision: u64) -> rusqlite::Result<()> {
        let prepare = |sql| self.connection.prepare_cached(sql);
        match op {
            Op::Put {
                partition,
                key,
                value,
            } => prepare(PUT)?.execute((&**partition, key, revision.cast_signed(), &value[..]))?,
            Op::Add { partition, key, by } => {
                let old: Option<Vec<u8>> = prepare(VALUE)?
                    .query_row((&**partition, key), |row| row.get(0))
                    .optional()?;
                let new = added(&old.unwrap_or_default(), by);
                prepare(PUT)?.execute((&**partition, key, revision.cast_signed(), new))?
            }
            Op::Delete { partition, key } => prepare(DELETE)?.execute((&**partition, key))?,
            Op::DeleteRange {
                partition,
                from,
                to,
            } => prepare(DELETE_RANGE)?.execute((&**partition, from, to))?,
            Op::DeletePartition { partition } => {
                prepare(DELETE_PARTITION)?.execute((&**partition,))?
            }
        };
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
                Err(Broken(error)) => outcomes.push(Err(CommitError::from_write(error))),
            }
        }
    }
}

impl Engine for SqliteEngine {
    fn apply(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) {
        let Err(Broken(error)) = self.transact(group, outcomes) else {
            return;
        };
        if group.len() > 1 && error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            return self.one_by_one(group, outcomes);
        }
        let error = CommitError::from_write(error);
        outcomes.extend(group.iter().map(|_| Err(error.clone())));
    }

    fn tend(&mut self) {
        self.checkpointer.tend(&self.connection, log_pages());
    }
}
