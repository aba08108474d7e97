//! What waits for the tree, as the writer has it: groups come in here, and `flush` takes them out.

use std::sync::Arc;

use rusqlite::Connection;

use super::above::{Above, Changed};
use super::row::{self, Row, Told};
use super::table::{CHANGE_BYTES, Change, GroupNumber, Memtable, Now};
use super::tables::{Shared, Tables};

/// Since version 3.
pub(in crate::sqlite) const SCHEMA: &str =
    "CREATE TABLE pending (number INTEGER PRIMARY KEY, changes BLOB NOT NULL);";
const ROWS: &str = "SELECT number, changes FROM pending ORDER BY number";
const KEEP: &str = "INSERT INTO pending (number, changes) VALUES (?1, ?2)";

/// A memtable that takes so much memory is full. The longer it is, the more changes share a page, and the
/// longer it takes to open a store that was not closed.
pub(super) const FULL_BYTES: usize = 32 << 20;
/// So is one in which readers of one partition may have to pass so many keys whose records are gone.
const FULL_GONE: usize = 2048;
/// Where flushing fails, changes are taken until they are so many times as much.
const OVERFULL: usize = 4;
/// And one with so many groups, however little they have changed: each has its row.
const FULL_GROUPS: usize = 1 << 16;
/// All of it, in thousandths.
pub(super) const FULL: usize = 1000;
/// A longer value goes into the tree at once.
pub(in crate::sqlite) const LONG_BYTES: usize = 8 << 10;
/// So do the changes of a group that together are longer.
pub(in crate::sqlite) const MANY_BYTES: usize = 1 << 20;

/// How far the writing of the full memtable is.
#[derive(Debug, Default)]
pub(super) struct Flush {
    /// Partitions of the full memtable that are not yet in the tree, the next one last.
    pub(super) partitions: Vec<Arc<str>>,
    /// How many they were.
    pub(super) of: usize,
    /// The key after which the next one goes on.
    pub(super) after: Option<Box<[u8]>>,
    /// The last group of the full memtable.
    pub(super) last: GroupNumber,
    /// Rows up to this one can go.
    pub(super) done: Option<GroupNumber>,
    /// The memtable that was written last, as far as its memory was not given back.
    pub(super) left: Option<Arc<Memtable>>,
    /// The last step failed.
    pub(super) failed: bool,
    /// Records that were removed from the tree since somebody asked.
    pub(super) removed: u32,
}

/// What waits for the tree, as the writer has it.
pub(in crate::sqlite) struct Pending {
    pub(super) shared: Arc<Shared>,
    pub(super) tables: Tables,
    /// The number of the last group, committed or not.
    pub(super) group: GroupNumber,
    /// What the rows of a group that is under way tell.
    row: Row,
    pub(super) full_bytes: usize,
    /// Whether there are rows, and groups that were committed since a memtable was last set aside.
    pub(super) has_rows: bool,
    pub(super) groups: u64,
    /// What the rows of these take, and what those took of the memtable that was set aside last.
    pub(super) row_bytes: u64,
    pub(super) last_row_bytes: u64,
    /// What was committed since something was flushed, and by how many groups.
    pub(super) unflushed_bytes: usize,
    pub(super) unflushed_groups: u64,
    pub(super) flush: Flush,
}

impl Pending {
    /// Nothing.
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

    /// Reads what the table has.
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

    fn take(&self, told: &Told) {
        match told {
            Told::Record {
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
            Told::Range {
                partition,
                from,
                to,
            } => self.cover(partition, from, to.as_deref()),
        }
    }

    pub(in crate::sqlite) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Whether the tree has all there is.
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.tables.are_empty() && !self.has_rows
    }

    /// What they take in memory, which is more than in the tree.
    pub(in crate::sqlite) fn bytes(&self) -> usize {
        self.tables.bytes()
    }

    /// Whether so much waits that no more can be taken, where nothing can be written into the tree.
    pub(in crate::sqlite) fn is_overfull(&self) -> bool {
        self.tables.bytes() > OVERFULL * self.full_bytes
    }

    /// The room that rows take by turns: where some are deleted, others come soon.
    pub(in crate::sqlite) fn recurring_bytes(&self) -> u64 {
        self.last_row_bytes
    }

    /// A group begins.
    pub(in crate::sqlite) fn begin(&mut self) {
        self.group += 1;
        self.row = Row::default();
    }

    /// What is now known of a record, by the group that is under way or any before it.
    pub(in crate::sqlite) fn get(&self, partition: &str, key: &[u8]) -> Option<Change> {
        self.tables.get(partition, key, self.group)
    }

    /// Notes what the group under way has made of a record.
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

    /// Notes that the group under way has removed a range, which the tree has done, too.
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

    /// The group under way was not committed.
    pub(in crate::sqlite) fn take_back(&mut self) {
        let group = self.group;
        for told in std::mem::take(&mut self.row).told() {
            match told {
                Told::Record { partition, key, .. } => {
                    self.tables.active.take_back(&partition, &key, group);
                }
                Told::Range {
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

    /// How full the memtable is that is written to, in thousandths.
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

    /// Has another memtable take the place of the one that is written to.
    pub(super) fn set_aside(&mut self) {
        let full = std::mem::take(&mut self.tables.active);
        self.tables.epoch += 1;
        self.tables.full = Some(full);
        self.shared.exchange(self.tables.clone());
    }

    /// What was full is in the tree.
    pub(super) fn drop_full(&mut self) -> Option<Arc<Memtable>> {
        self.tables.epoch += 1;
        let full = self.tables.full.take();
        self.shared.exchange(self.tables.clone());
        full
    }
}
