//! Applies groups of batches, each group in one transaction.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode};

use super::checkpoint::{Checkpointer, Log, watch_log, written_log};
use super::disk::DiskRoom;
use super::fault;
use super::log_ahead::LogAhead;
use super::pending::{LONG_BYTES, MANY_BYTES, Now, Pace, Pending};
use super::redo::redo;
use super::tree::Tree;
use super::vacuum::Vacuum;
use super::values::large_length;
use crate::changes::{Change, ChangeLog};
use crate::counters::raised;
use crate::{
    Assert, Batch, CommitError, Committed, Numbered, Op, Outcome, StoreError, StoreOptions, Writer,
    place,
};

/// Revisions are reserved in runs, so that most commits needn't write the counter.
const REVISION_RUN: u64 = 1 << 20;
/// The time without a commit before a memtable is flushed further than is due. A caller whose request is being
/// processed has not committed yet: where one core does both, an idle writer does not mean an idle machine.
const REST: Duration = Duration::from_millis(10);
/// Batches of one transaction that together exceed this are written into the tree at once; otherwise they are one row.
const MOST_PENDING_BYTES: usize = 64 << 20;

const LIMIT: &str = "SELECT value FROM counters WHERE name = 'revision_limit'";
const RESERVE: &str = "UPDATE counters SET value = ?1 WHERE name = 'revision_limit'";
const LOGGED: &str = "UPDATE counters SET value = ?1 WHERE name = 'changes_number'";

