//! Writes full memtables into the tree, in small steps, and deletes their rows afterwards.
//!
//! None of it has to be durable at once. Until a row is deleted, it has the same content as the tree. Later writes to
//! the log never survive a crash without the earlier ones.

use std::ops::Bound;
use std::sync::Arc;

use rusqlite::OptionalExtension;

use super::table::{CHANGE_BYTES, Change, GroupNumber, Keyed, Now};
use super::waiting::{FULL, FULL_BYTES, Flush, Pending};
use crate::sqlite::tree::Tree;

const BEGIN: &str = "BEGIN IMMEDIATE";
const FORGET: &str = "DELETE FROM pending WHERE number <= ?1";
const FIRST: &str = "SELECT min(number) FROM pending";

/// The committed bytes, as counted by the memtable, between two steps: some hundred changes, so that other callers wait
/// only briefly.
const STEP_BYTES: usize = 32 << 10;
/// Records that are taken from the memtable at once.
const RECORDS: usize = 64;
/// The minimum number of rows deleted at once.
const ROWS: u64 = 64;

/// The maximum number of steps: with many partitions, each step, a transaction, writes a larger part.
const STEPS: usize = 512;

/// The pace of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Pace {
    /// Even with the filling of the next memtable: done when that is full by two thirds.
    Even,
    /// As much as a step can write.
    Any,
}

/// Records of one partition, and whether they are its last ones.
struct Slice {
    partition: Arc<str>,
    records: Vec<Keyed>,
    next: Option<Box<[u8]>>,
}

impl Pending {
    /// Returns true if there is work and enough was committed since the last step.
    pub(in crate::sqlite) fn wants_flush(&self) -> bool {
        let is_due = match self.flush.failed {
            false => self.unflushed_bytes >= STEP_BYTES.min(self.full_bytes),
            true => self.unflushed_bytes >= self.full_bytes || self.is_overfull(),
        };
        let is_wanted = match (&self.tables.full, self.flush.done) {
            (Some(_), None) => self.is_behind(self.flush.of / STEPS),
            (None, None) => self.is_full(),
            (_, Some(_)) => true,
        };
        is_due && is_wanted
    }

    /// Returns true if the flush lags behind [`Pace::Even`] by more than this many partitions.
    fn is_behind(&self, partitions: usize) -> bool {
        let Flush {
            partitions: left,
            of,
            ..
        } = &self.flush;
        let done = of - left.len();
        // One task always remains: giving the memtable up.
        left.is_empty() || (done + partitions) * 2 * FULL < of * 3 * (self.fullness() + 1)
    }

    fn has_work(&self) -> bool {
        self.tables.full.is_some() || self.flush.done.is_some()
    }

    /// Returns true if there is work and no commit since the last step.
    pub(in crate::sqlite) fn wants_idle_flush(&self) -> bool {
        let is_quiet = self.unflushed_groups == 0 && !self.flush.failed;
        is_quiet && (self.has_work() || self.is_full())
    }

    /// Flushes in proportion to the commits since the last step, at most half as much again, so that the flush always
    /// ends before the next memtable is full.
    pub(in crate::sqlite) fn flush_some(
        &mut self,
        tree: &mut Tree,
        pace: Pace,
    ) -> rusqlite::Result<()> {
        if self.tables.full.is_none() && self.is_full() {
            self.begin_flush();
            // This covers everything committed until now.
            self.unflushed_bytes = 0;
        }
        let committed = std::mem::take(&mut self.unflushed_bytes).max(STEP_BYTES);
        let groups = std::mem::take(&mut self.unflushed_groups);
        let (mut bytes, mut pace) = (committed + committed / 2, pace);
        if self.tables.active.bytes() > 2 * self.full_bytes.max(FULL_BYTES / 8) {
            // The flush can't keep up at this pace: everything is written while all callers wait.
            (bytes, pace) = (usize::MAX, Pace::Any);
        }
        self.free_some();
        let done = self.step(tree, (bytes, pace), ROWS.max(2 * groups));
        self.flush.failed = done.is_err();
        done
    }

    /// Writes all pending changes.
    pub(in crate::sqlite) fn flush_all(&mut self, tree: &mut Tree) -> rusqlite::Result<()> {
        while !self.is_empty() {
            if self.tables.full.is_none() && self.flush.done.is_none() {
                self.begin_flush();
            }
            self.step(tree, (usize::MAX, Pace::Any), u64::MAX)?;
        }
        (self.unflushed_bytes, self.unflushed_groups) = (0, 0);
        self.flush.failed = false;
        Ok(())
    }

