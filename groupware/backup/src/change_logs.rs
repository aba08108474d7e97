//! The moments that the kept changes of a data folder lead to.

use std::path::Path;

use groupware_store::{CHANGES_FOLDER, segments};

use crate::BackupError;

/// A change log without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// The time of the first change, in microseconds since 1970.
    pub from_us: i64,
    /// The time of the last change.
    pub to_us: i64,
    /// The size of the log in bytes.
    pub bytes: u64,
}

/// Returns the non-empty logs of a data folder, oldest first.
///
/// # Errors
/// If a file operation fails.
pub fn change_logs(data: &Path) -> Result<Vec<LogRange>, BackupError> {
    let folder = data.join(CHANGES_FOLDER);
    let io = || BackupError::io(&folder);
    let files = segments(&folder).map_err(io())?;
    let mut found = Vec::new();
    for log in files.chunk_by(|one, next| one.log == next.log) {
        let mut times = None;
        for file in log {
            // Only the last file is read through: it may be empty.
            let first = file.first_us().map_err(io())?;
            times = times.or(first.map(|first| (first, first)));
        }
        let Some((from_us, mut to_us)) = times else {
            continue;
        };
        for file in log.iter().rev() {
            let mut last = None;
            for group in file.groups().map_err(io())? {
                last = Some(group.map_err(io())?.time_us);
            }
            if let Some(last) = last {
                to_us = last;
                break;
            }
        }
        found.push(LogRange {
            from_us,
            to_us,
            bytes: log.iter().map(|file| file.bytes).sum(),
        });
    }
    Ok(found)
}