pub(crate) struct SqliteWriter {
    tree: Tree,
    /// The changes that are not in the tree yet.
    pending: Pending,
    checkpointer: Checkpointer,
    log_ahead: LogAhead,
    /// Receives each change before its commit.
    changes: Option<ChangeLog>,
    vacuum: Vacuum,
    disk: Arc<DiskRoom>,
    /// Pages in the log after a commit that wrote any, until the housekeeping.
    written_pages: Option<u32>,
    /// True if the last group removed ranges, or pages were moved after it: many similar changes may follow.
    is_bulk: bool,
    /// The last revision used.
    revision: u64,
    /// The last revision of the reserved run.
    revision_limit: u64,
    quota_bytes: Option<u64>,
    /// The error if pending changes could not be written into the tree.
    unflushed: Option<CommitError>,
    /// Makes no change without a request.
    as_it_is: bool,
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
    /// Returns true if a smaller transaction may still fit.
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
        pending: Pending,
        (checkpointer, log_ahead, disk): (Checkpointer, LogAhead, Arc<DiskRoom>),
        changes: Option<ChangeLog>,
        options: &StoreOptions,
    ) -> rusqlite::Result<Self> {
        let limit: i64 = connection.query_row(LIMIT, [], |row| row.get(0))?;
        watch_log(&connection);
        // The rest of the last run is skipped: its used part is unknown.
        let limit = limit.unsigned_abs();
        Ok(Self {
            vacuum: Vacuum::new(&connection)?,
            disk,
            tree: Tree::new(connection)?,
            pending,
            checkpointer,
            log_ahead,
            changes,
            written_pages: None,
            is_bulk: false,
            revision: limit,
            revision_limit: limit,
            quota_bytes: options.quota_bytes,
            unflushed: None,
            as_it_is: options.as_it_is,
        })
    }

    /// Commits all batches in one transaction.
    fn transact(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) -> Result<(), Broken> {
        let before = (self.revision, self.revision_limit);
        self.is_bulk = false;
        self.pending.begin();
        let result = self.try_transact(group, outcomes);
        if result.is_err() {
            (self.revision, self.revision_limit) = before;
            outcomes.clear();
            self.tree.roll_back();
            self.pending.take_back();
        }
        result
    }

    fn try_transact(
        &mut self,
        group: &[&Batch],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Broken> {
        let is_straight = is_for_the_tree(group);
        self.tree.begin()?;
        let mut room = self.room()?;
        let stuck = self.unflushed.clone();
        let stuck = stuck.filter(|_| self.pending.is_overfull());
        for batch in group {
            let bytes = batch.ops.iter().map(Op::written_bytes).sum();
            outcomes.push(match (bytes, &stuck) {
                (1.., Some(error)) => Err(error.clone()),
                _ if !takes(bytes, &mut room) => Err(CommitError::Full),
                _ => self.apply(batch, is_straight)?,
            });
        }
        self.pending.keep(self.tree.connection())?;
        self.log(group, outcomes)?;
        self.tree.execute("COMMIT")?;
        if let Some(changes) = &mut self.changes {
            changes.committed();
        }
        self.written_pages = written_log().or(self.written_pages);
        Ok(())
    }

    /// The number of bytes that may still be written, if there is a quota.
    fn room(&self) -> rusqlite::Result<Option<u64>> {
        let Some(quota) = self.quota_bytes else {
            return Ok(None);
        };
        let used = self.tree.used_bytes()? + self.pending.bytes() as u64;
        Ok(Some(quota.saturating_sub(used)))
    }

    /// Applies a batch; either all its values are written into the tree at once, or only the long ones.
    fn apply(&mut self, batch: &Batch, is_straight: bool) -> rusqlite::Result<Outcome> {
        if let Some(index) = self.first_failed(&batch.asserts)? {
            return Ok(Err(CommitError::Conflict { index }));
        }
        let revision = self.next_revision()?;
        for op in &batch.ops {
            self.change(op, (revision, is_straight))?;
        }
        Ok(Ok(Committed { revision }))
    }

    fn first_failed(&self, asserts: &[Assert]) -> rusqlite::Result<Option<usize>> {
        for (index, assert) in asserts.iter().enumerate() {
            let (partition, key) = assert.target();
            let found = match self.pending.get(partition, key) {
                Some(change) => (change.now != Now::Gone).then_some(change.revision),
                None => self.tree.revision(partition, key)?,
            };
            if !assert.holds(found) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn change(&mut self, op: &Op, how: (u64, bool)) -> rusqlite::Result<()> {
        match op {
            Op::Put {
                partition,
                key,
                value,
            } => self.put((partition, key), how, value),
            Op::PutNumbered {
                partition,
                key,
                value,
            } => {
                let key = self.filled(partition, key)?;
                let value = self.filled(partition, value)?;
                self.put((partition, &key), how, &value)
            }
            Op::Add {
                partition,
                key,
                by,
                start,
            } => {
                let old = self.value(partition, key)?;
                let sum = raised(old.as_deref(), start, by);
                self.put((partition, key), how, &sum)
            }
            Op::Delete { partition, key } => self.delete((partition, key), how.0),
            Op::DeleteRange {
                partition,
                from,
                to,
            } => {
                self.is_bulk = true;
                self.vacuum.note(op);
                self.tree.delete_range(partition, from, to)?;
                self.pending.remove(partition, from, Some(to));
                Ok(())
            }
            Op::DeletePartition { partition } => {
                self.vacuum.note(op);
                self.tree.delete_partition(partition)?;
                self.pending.remove(partition, b"", None);
                Ok(())
            }
        }
    }

    fn put(
        &mut self,
        (partition, key): (&Arc<str>, &[u8]),
        (revision, is_straight): (u64, bool),
        value: &[u8],
    ) -> rusqlite::Result<()> {
        let now = if is_straight || value.len() > LONG_BYTES {
            self.tree.put((partition, key), revision, value)?;
            Now::InTree
        } else {
            // Copied, because the value may be a slice of a larger buffer.
            Now::Value(Bytes::copy_from_slice(value))
        };
        self.pending.put(partition, key, revision, now);
        Ok(())
    }

    fn delete(
        &mut self,
        (partition, key): (&Arc<str>, &[u8]),
        revision: u64,
    ) -> rusqlite::Result<()> {
        let known = self.pending.get(partition, key).map(|change| change.now);
        let may_be_long = matches!(known, None | Some(Now::InTree));
        // The space of a long value is reused soon.
        if may_be_long && let Some(id) = self.tree.large(partition, key)? {
            let bytes = large_length(self.tree.connection(), id)?;
            self.tree.delete(partition, key)?;
            self.vacuum.note_removed_large(bytes);
        }
        if known != Some(Now::Gone) {
            self.pending.put(partition, key, revision, Now::Gone);
        }
        Ok(())
    }

    fn value(&self, partition: &str, key: &[u8]) -> rusqlite::Result<Option<Bytes>> {
        match self.pending.get(partition, key).map(|change| change.now) {
            Some(Now::Value(value)) => Ok(Some(value)),
            Some(Now::Gone) => Ok(None),
            Some(Now::InTree) | None => Ok(self.tree.value(partition, key)?.map(Bytes::from)),
        }
    }

    /// A key or value with its gaps filled.
    fn filled(&self, partition: &str, numbered: &Numbered) -> rusqlite::Result<Vec<u8>> {
        let number = |gap: &crate::Gap| {
            let record = self.value(partition, &gap.counter)?;
            Ok(gap.number(&record.unwrap_or_default()))
        };
        let numbers: rusqlite::Result<Vec<_>> = numbered.gaps().iter().map(number).collect();
        Ok(numbered.filled(&numbers?))
    }

    /// Writes the changes to the log before their commit, and the new position to the records.
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
        let mut logged = self.tree.connection().prepare_cached(LOGGED)?;
        logged.execute([number.cast_signed()])?;
        Ok(())
    }

    /// Applies logged changes again, in one transaction.
    pub(crate) fn redo(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.pending.flush_all(&mut self.tree)?;
        let done = self.try_redo(changes);
        if done.is_err() {
            self.tree.roll_back();
        }
        self.written_pages = written_log().or(self.written_pages);
        self.tend();
        Ok(done?)
    }

    fn try_redo(&mut self, changes: &[Change]) -> rusqlite::Result<()> {
        self.tree.begin()?;
        for Change { revision, ops } in changes {
            self.revision = self.revision.max(*revision);
            for op in ops {
                self.vacuum.note(op);
                redo(&mut self.tree, op, *revision)?;
            }
        }
        if self.revision > self.revision_limit {
            self.revision_limit = self.revision;
            self.reserve()?;
        }
        self.tree.execute("COMMIT")
    }

    fn reserve(&self) -> rusqlite::Result<()> {
        let mut reserve = self.tree.connection().prepare_cached(RESERVE)?;
        reserve.execute([self.revision_limit.cast_signed()])?;
        Ok(())
    }

    fn next_revision(&mut self) -> rusqlite::Result<u64> {
        if self.revision == self.revision_limit {
            self.revision_limit += REVISION_RUN;
            self.reserve()?;
        }
        self.revision += 1;
        Ok(self.revision)
    }

    /// Commits a group that found the disk full batch by batch: a small batch may fit where a large one didn't.
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
    /// The log, if there was a commit since the last housekeeping.
    fn written(&self) -> Option<Log> {
        let is_bulk = self.is_bulk;
        self.written_pages.map(|pages| Log { pages, is_bulk })
    }

    fn failed(&self, broken: Broken) -> CommitError {
        let file = self.tree.connection().path().map(Path::new);
        match broken {
            Broken::Database(error) => fault::of_write(error, || file.is_some_and(place::is_full)),
            Broken::ChangeLog(error) => fault::of_log(error),
        }
    }
}

/// The maximum overhead of a change in a row, besides its partition, key, and value.
const OP_BYTES: usize = 24;

/// Returns true if a group is so large that it isn't worth writing twice.
fn is_for_the_tree(group: &[&Batch]) -> bool {
    let mut all = 0;
    for batch in group {
        // Long values are written there anyway.
        let put = |op: &Op| match op {
            Op::Put { key, value, .. } if value.len() > LONG_BYTES => key.len(),
            op => op.bytes(),
        };
        let all_of = batch.ops.iter().map(|op| put(op) + OP_BYTES);
        let bytes = all_of.sum::<usize>();
        all += bytes;
        if bytes > MANY_BYTES {
            return true;
        }
    }
    all > MOST_PENDING_BYTES
}

/// Returns true if there is room for a batch, and then subtracts its size.
fn takes(bytes: u64, room: &mut Option<u64>) -> bool {
    let Some(room) = room else {
        return true;
    };
    let fits = bytes == 0 || bytes <= *room;
    if fits {
        *room -= bytes;
    }
    fits
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
        let is_long = self.written().is_some_and(|log| {
            self.checkpointer.wants_tending(log) || self.log_ahead.wants_tending(log.pages)
        });
        is_long || self.pending.wants_flush()
    }

    fn tend(&mut self) {
        if self.pending.wants_flush() {
            self.flush_some(Pace::Even);
        }
        // The same length twice would take an empty checkpoint for one that caught up.
        if let Some(log) = self.written() {
            self.written_pages = None;
            self.checkpointer.tend(self.tree.connection(), log);
            self.log_ahead.tend(log.pages);
        }
    }

    fn rest(&self) -> Duration {
        match self.pending.wants_idle_flush() {
            true => REST,
            false => Duration::ZERO,
        }
    }

    fn wants_idle_work(&self) -> bool {
        self.vacuum.wants_step(self.disk.is_used_up()) || self.pending.wants_idle_flush()
    }

    fn work_idly(&mut self) {
        if self.pending.wants_idle_flush() {
            self.flush_some(Pace::Any);
            return self.tend();
        }
        let reserved = self.checkpointer.pages_of(self.pending.recurring_bytes());
        let of = (reserved, self.disk.is_used_up());
        match self.vacuum.step(self.tree.connection(), of) {
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

impl SqliteWriter {
    fn flush_some(&mut self, pace: Pace) {
        let done = self.pending.flush_some(&mut self.tree, pace);
        self.unflushed = done.err().map(|error| self.failed(error.into()));
        if let Some(error) = &self.unflushed {
            fault::note_flush(error);
        }
        self.vacuum.note_removed(self.pending.take_removed());
        // Each page is written once, until all are done.
        self.is_bulk = true;
        self.written_pages = written_log().or(self.written_pages);
    }
}

/// A closed store has everything in the tree, so that the next start reads no pending rows.
impl Drop for SqliteWriter {
    fn drop(&mut self) {
        if self.as_it_is || std::thread::panicking() {
            return;
        }
        if let Err(error) = self.pending.flush_all(&mut self.tree) {
            fault::note_flush(&StoreError::from(error));
        }
    }
}
