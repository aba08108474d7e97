//! Removes what servers over one database rely on: the partition locks.

/// The name of the function that takes a lock in a session's statements, and a name of the same
/// length for one that takes none.
const LOCKS: &[u8] = b"pg_advisory_xact_lock";
const LOCKS_NOTHING: &[u8] = b"no_advisory_xact_lock";

/// Returns SQL for the functions that take no locks, to be created in a store's schema.
pub(crate) fn functions(schema: &str) -> String {
    let made = ["no_advisory_xact_lock", "no_advisory_xact_lock_shared"].map(|name| {
        format!("CREATE FUNCTION {schema}.{name}(int, int) RETURNS void LANGUAGE sql AS 'SELECT';")
    });
    made.concat()
}

/// Replaces the locking functions in these bytes; returns the number of replacements.
pub(crate) fn unlock(bytes: &mut [u8]) -> u32 {
    let mut found = 0;
    for at in 0..bytes.len() {
        if bytes[at..].starts_with(LOCKS) {
            bytes[at..at + LOCKS.len()].copy_from_slice(LOCKS_NOTHING);
            found += 1;
        }
    }
    found
}
