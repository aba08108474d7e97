//! Reads values, inline or in the separate table.

use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

const LARGE: &str = "SELECT value FROM large_values WHERE id = ?1";
/// SQLite reads the length without reading the value.
const LARGE_LENGTH: &str = "SELECT length(value) FROM large_values WHERE id = ?1";

/// Reads a value, inline or in the separate table.
pub(super) fn value(connection: &Connection, stored: ValueRef<'_>) -> rusqlite::Result<Bytes> {
    match stored {
        ValueRef::Integer(id) => large(connection, id),
        value => Ok(Bytes::copy_from_slice(value.as_blob()?)),
    }
}

/// Reads a value from the separate table.
pub(super) fn large(connection: &Connection, id: i64) -> rusqlite::Result<Bytes> {
    connection.prepare_cached(LARGE)?.query_row([id], |row| {
        Ok(Bytes::copy_from_slice(row.get_ref(0)?.as_blob()?))
    })
}

/// The length of a value in the separate table.
pub(super) fn large_length(connection: &Connection, id: i64) -> rusqlite::Result<u64> {
    let mut length = connection.prepare_cached(LARGE_LENGTH)?;
    let bytes: i64 = length.query_row([id], |row| row.get(0))?;
    Ok(bytes.unsigned_abs())
}
