//! The files of a change log.
//!
//! `{log}-{number}.changes` starts with the group of this number, of the log of this name. Both are hexadecimal, so
//! that the names sort by time. A file begins with its own name, so that a renamed file is detected.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::record::{self, Group, Next};

const MAGIC: &[u8; 8] = b"PLIMCHG1";
/// Magic, log, number.
pub(crate) const HEAD_BYTES: u64 = 24;
const ENDING: &str = ".changes";

/// A file of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The path of the file.
    pub path: PathBuf,
    /// The log that it belongs to, which has no gaps. Later logs have greater names.
    pub log: u64,
    /// The number of its first group.
    pub first: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Lists the files of the logs in a folder, oldest first; none if the folder doesn't exist.
///
/// # Errors
/// I/O errors of the disk.
pub fn segments(folder: &Path) -> io::Result<Vec<Segment>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some((log, first)) = name.and_then(parsed) else {
            continue;
        };
        match fs::metadata(&path) {
            Ok(about) => found.push(Segment {
                bytes: about.len(),
                path,
                log,
                first,
            }),
            // Removed meanwhile, because it was the oldest.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by_key(|segment| (segment.log, segment.first));
    Ok(found)
}

pub(crate) fn name(log: u64, first: u64) -> String {
    format!("{log:016x}-{first:016x}{ENDING}")
}

fn parsed(name: &str) -> Option<(u64, u64)> {
    let (log, first) = name.strip_suffix(ENDING)?.split_once('-')?;
    let number = |text: &str| {
        let is_one = text.len() == 16;
        u64::from_str_radix(text, 16).ok().filter(|_| is_one)
    };
    // Group numbers start at one.
    Some((number(log)?, number(first).filter(|first| *first > 0)?))
}

pub(crate) fn head(log: u64, first: u64) -> Vec<u8> {
    [&MAGIC[..], &log.to_le_bytes(), &first.to_le_bytes()].concat()
}

impl Segment {
    /// Opens the file and skips its header; `None` if the header is incomplete or of another file.
    pub(crate) fn open(&self) -> io::Result<Option<Groups>> {
        let mut file = BufReader::new(File::open(&self.path)?);
        let mut found = Vec::new();
        file.by_ref().take(HEAD_BYTES).read_to_end(&mut found)?;
        let is_own = found == head(self.log, self.first);
        Ok(is_own.then_some(Groups {
            file,
            at: HEAD_BYTES,
        }))
    }

    /// Reads its groups, up to the first incomplete one.
    ///
    /// # Errors
    /// I/O errors of the disk.
    pub fn groups(&self) -> io::Result<impl Iterator<Item = io::Result<Group>> + use<>> {
        let mut groups = self.open()?;
        Ok(std::iter::from_fn(move || match groups.as_mut()?.next() {
            Ok(Next::Group { group, .. }) => Some(Ok(group)),
            Ok(Next::End | Next::Torn) => None,
            Err(error) => Some(Err(error)),
        }))
    }

    /// The commit time of its first group, in microseconds since 1970; `None` if there is none.
    ///
    /// # Errors
    /// I/O errors of the disk.
    pub fn first_us(&self) -> io::Result<Option<i64>> {
        let first = self.groups()?.next().transpose()?;
        Ok(first.map(|group| group.time_us))
    }
}

/// Iterates over the groups of a file.
pub(crate) struct Groups {
    file: BufReader<File>,
    /// The offset of the next group.
    pub(crate) at: u64,
}

impl Groups {
    pub(crate) fn next(&mut self) -> io::Result<Next> {
        let next = record::next(&mut self.file)?;
        if let Next::Group { bytes, .. } = &next {
            self.at += bytes;
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_sort_by_time() {
        assert_eq!(parsed(&name(7, 300)), Some((7, 300)));
        assert!(name(7, 300) > name(7, 99) && name(8, 0) > name(7, u64::MAX));
        for bad in ["", "x.changes", "1-2.changes", "lock"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
