//! Returns free pages of the file to the disk: a few pages at a time, while the writer is idle.
//!
//! A page from the end of the file takes the place of a free page, and the end is then truncated. Files of older
//! versions lack the pointer map for this, and stay as they are until they are rebuilt.

use rusqlite::Connection;

use crate::Op;

/// Free pages to keep: the next changes need some.
const LEAVE_PAGES: u32 = 256;
/// With fewer free pages than this, or than this fraction of all pages, nothing is done.
const BEGIN_PAGES: u32 = 1024;
const BEGIN_ONE_IN: u32 = 16;
/// Pages returned in one step: 128 KiB. A writer waits for one step at most.
pub(super) const STEP_PAGES: u32 = 16;

/// Removed records after which the file is checked: checking after each would wake the writer's thread for nothing. A
/// large value counts as one more record for each `BYTES_OF_RECORD`.
const LOOK_RECORDS: u32 = 64;
const BYTES_OF_RECORD: u64 = 64 << 10;

const INCREMENTAL: u32 = 2;

/// Makes files that this connection creates suitable for incremental vacuum. If its own file already is, nothing is
/// done: SQLite would write that into it once more.
pub(super) fn for_copies(connection: &Connection) -> rusqlite::Result<()> {
    match number(connection, "auto_vacuum")? {
        INCREMENTAL => Ok(()),
        _ => connection.pragma_update(None, "auto_vacuum", "incremental"),
    }
}

/// Returns true if a removal makes the file shorter.
pub(super) fn is_possible(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(number(connection, "auto_vacuum")? == INCREMENTAL)
}

/// The state of returning pages to the disk.
#[derive(Debug)]
pub(super) struct Vacuum {
    is_possible: bool,
    /// The approximate number of records removed since the last check.
    removed: u32,
    /// True from the first step until few free pages are left.
    is_under_way: bool,
}