    /// Returns the number of records removed from the tree since the last call.
    pub(in crate::sqlite) fn take_removed(&mut self) -> u32 {
        std::mem::take(&mut self.flush.removed)
    }

    fn begin_flush(&mut self) {
        self.set_aside();
        let full = self.tables.full.as_ref();
        let mut partitions = full.map_or_else(Vec::new, |full| full.partitions());
        partitions.reverse();
        self.flush.of = partitions.len();
        self.flush.partitions = partitions;
        self.flush.after = None;
        self.flush.last = self.group;
        self.groups = 0;
        self.last_row_bytes = std::mem::take(&mut self.row_bytes);
    }

    fn step(&mut self, tree: &mut Tree, much: (usize, Pace), rows: u64) -> rusqlite::Result<()> {
        tree.lazily(|tree| {
            tree.execute(BEGIN)?;
            let went = self.write(tree, much);
            let went = went.and_then(|()| self.forget_rows(tree, rows));
            let went = went.and_then(|()| tree.execute("COMMIT"));
            if went.is_err() {
                tree.roll_back();
                // Start over: content that is already in the tree is written again.
                self.begin_again();
            } else if self.flush.partitions.is_empty() && self.tables.full.is_some() {
                self.flush.done = Some(self.flush.last);
                self.flush.left = self.drop_full();
            }
            went
        })
    }

    /// Frees some of the memory of a flushed memtable. While readers still use it, this waits; the last reader frees
    /// all of it at once.
    fn free_some(&mut self) {
        if let Some(left) = self.flush.left.take() {
            self.flush.left = match Arc::try_unwrap(left) {
                Ok(mut left) => left.shrink().then(|| Arc::new(left)),
                Err(left) => Some(left),
            };
        }
    }

    fn begin_again(&mut self) {
        if let Some(full) = &self.tables.full {
            self.flush.partitions = full.partitions();
            self.flush.partitions.reverse();
            self.flush.after = None;
        }
    }

    /// Writes records of this many bytes, as far as the pace requires.
    fn write(&mut self, tree: &mut Tree, (bytes, pace): (usize, Pace)) -> rusqlite::Result<()> {
        let mut left = bytes;
        while left > 0 && (pace == Pace::Any || self.is_behind(0)) {
            let Some(Slice {
                partition,
                records,
                next,
            }) = self.next()
            else {
                break;
            };
            for (key, change) in &records {
                let Change { revision, now, .. } = change;
                left = left.saturating_sub(key.len() + now.bytes() + CHANGE_BYTES);
                // The other memtable has a later change and writes that.
                let active = &self.tables.active;
                if active.get(&partition, key, self.group).is_some() {
                    continue;
                }
                match now {
                    Now::Value(value) => tree.put((&partition, key), *revision, value)?,
                    Now::Gone => {
                        tree.delete(&partition, key)?;
                        self.flush.removed += 1;
                    }
                    Now::InTree => {}
                }
            }
            if next.is_none() {
                self.flush.partitions.pop();
            }
            self.flush.after = next;
        }
        Ok(())
    }

    fn next(&self) -> Option<Slice> {
        let full = self.tables.full.as_ref()?;
        let partition = self.flush.partitions.last()?;
        let from = self.flush.after.as_deref();
        let from = from.map_or(Bound::Unbounded, Bound::Excluded);
        let (records, is_more) = full.range((partition, from, None), GroupNumber::MAX, RECORDS);
        let next = records.last().filter(|_| is_more);
        Some(Slice {
            partition: Arc::clone(partition),
            next: next.map(|(key, _)| key.clone()),
            records,
        })
    }

    /// Deletes some of the rows whose changes were in the tree before this step.
    fn forget_rows(&mut self, tree: &Tree, rows: u64) -> rusqlite::Result<()> {
        let Some(done) = self.flush.done else {
            return Ok(());
        };
        let connection = tree.connection();
        let first: Option<i64> = connection
            .prepare_cached(FIRST)?
            .query_row([], |row| row.get(0))
            .optional()?
            .flatten();
        let first = match first.map(i64::unsigned_abs) {
            Some(first) if first <= done => first,
            first => {
                self.has_rows = first.is_some();
                self.flush.done = None;
                return Ok(());
            }
        };
        let to = done.min(first.saturating_add(rows));
        let mut forget = connection.prepare_cached(FORGET)?;
        forget.execute([to.cast_signed()])?;
        Ok(())
    }
}
