//! Open files and their limits: those of a process against its own limit, those of all against the
//! kernel's.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::limits::open_files_limit;
use crate::roots::Roots;
use crate::stat::Stat;

/// Open files and their limit, at the sample that was nearest to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesUsed {
    /// Open at once.
    pub open: u64,
    /// The limit.
    pub limit: u64,
}

impl FilesUsed {
    /// Compares by the used fraction of the limit; no process runs under a limit of 0 files.
    fn nearer(self, other: Self) -> Ordering {
        let own = u128::from(self.open) * u128::from(other.limit);
        own.cmp(&(u128::from(other.open) * u128::from(self.limit)))
    }

    fn nearest(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match one.zip(other) {
            Some((one, other)) if one.nearer(other) == Ordering::Less => Some(other),
            Some((one, _)) => Some(one),
            None => one.or(other),
        }
    }
}

/// Finds the process of a tree that was nearest to its own limit. The maximum of each is stored, so that a limit
/// is read only when a process exceeds its maximum.
#[derive(Debug, Default)]
pub(crate) struct Fullest {
    most: HashMap<(i32, u64), u64>,
    nearest: Option<FilesUsed>,
}

impl Fullest {
    /// Adds the number of files that the processes have open now, and returns it; `None` if it can't be read for one.
    pub(crate) fn add(&mut self, proc: &Path, stats: &[(i32, Stat)]) -> Option<u64> {
        let mut most = HashMap::with_capacity(stats.len());
        let mut sum = Some(0);
        for (pid, stat) in stats {
            let open = open_files(proc, *pid);
            sum = sum.zip(open).map(|(sum, open)| sum + open);
            let Some(open) = open else { continue };
            let process = (*pid, stat.started);
            let before = self.most.get(&process).copied();
            if before.is_none_or(|before| open > before) {
                let limit = open_files_limit(proc, *pid);
                // A limit may be set below the number of open files; the use is capped at the limit.
                let used = limit.map(|limit| FilesUsed {
                    open: open.min(limit),
                    limit,
                });
                self.nearest = FilesUsed::nearest(self.nearest, used);
            }
            most.insert(process, before.unwrap_or_default().max(open));
        }
        self.most = most;
        sum
    }

    pub(crate) fn nearest(&self) -> Option<FilesUsed> {
        self.nearest
    }
}

/// Since Linux 6.2 the size of the folder is the number of descriptors; before, they are counted
/// one by one.
fn open_files(proc: &Path, pid: i32) -> Option<u64> {
    let folder = proc.join(pid.to_string()).join("fd");
    let meta = fs::metadata(&folder).ok()?;
    // A real folder has the size of its blocks; that of procfs has none.
    if meta.len() > 0 && meta.blocks() == 0 {
        return Some(meta.len());
    }
    Some(fs::read_dir(&folder).ok()?.count() as u64)
}

/// The most that all processes of a machine have open at any sample.
#[derive(Debug, Default)]
pub(crate) struct AllFiles(Option<FilesUsed>);

impl AllFiles {
    /// Reads the number of open files now: `OPEN FREE LIMIT`, where FREE is always 0 since Linux 2.6.
    pub(crate) fn add(&mut self, roots: &Roots) {
        let read = || {
            let text = fs::read_to_string(roots.proc.join("sys/fs/file-nr")).ok()?;
            let mut numbers = text.split_ascii_whitespace().map(str::parse);
            let (open, limit) = (numbers.next()?.ok()?, numbers.nth(1)?.ok()?);
            Some(FilesUsed { open, limit })
        };
        self.0 = FilesUsed::nearest(self.0, read());
    }

    /// `None` also without an effective limit: the kernel's own default on 64 bits is more than memory holds.
    pub(crate) fn nearest(&self) -> Option<FilesUsed> {
        let is_one = |used: &FilesUsed| used.limit < i64::MAX as u64;
        self.0.filter(is_one)
    }
}
