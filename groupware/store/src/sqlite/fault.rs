//! Maps SQLite's errors to the store's kinds.

use std::io;
use std::sync::Arc;

use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};

use crate::{CommitError, StoreError};

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(SystemIoFailure) => Self::Disk(Arc::new(error)),
            _ => Self::Database(Arc::new(error)),
        }
    }
}

/// Classifies a failed write as "no room" or another error.
///
/// An I/O error counts as "no room" only if the disk is full: a file system with delayed allocation reports a full disk
/// as a failed write or sync.
pub(super) fn of_write(error: rusqlite::Error, is_full: impl FnOnce() -> bool) -> CommitError {
    match error.sqlite_error_code() {
        Some(DiskFull) => CommitError::Full,
        Some(SystemIoFailure) if is_full() => CommitError::Full,
        _ => CommitError::Store(error.into()),
    }
}

/// Classifies a failed write of the change log, without which nothing is committed.
pub(super) fn of_log(error: io::Error) -> CommitError {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => CommitError::Full,
        _ => CommitError::Store(StoreError::Disk(Arc::new(error))),
    }
}

/// Logs that free pages were not returned to the disk; the next removal retries it.
pub(super) fn note_vacuum(error: rusqlite::Error) {
    let error = StoreError::from(error);
    tracing::warn!(
        cause = groupware_text::chain(&error),
        "room that is free can't be given back to the disk"
    );
}

/// Logs that changes were not written into the tree; a later step retries it, and they are durable where they are.
pub(super) fn note_flush(error: &(impl std::error::Error + 'static)) {
    tracing::warn!(
        cause = groupware_text::chain(error),
        "changes that wait can't be written into the database"
    );
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_failing_disk_is_not_a_full_one() {
        let check = |code, is_full, expected: &str| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let found = of_write(error, || is_full);
            assert_eq!(found.to_string(), expected, "{code} {is_full}");
        };
        let (full, disk) = (
            "no room left to store the batch",
            "the disk can't be read or written",
        );
        check(ffi::SQLITE_FULL, false, full);
        check(ffi::SQLITE_IOERR_FSYNC, true, full);
        check(ffi::SQLITE_IOERR_FSYNC, false, disk);
        check(ffi::SQLITE_IOERR_WRITE, false, disk);
        check(ffi::SQLITE_CORRUPT, true, "the database failed");
    }
}
