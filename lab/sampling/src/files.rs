//! Files that the system's processes have mapped. Pipes, devices, and symbolic links at the end of a path are refused.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use object::read::ReadCache;

use crate::elf::Elf;

/// Larger files are not read.
const LARGEST_FILE: u64 = 4 * 1024 * 1024 * 1024;
/// Most files that are opened. Each stays open until its names have been looked up.
const MOST_FILES: usize = 500;
/// The most bytes that are read of the vDSO.
const LARGEST_VDSO: u64 = 256 * 1024;

/// A file with code.
#[derive(Debug)]
pub(crate) struct Module {
    /// The path as the system sees it.
    pub(crate) path: String,
    /// Kept open, so that it is the one that was sampled.
    pub(crate) file: Option<File>,
    pub(crate) elf: Option<Elf>,
}

/// A mapping of a file in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) pid: i32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) path: PathBuf,
    /// 0 where it isn't known.
    pub(crate) inode: u64,
}

/// All files.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    known: HashMap<(PathBuf, u64), u32>,
    modules: Vec<Module>,
    vdso: Option<u32>,
}

impl Modules {
    pub(crate) fn get(&self, module: u32) -> Option<&Module> {
        self.modules.get(module as usize)
    }

    /// The number of a mapped file, which is opened the first time.
    pub(crate) fn of(&mut self, mapped: &Mapped) -> u32 {
        let key = (mapped.path.clone(), mapped.inode);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let file = (self.modules.len() < MOST_FILES)
            .then(|| open(mapped))
            .flatten();
        let elf = file.as_ref().and_then(|file| {
            let cache = ReadCache::new(file);
            Elf::read(&cache)
        });
        let path = mapped.path.to_string_lossy();
        let number = self.add(Module {
            path: path.trim_end_matches(" (deleted)").to_owned(),
            file,
            elf,
        });
        self.known.insert(key, number);
        number
    }

    /// The kernel's code in each process, which is in no file. It is the same in all of them.
    pub(crate) fn vdso(&mut self, mapped: &Mapped) -> u32 {
        if let Some(known) = self.vdso {
            return known;
        }
        let number = self.add(Module {
            path: "[vdso]".to_owned(),
            file: None,
            elf: vdso(mapped).and_then(|bytes| Elf::read(bytes.as_slice())),
        });
        self.vdso = Some(number);
        number
    }

    fn add(&mut self, module: Module) -> u32 {
        let number = self.modules.len() as u32;
        self.modules.push(module);
        number
    }
}

fn vdso(mapped: &Mapped) -> Option<Vec<u8>> {
    let length = mapped.end.checked_sub(mapped.start)?.min(LARGEST_VDSO);
    let memory = File::open(format!("/proc/{}/mem", mapped.pid)).ok()?;
    let mut bytes = vec![0; length as usize];
    memory.read_exact_at(&mut bytes, mapped.start).ok()?;
    Some(bytes)
}

fn open(mapped: &Mapped) -> Option<File> {
    let process = PathBuf::from(format!("/proc/{}", mapped.pid));
    // The mapped file itself, even if its path now names another file. Only root may follow this link.
    let link = process.join(format!("map_files/{:x}-{:x}", mapped.start, mapped.end));
    if let Some(file) = open_regular(&link, OFlag::empty(), LARGEST_FILE) {
        return Some(file);
    }
    let path = inside(&process.join("root"), &mapped.path)?;
    let file = open_regular(&path, OFlag::O_NOFOLLOW, LARGEST_FILE)?;
    let same = mapped.inode == 0
        || file
            .metadata()
            .is_ok_and(|about| about.ino() == mapped.inode);
    same.then_some(file)
}

/// A path of a process, below the root that it has.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    Some(root.join(path.strip_prefix("/").ok()?))
}

/// Opens a regular file for reading. A pipe or a device would wait for ever, or do something when it is opened.
pub(crate) fn open_regular(path: &Path, flags: OFlag, largest: u64) -> Option<File> {
    let about = if flags.contains(OFlag::O_NOFOLLOW) {
        std::fs::symlink_metadata(path).ok()?
    } else {
        std::fs::metadata(path).ok()?
    };
    if !about.is_file() {
        return None;
    }
    let flags = flags | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    (about.is_file() && about.len() <= largest).then_some(file)
}

/// Reads a whole file of limited size.
pub(crate) fn read(file: &File, largest: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.take(largest + 1).read_to_end(&mut bytes).ok()?;
    (read as u64 <= largest).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_links_and_large_files_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(open_regular(&pipe, OFlag::empty(), 10).is_none());
        let file = dir.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert!(open_regular(&file, OFlag::O_NOFOLLOW, 10).is_some());
        assert!(open_regular(&file, OFlag::O_NOFOLLOW, 9).is_none());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_regular(&link, OFlag::O_NOFOLLOW, 10).is_none());
        assert!(open_regular(dir.path(), OFlag::empty(), 10).is_none());
    }
}
