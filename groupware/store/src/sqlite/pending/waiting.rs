//! The writer's pending changes: groups are added here, and `flush` removes them.

use std::sync::Arc;

use rusqlite::Connection;

use super::above::{Above, Changed};
use super::row::{self, PendingChange, Row};
use super::table::{CHANGE_BYTES, Change, GroupNumber, Memtable, Now};
use super::tables::{Shared, Tables};

/// Since version 3.
pub(in crate::sqlite) const SCHEMA: &str =
    "CREATE TABLE pending (number INTEGER PRIMARY KEY, changes BLOB NOT NULL);";
const ROWS: &str = "SELECT number, changes FROM pending ORDER BY number";
const KEEP: &str = "INSERT INTO pending (number, changes) VALUES (?1, ?2)";

/// The memory at which a memtable is full. With more, more changes share a page, but opening a store that was not
/// closed takes longer.
pub(super) const FULL_BYTES: usize = 32 << 20;
/// The number of removed keys, skipped by readers of one partition, at which a memtable is full.
const FULL_GONE: usize = 2048;
/// If flushing fails, changes are accepted up to this multiple of the memory.
const OVERFULL: usize = 4;
/// The number of groups, however small, at which a memtable is full: each has a row.
const FULL_GROUPS: usize = 1 << 16;
/// A full memtable, in thousandths.
pub(super) const FULL: usize = 1000;
/// Longer values are written into the tree at once.
pub(in crate::sqlite) const LONG_BYTES: usize = 8 << 10;
/// So are the changes of a group that together are longer.
pub(in crate::sqlite) const MANY_BYTES: usize = 1 << 20;

/// The progress of flushing the full memtable.
#[derive(Debug, Default)]
pub(super) struct Flush {
    /// Partitions of the full memtable that are not yet in the tree, the next one last.
    pub(super) partitions: Vec<Arc<str>>,
    /// Their initial number.
    pub(super) of: usize,
    /// The last key written in the current partition.
    pub(super) after: Option<Box<[u8]>>,
    /// The last group of the full memtable.
    pub(super) last: GroupNumber,
    /// Rows up to this one can be deleted.
    pub(super) done: Option<GroupNumber>,
    /// The flushed memtable, while its memory is not fully freed.
    pub(super) left: Option<Arc<Memtable>>,
    /// True if the last step failed.
    pub(super) failed: bool,
    /// Records removed from the tree since the last query.
    pub(super) removed: u32,
}

/// The writer's pending changes.
pub(in crate::sqlite) struct Pending {
    pub(super) shared: Arc<Shared>,
    pub(super) tables: Tables,
    /// The number of the last group, committed or not.
    pub(super) group: GroupNumber,
    /// The row of the current group.
    row: Row,
    pub(super) full_bytes: usize,
    /// Whether there are rows, and the number of groups committed since the last memtable was set aside.
    pub(super) has_rows: bool,
    pub(super) groups: u64,
    /// The bytes of these groups' rows, and of the rows of the memtable that was set aside last.
    pub(super) row_bytes: u64,
    pub(super) last_row_bytes: u64,
    /// The bytes committed since the last flush, and the number of their groups.
    pub(super) unflushed_bytes: usize,
    pub(super) unflushed_groups: u64,
    pub(super) flush: Flush,
}

impl Pending {
    /// Creates an empty set.
    pub(in crate::sqlite) fn new(full_bytes: Option<usize>) -> Self {
        Self {
            shared: Arc::default(),
            tables: Tables::default(),
            group: 0,
            row: Row::default(),
            full_bytes: full_bytes.unwrap_or(FULL_BYTES),
            has_rows: false,
            groups: 0,
            row_bytes: 0,
            last_row_bytes: 0,
            unflushed_bytes: 0,
            unflushed_groups: 0,
            flush: Flush::default(),
        }
    }