impl Vacuum {
    /// Also checks the pages that the last server left free.
    pub(super) fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let is_possible = is_possible(connection)?;
        Ok(Self {
            is_possible,
            removed: if is_possible { LOOK_RECORDS } else { 0 },
            is_under_way: false,
        })
    }

    /// Records a removal: of one record, or of a range.
    pub(super) fn note(&mut self, op: &Op) {
        let records = match op {
            Op::Put { .. } | Op::PutNumbered { .. } | Op::Add { .. } => return,
            Op::Delete { .. } => 1,
            Op::DeleteRange { .. } | Op::DeletePartition { .. } => LOOK_RECORDS,
        };
        self.note_removed(records);
    }

    /// Records this many removals.
    pub(super) fn note_removed(&mut self, records: u32) {
        self.removed = self.removed.saturating_add(records);
    }

    /// Records the removal of a record with a large value.
    pub(super) fn note_removed_large(&mut self, bytes: u64) {
        let more = u32::try_from(bytes / BYTES_OF_RECORD).unwrap_or(u32::MAX);
        self.note_removed(more.saturating_add(1));
    }

    /// Returns true if there may be pages to return, given whether the disk is short of room.
    pub(super) fn wants_step(&self, is_short: bool) -> bool {
        let look = if is_short { 1 } else { LOOK_RECORDS };
        self.is_possible && self.removed >= look
    }

    /// Returns some pages to the disk if enough are free besides the `reserved` ones; if the disk is short of room, few
    /// are enough. Returns true after the last of several steps.
    pub(super) fn step(
        &mut self,
        connection: &Connection,
        (reserved, is_short): (u32, bool),
    ) -> rusqlite::Result<bool> {
        let free = number(connection, "freelist_count")?.saturating_sub(reserved);
        let begin = match self.is_under_way || is_short {
            true => LEAVE_PAGES,
            false => BEGIN_PAGES.max(number(connection, "page_count")? / BEGIN_ONE_IN),
        };
        if free <= begin {
            self.removed = 0;
            return Ok(std::mem::take(&mut self.is_under_way));
        }
        self.is_under_way = true;
        let pages = STEP_PAGES.min(free - LEAVE_PAGES);
        // Each row is a page that was returned.
        let mut step = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut rows = step.query([])?;
        while rows.next()?.is_some() {}
        Ok(false)
    }

    /// After a failure, the next attempt follows more removals.
    pub(super) fn give_up(&mut self) {
        self.removed = 0;
        self.is_under_way = false;
    }
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database whose file can be shortened.
    fn incremental() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .pragma_update(None, "auto_vacuum", "incremental")
            .unwrap();
        connection
    }

    /// No writer waits for more than this many pages, however many are free.
    #[test]
    fn a_step_is_bounded_and_all_of_them_leave_little() {
        let connection = incremental();
        let fill = "CREATE TABLE t (id INTEGER PRIMARY KEY, value BLOB);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
            INSERT INTO t SELECT i, randomblob(3000) FROM n";
        connection.execute_batch(fill).unwrap();
        let mut vacuum = Vacuum::new(&connection).unwrap();
        assert!(vacuum.wants_step(false) && !vacuum.step(&connection, (0, false)).unwrap());
        assert!(!vacuum.wants_step(false), "nothing is free");
        connection
            .execute("DELETE FROM t WHERE id % 3 > 0", [])
            .unwrap();
        let key = || vec![7];
        let one = Op::Delete {
            partition: "p".into(),
            key: key(),
        };
        (1..LOOK_RECORDS).for_each(|_| vacuum.note(&one));
        assert!(!vacuum.wants_step(false));
        vacuum.note(&one);
        let pages = |pragma| number(&connection, pragma).unwrap();
        let before = pages("page_count");
        let mut steps = 0;
        while vacuum.wants_step(false) {
            let free = pages("freelist_count");
            let is_over = vacuum.step(&connection, (0, false)).unwrap();
            let back = free - pages("freelist_count");
            assert!(back <= STEP_PAGES, "{back}");
            assert_eq!(is_over, !vacuum.wants_step(false));
            steps += 1;
        }
        let after = pages("page_count");
        assert!(
            steps > 10 && after < before * 2 / 5,
            "{steps}: {before} to {after}"
        );
        assert!(pages("freelist_count") <= LEAVE_PAGES);
        // Reserved pages count as used.
        let free = pages("freelist_count");
        vacuum.note_removed(LOOK_RECORDS);
        assert!(!vacuum.step(&connection, (free, false)).unwrap() && pages("page_count") == after);
        // A few free pages are kept for the next changes.
        connection
            .execute("DELETE FROM t WHERE id < 600", [])
            .unwrap();
        vacuum.note(&Op::DeletePartition {
            partition: "p".into(),
        });
        assert!(!vacuum.step(&connection, (0, false)).unwrap() && pages("page_count") == after);
        // If the disk is short of room, fewer are kept.
        assert!(!vacuum.wants_step(true), "nothing was removed since");
        vacuum.note_removed(1);
        assert!(!vacuum.wants_step(false) && vacuum.wants_step(true));
        while vacuum.wants_step(true) {
            vacuum.step(&connection, (0, true)).unwrap();
        }
        assert!(pages("page_count") < after && pages("freelist_count") <= LEAVE_PAGES);
    }

    #[test]
    fn a_few_large_values_are_as_many_small_ones() {
        let connection = incremental();
        let mut vacuum = Vacuum::new(&connection).unwrap();
        assert!(!vacuum.step(&connection, (0, false)).unwrap());
        vacuum.note_removed_large(3 << 20);
        assert!(!vacuum.wants_step(false));
        vacuum.note_removed_large(3 << 20);
        assert!(vacuum.wants_step(false));
    }

    #[test]
    fn files_of_older_versions_stay_as_they_are() {
        let connection = Connection::open_in_memory().unwrap();
        let mut vacuum = Vacuum::new(&connection).unwrap();
        vacuum.note(&Op::DeletePartition {
            partition: "p".into(),
        });
        assert!(!vacuum.wants_step(false));
    }
}
