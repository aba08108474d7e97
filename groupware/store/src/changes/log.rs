//! The writer's side of the change log: each transaction is written and synced to the log before its commit, so that
//! the log has everything that the records have.
//!
//! A group may be logged and not committed, because the disk failed or the machine stopped in between. The next group
//! overwrites it, or the next start truncates it: the records store their position.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use super::record::{Next, encode};
use super::segment::{HEAD_BYTES, Segment, head, name, segments};
use crate::{Op, clock, place};

/// The length at which a new file begins: the retention of the log works by whole files.
const SEGMENT_BYTES: u64 = 16 << 20;
/// The age at which a new file begins, at the next write.
const SEGMENT_US: i64 = 600_000_000;

/// The position of the records: their log, and the number of their last group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) log: u64,
    pub(crate) number: u64,
}

/// The state of the log when it was opened.
pub(crate) enum Opened {
    /// All groups of the records.
    Whole(ChangeLog),
    /// Some groups are missing: a new log begins.
    Incomplete,
    /// More groups than the records have: the records are of an earlier moment.
    Ahead,
}

pub(crate) struct ChangeLog {
    folder: PathBuf,
    log: u64,
    /// The number of the last committed group.
    number: u64,
    file: File,
    /// The length of the file up to its last committed group.
    length: u64,
    /// The length of the group that is being committed.
    pending: Option<u64>,
    /// True if the file has bytes behind `length`.
    has_rest: bool,
    /// The commit times of the file's first group, and of the last group.
    began_us: Option<i64>,
    last_us: i64,
}

impl ChangeLog {
    /// Begins a log. Its name is the current time, and greater than that of earlier logs.
    pub(crate) fn begin(folder: &Path) -> io::Result<(Self, Position)> {
        make_folder(folder)?;
        let last = segments(folder)?.last().map_or(0, |segment| segment.log);
        let log = clock::unix_us().cast_unsigned().max(last + 1);
        let position = Position { log, number: 0 };
        Ok((Self::with_file(folder, position, 0)?, position))
    }

    /// Opens the log at the position of the records.
    pub(crate) fn open(folder: &Path, position: Position) -> io::Result<Opened> {
        make_folder(folder)?;
        let mut own = segments(folder)?;
        own.retain(|segment| segment.log == position.log);
        while let Some(last) = own.pop() {
            let Some(mut groups) = last.open()? else {
                // The machine stopped when the file was created: it is empty.
                fs::remove_file(&last.path)?;
                continue;
            };
            let (mut number, mut end) = (last.first - 1, HEAD_BYTES);
            let (mut began_us, mut last_us) = (None, 0);
            while let Next::Group { group, .. } = groups.next()? {
                if group.number > position.number + 1 {
                    return Ok(Opened::Ahead);
                }
                if group.number == position.number + 1 {
                    // Logged, but not committed.
                    continue;
                }
                (number, end, last_us) = (group.number, groups.at, group.time_us);
                began_us = began_us.or(Some(group.time_us));
            }
            return match number == position.number {
                true => {
                    let times = (began_us, last_us);
                    Self::go_on(folder, position, &last, end, times).map(Opened::Whole)
                }
                false => Ok(Opened::Incomplete),
            };
        }
        Ok(Opened::Incomplete)
    }

    fn go_on(
        folder: &Path,
        Position { log, number }: Position,
        segment: &Segment,
        length: u64,
        (began_us, last_us): (Option<i64>, i64),
    ) -> io::Result<Self> {
        let file = File::options().write(true).open(&segment.path)?;
        file.set_len(length)?;
        file.sync_all()?;
        Ok(Self {
            folder: folder.to_path_buf(),
            log,
            number,
            file,
            length,
            pending: None,
            has_rest: false,
            began_us,
            last_us,
        })
    }

    fn with_file(folder: &Path, position: Position, last_us: i64) -> io::Result<Self> {
        let Position { log, number } = position;
        Ok(Self {
            file: new_file(folder, log, number + 1)?,
            folder: folder.to_path_buf(),
            log,
            number,
            length: HEAD_BYTES,
            pending: None,
            has_rest: false,
            began_us: None,
            last_us,
        })
    }

    /// Writes the changes of a commit, durably, and returns the group's number. The caller then calls
    /// [`committed`](Self::committed) if and only if the commit succeeds.
    pub(crate) fn write(&mut self, changes: &[(u64, &[Op])]) -> io::Result<u64> {
        let time_us = clock::unix_us().max(self.last_us + 1);
        let is_old = self
            .began_us
            .is_some_and(|began| time_us - began > SEGMENT_US);
        if self.length > SEGMENT_BYTES || is_old {
            let position = Position {
                log: self.log,
                number: self.number,
            };
            self.cut_rest()?;
            *self = Self::with_file(&self.folder, position, self.last_us)?;
        }
        self.cut_rest()?;
        let bytes = encode(self.number + 1, time_us, changes);
        self.has_rest = true;
        self.file.write_all_at(&bytes, self.length)?;
        self.file.sync_data()?;
        self.pending = Some(bytes.len() as u64);
        self.last_us = time_us;
        self.began_us = self.began_us.or(Some(time_us));
        Ok(self.number + 1)
    }

    /// Records that the last written group was committed.
    pub(crate) fn committed(&mut self) {
        if let Some(bytes) = self.pending.take() {
            self.number += 1;
            self.length += bytes;
            self.has_rest = false;
        }
    }

    /// Truncates a group that was not committed: a shorter next group would leave its end in the file.
    fn cut_rest(&mut self) -> io::Result<()> {
        if self.has_rest {
            self.file.set_len(self.length)?;
            self.has_rest = false;
            self.pending = None;
        }
        Ok(())
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().mode(0o700).create(folder)?;
    place::sync_folder(folder.parent().unwrap_or(Path::new(".")))
}

/// Creates a file of a log, durable with its name. The empty file of a failed start is created again.
fn new_file(folder: &Path, log: u64, first: u64) -> io::Result<File> {
    let path = folder.join(name(log, first));
    let file = place::open_file(&path)?;
    file.set_len(0)?;
    file.write_all_at(&head(log, first), 0)?;
    file.sync_all()?;
    place::sync_folder(folder)?;
    Ok(file)
}
