//! Values, wherever they lie.

use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

const LARGE: &str = "SELECT value FROM large_values WHERE id = ?1";
/// SQLite tells it without reading the value.
const LARGE_LENGTH: &str = "SELECT length(value) FROM large_values WHERE id = ?1";

/// A value, wherever it lies.
pub(super) fn value(connection: &Connection, stored: ValueRef<'_>) -> rusqlite::Result<Bytes> {
    match stored {
        ValueRef::Integer(id) => large(connection, id),
        value => Ok(Bytes::copy_from_slice(value.as_blob()?)),
    }
}

/// One that lies apart.
pub(super) fn large(connection: &Connection, id: i64) -> rusqlite::Result<Bytes> {
    connection.prepare_cached(LARGE)?.query_row([id], |row| {
        Ok(Bytes::copy_from_slice(row.get_ref(0)?.as_blob()?))
    })
}

/// The length of one that lies apart.
pub(super) fn large_length(connection: &Connection, id: i64) -> rusqlite::Result<u64> {
    let mut length = connection.prepare_cached(LARGE_LENGTH)?;
    let bytes: i64 = length.query_row([id], |row| row.get(0))?;
    Ok(bytes.unsigned_abs())
}
