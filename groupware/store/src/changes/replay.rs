//! Brings the records of an older copy forward by applying the change log, group by group.

use std::io;
use std::path::{Path, PathBuf};

use super::record::{Change, Next};
use super::segment::{Segment, segments};
use crate::StoreOptions;
use crate::error::{OpenError, StoreError};
use crate::sqlite;

/// The bytes of the log after which the applied changes are committed.
const AT_ONCE_BYTES: u64 = 32 << 20;

/// The reason why records could not be brought forward.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The copied store had no log, or another one.
    #[error("the log in {} does not belong to these records", .0.display())]
    Foreign(PathBuf),
    /// The records are newer than the requested moment.
    #[error("the records are of a later moment")]
    Later,
    /// The log no longer has the groups that follow the records.
    #[error("the log in {} begins after these records", .0.display())]
    Gap(PathBuf),
    /// A file of the log is damaged, and it is not the last one.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    /// The log can't be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The records can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The records can't be written.
    #[error("cannot write the records")]
    Store(#[from] StoreError),
}

/// The result of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The number of transactions.
    pub groups: u64,
    /// The number of batches in them.
    pub batches: u64,
    /// The commit time of the last one, in microseconds since 1970; `None` if none was applied.
    pub last_us: Option<i64>,
    /// True if the log has later groups.
    pub is_cut: bool,
}

/// Brings the records in `folder` forward by the log in `changes` to the state at `until_us`, in microseconds since
/// 1970. Afterwards they no longer belong to that log: a server that starts on them begins a new one.
///
/// `told` receives the number of bytes of the log processed so far.
///
/// # Errors
/// See [`ReplayError`]; on error, the records are of an undefined moment and unusable.
pub fn replay(
    folder: &Path,
    changes: &Path,
    until_us: i64,
    told: &mut dyn FnMut(u64),
) -> Result<Replayed, ReplayError> {
    let position = sqlite::position(&folder.join(sqlite::FILE_NAME))?;
    let position = position.ok_or_else(|| ReplayError::Foreign(changes.to_path_buf()))?;
    let mut own = segments(changes).map_err(io_error(changes))?;
    own.retain(|segment| segment.log == position.log);
    // Start with the file that has the commit time of the last group of the records.
    let behind = own.partition_point(|segment| segment.first <= position.number.max(1));
    match own.first() {
        None => return Err(ReplayError::Foreign(changes.to_path_buf())),
        Some(first) if first.first > position.number + 1 => {
            return Err(ReplayError::Gap(changes.to_path_buf()));
        }
        Some(_) => drop(own.drain(..behind.saturating_sub(1))),
    }
    let (_readers, engine) = sqlite::open(folder, &StoreOptions::default())?;
    let mut forward = Forward {
        engine,
        number: position.number,
        until_us,
        waiting: Vec::new(),
        waiting_bytes: 0,
        replayed: Replayed::default(),
    };
    let mut gone_through = 0;
    let count = own.len();
    for (at, segment) in own.iter().enumerate() {
        if !forward.segment(segment, at + 1 == count)? {
            break;
        }
        gone_through += segment.bytes;
        told(gone_through);
    }
    forward.commit()?;
    Ok(forward.replayed)
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> ReplayError {
    let path = path.to_path_buf();
    move |source| ReplayError::Io { path, source }
}

/// Records that are being brought forward.
struct Forward {
    engine: sqlite::SqliteWriter,
    /// The number of their last group.
    number: u64,
    until_us: i64,
    waiting: Vec<Change>,
    waiting_bytes: u64,
    replayed: Replayed,
}

impl Forward {
    /// Applies a file of the log; returns whether to continue with the next file.
    fn segment(&mut self, segment: &Segment, is_last: bool) -> Result<bool, ReplayError> {
        let io = || io_error(&segment.path);
        let damaged = || ReplayError::Damaged(segment.path.clone());
        let Some(mut groups) = segment.open().map_err(io())? else {
            return if is_last { Ok(false) } else { Err(damaged()) };
        };
        loop {
            let (group, bytes) = match groups.next().map_err(io())? {
                Next::Group { group, bytes } => (group, bytes),
                Next::End => return Ok(true),
                // A server may be writing the last file.
                Next::Torn if is_last => return Ok(false),
                Next::Torn => return Err(damaged()),
            };
            if group.number <= self.number {
                if group.time_us > self.until_us {
                    return Err(ReplayError::Later);
                }
                continue;
            }
            if group.time_us > self.until_us {
                self.replayed.is_cut = true;
                return Ok(false);
            }
            if group.number != self.number + 1 {
                return Err(damaged());
            }
            self.number = group.number;
            self.replayed.groups += 1;
            self.replayed.batches += group.changes.len() as u64;
            self.replayed.last_us = Some(group.time_us);
            self.waiting.extend(group.changes);
            self.waiting_bytes += bytes;
            if self.waiting_bytes >= AT_ONCE_BYTES {
                self.commit()?;
            }
        }
    }

    fn commit(&mut self) -> Result<(), ReplayError> {
        let changes = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        Ok(self.engine.redo(&changes)?)
    }
}