    /// Loads the pending rows.
    pub(in crate::sqlite) fn load(
        connection: &Connection,
        full_bytes: Option<usize>,
    ) -> rusqlite::Result<Self> {
        let mut pending = Self::new(full_bytes);
        let mut rows = connection.prepare(ROWS)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            pending.group = row.get::<_, i64>(0)?.unsigned_abs();
            pending.has_rows = true;
            pending.groups += 1;
            let told = row::read(row.get_ref(1)?.as_blob()?).ok_or_else(|| {
                let number = pending.group;
                let what = format!("the changes of group {number} are damaged");
                rusqlite::Error::FromSqlConversionFailure(
                    1,
                    rusqlite::types::Type::Blob,
                    what.into(),
                )
            })?;
            told.iter().for_each(|told| pending.take(told));
        }
        pending.shared.exchange(pending.tables.clone());
        Ok(pending)
    }

    fn take(&self, told: &PendingChange) {
        match told {
            PendingChange::Record {
                partition,
                key,
                revision,
                now,
            } => {
                let change = Change {
                    group: self.group,
                    revision: *revision,
                    now: now.clone(),
                };
                self.tables.active.put(partition, key, change);
            }
            PendingChange::Range {
                partition,
                from,
                to,
            } => self.cover(partition, from, to.as_deref()),
        }
    }

    pub(in crate::sqlite) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Returns true if the tree has all changes.
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.tables.are_empty() && !self.has_rows
    }

    /// The memory of the memtables, which is more than their size in the tree.
    pub(in crate::sqlite) fn bytes(&self) -> usize {
        self.tables.bytes()
    }

    /// Returns true if nothing more can be accepted while flushing fails.
    pub(in crate::sqlite) fn is_overfull(&self) -> bool {
        self.tables.bytes() > OVERFULL * self.full_bytes
    }

    /// The space that rows use in turn: where some are deleted, others follow soon.
    pub(in crate::sqlite) fn recurring_bytes(&self) -> u64 {
        self.last_row_bytes
    }

    /// Begins a group.
    pub(in crate::sqlite) fn begin(&mut self) {
        self.group += 1;
        self.row = Row::default();
    }

    /// The latest change of a record, by the current group or an earlier one.
    pub(in crate::sqlite) fn get(&self, partition: &str, key: &[u8]) -> Option<Change> {
        self.tables.get(partition, key, self.group)
    }

    /// Records a change of the current group.
    pub(in crate::sqlite) fn put(
        &mut self,
        partition: &Arc<str>,
        key: &[u8],
        revision: u64,
        now: Now,
    ) {
        self.row.record(partition, key, revision, &now);
        self.unflushed_bytes += key.len() + now.bytes() + CHANGE_BYTES;
        let group = self.group;
        let change = Change {
            group,
            revision,
            now,
        };
        self.tables.active.put(partition, key, change);
    }

    /// Records that the current group removed a range, which was also done in the tree.
    pub(in crate::sqlite) fn remove(
        &mut self,
        partition: &Arc<str>,
        from: &[u8],
        to: Option<&[u8]>,
    ) {
        self.row.range(partition, from, to);
        self.unflushed_bytes += CHANGE_BYTES;
        self.cover(partition, from, to);
    }

    fn cover(&self, partition: &Arc<str>, from: &[u8], to: Option<&[u8]>) {
        let mut above = Above::range(&self.tables, self.group, (partition, from, to));
        while let Some(Changed { key, change, .. }) = above.next() {
            if change.now != Now::Gone {
                let group = self.group;
                let (revision, now) = (change.revision, Now::Gone);
                let change = Change {
                    group,
                    revision,
                    now,
                };
                self.tables.active.put(partition, &key, change);
            }
        }
    }

    /// Writes the group's row, if it changed anything.
    pub(in crate::sqlite) fn keep(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.row.is_empty() {
            return Ok(());
        }
        let stored = self.row.stored();
        let mut keep = connection.prepare_cached(KEEP)?;
        keep.execute((self.group.cast_signed(), &stored))?;
        self.has_rows = true;
        self.groups += 1;
        self.unflushed_groups += 1;
        self.row_bytes += stored.len() as u64;
        Ok(())
    }

    /// Undoes the current group, which was not committed.
    pub(in crate::sqlite) fn take_back(&mut self) {
        let group = self.group;
        for told in std::mem::take(&mut self.row).changes() {
            match told {
                PendingChange::Record { partition, key, .. } => {
                    self.tables.active.take_back(&partition, &key, group);
                }
                PendingChange::Range {
                    partition,
                    from,
                    to,
                } => self.uncover(&partition, &from, to.as_deref()),
            }
        }
    }

    fn uncover(&self, partition: &str, from: &[u8], to: Option<&[u8]>) {
        let mut above = Above::range(&self.tables, self.group, (partition, from, to));
        let mut covered = Vec::new();
        while let Some(Changed { key, change, .. }) = above.next() {
            if change.group == self.group {
                covered.push(key);
            }
        }
        for key in covered {
            let active = &self.tables.active;
            active.take_back(partition, &key, self.group);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.fullness() >= FULL
    }

    /// The fill level of the active memtable, in thousandths.
    pub(super) fn fullness(&self) -> usize {
        let active = &self.tables.active;
        let groups = usize::try_from(self.groups).unwrap_or(usize::MAX);
        let by = [
            (active.bytes(), self.full_bytes),
            (active.most_gone(), FULL_GONE),
            (groups, FULL_GROUPS),
        ];
        let by = by.map(|(is, full)| is.saturating_mul(FULL) / full.max(1));
        by.into_iter().max().unwrap_or_default()
    }

    /// Replaces the active memtable.
    pub(super) fn set_aside(&mut self) {
        let full = std::mem::take(&mut self.tables.active);
        self.tables.epoch += 1;
        self.tables.full = Some(full);
        self.shared.exchange(self.tables.clone());
    }

    /// Drops the full memtable, which is in the tree.
    pub(super) fn drop_full(&mut self) -> Option<Arc<Memtable>> {
        self.tables.epoch += 1;
        let full = self.tables.full.take();
        self.shared.exchange(self.tables.clone());
        full
    }
}
