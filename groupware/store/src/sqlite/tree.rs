//! Records in the tree, one at a time, within the caller's transaction.

use rusqlite::{Connection, OptionalExtension, Params, ToSql};

use super::connect::INLINE_BYTES;
use super::values::value;

const REVISION: &str = "SELECT revision FROM records WHERE partition = ?1 AND key = ?2";
/// One descent of the tree, whether or not the record is new; a record with a separate value is not overwritten.
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

const USED: &str = "SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size";

/// The writing connection.
pub(super) struct Tree {
    connection: Connection,
    /// True if there may be large values, which are removed with their records.
    has_large: bool,
    /// True if commits are durable.
    is_durable: bool,
}

impl Tree {
    pub(super) fn new(connection: Connection) -> rusqlite::Result<Self> {
        let has_large = connection.query_row(HAS_LARGE, [], |row| row.get(0))?;
        Ok(Self {
            connection,
            has_large,
            is_durable: true,
        })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.prepared(sql, [])
    }

    /// Begins a transaction whose commit is durable.
    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        self.set_durable(true)?;
        self.execute("BEGIN IMMEDIATE")
    }

    /// Runs writes that need not be durable when they are committed. The next durable commit makes them durable.
    pub(super) fn lazily<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.set_durable(false)?;
        let done = work(self);
        // If this fails, nothing more is committed before it has succeeded.
        let _ = self.set_durable(true);
        done
    }

    fn set_durable(&mut self, is_durable: bool) -> rusqlite::Result<()> {
        if self.is_durable != is_durable {
            let level = if is_durable { "full" } else { "normal" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.is_durable = is_durable;
        }
        Ok(())
    }

    /// The number of bytes of the file that are in use.
    pub(super) fn used_bytes(&self) -> rusqlite::Result<u64> {
        let mut used = self.connection.prepare_cached(USED)?;
        let bytes: i64 = used.query_row([], |row| row.get(0))?;
        Ok(bytes.unsigned_abs())
    }

    /// Rolls back a failed transaction. If that fails, too, the next one can't begin and reports the error.
    pub(super) fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// The revision of a key's record.
    pub(super) fn revision(&self, partition: &str, key: &[u8]) -> rusqlite::Result<Option<u64>> {
        let mut revision = self.connection.prepare_cached(REVISION)?;
        let read = |row: &rusqlite::Row<'_>| row.get(0).map(i64::unsigned_abs);
        revision.query_row((partition, key), read).optional()
    }

    pub(super) fn value(&self, partition: &str, key: &[u8]) -> rusqlite::Result<Option<Vec<u8>>> {
        let mut value_of = self.connection.prepare_cached(VALUE)?;
        let read = |row: &rusqlite::Row<'_>| value(&self.connection, row.get_ref(0)?);
        let found = value_of.query_row((partition, key), read).optional()?;
        Ok(found.map(Into::into))
    }

    /// Writes a record, new or existing.
    pub(super) fn put(
        &mut self,
        (partition, key): (&str, &[u8]),
        revision: u64,
        value: &[u8],
    ) -> rusqlite::Result<()> {
        let revision = revision.cast_signed();
        if lies_inline(partition, key, value) {
            return self.put_inline((partition, key), revision, value);
        }
        let large = self.large(partition, key)?;
        if let Some(id) = large {
            // The record keeps the number of its value.
            let mut put = self.connection.prepare_cached(PUT_LARGE_OVER)?;
            if put.execute((value, id))? == 1 {
                return self.prepared(TOUCH, (partition, key, revision));
            }
        }
        self.prepared(PUT_LARGE, (value,))?;
        self.has_large = true;
        let id = self.connection.last_insert_rowid();
        match large {
            None => self.prepared(PUT, (partition, key, revision, id)),
            // A damaged store: the value is missing.
            Some(_) => self.prepared(PUT_OVER, (partition, key, revision, id)),
        }
    }

    fn put_inline(
        &self,
        (partition, key): (&str, &[u8]),
        revision: i64,
        value: &[u8],
    ) -> rusqlite::Result<()> {
        let row = (partition, key, revision, value);
        if self.connection.prepare_cached(PUT)?.execute(row)? == 1 {
            return Ok(());
        }
        self.free(partition, key)?;
        self.prepared(PUT_OVER, row)
    }

    pub(super) fn delete(&self, partition: &str, key: &[u8]) -> rusqlite::Result<()> {
        let mut inline = self.connection.prepare_cached(DELETE_INLINE)?;
        if inline.execute((partition, key))? == 1 {
            return Ok(());
        }
        self.free(partition, key)?;
        self.prepared(DELETE, (partition, key))
    }

    /// Removes the records with `from <= key < to`.
    pub(super) fn delete_range(
        &self,
        partition: &str,
        from: &[u8],
        to: &[u8],
    ) -> rusqlite::Result<()> {
        self.remove_all((FREE_RANGE, DELETE_RANGE), &[&partition, &from, &to])
    }

    pub(super) fn delete_partition(&self, partition: &str) -> rusqlite::Result<()> {
        self.remove_all((FREE_PARTITION, DELETE_PARTITION), &[&partition])
    }

    fn prepared(&self, sql: &str, row: impl Params) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// The number of a record's large value, if it has one. Few records do, and a lookup is cheaper than an empty
    /// delete.
    pub(super) fn large(&self, partition: &str, key: &[u8]) -> rusqlite::Result<Option<i64>> {
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

    /// Removes records, and first the large values of these records.
    fn remove_all(&self, (free, delete): (&str, &str), of: &[&dyn ToSql]) -> rusqlite::Result<()> {
        if self.has_large {
            self.connection.prepare_cached(free)?.execute(of)?;
        }
        self.connection.prepare_cached(delete)?.execute(of)?;
        Ok(())
    }
}

fn lies_inline(partition: &str, key: &[u8], value: &[u8]) -> bool {
    partition.len() + key.len() + value.len() <= INLINE_BYTES
}
