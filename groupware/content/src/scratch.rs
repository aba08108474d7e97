//! A folder in the system's temporary one, removed on drop. A killed process leaves it behind: the
//! next process that creates one removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

/// The prefix of its name.
const PREFIX: &str = "plimsoll-scratch-";
/// The maximum number of tries: a concurrent cleanup may remove a new folder before it is locked.
const TRIES: usize = 16;

/// The folder. Its lock marks it as used, and ends with the process.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: Flock<File>,
}

impl Scratch {
    /// Creates one in `among`, and removes abandoned ones there.
    pub(crate) fn make(among: &Path) -> io::Result<Self> {
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(among)?;
            if let Some(lock) = locked(folder.path()) {
                remove_left(among, lock.metadata()?.uid());
                return Ok(Self {
                    folder,
                    _lock: lock,
                });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Locks a folder, if it still exists then.
fn locked(folder: &Path) -> Option<Flock<File>> {
    let lock = Flock::lock(File::open(folder).ok()?, FlockArg::LockExclusiveNonblock).ok()?;
    let (held, there) = (lock.metadata().ok()?, fs::symlink_metadata(folder).ok()?);
    (held.ino() == there.ino() && held.dev() == there.dev()).then_some(lock)
}

/// Removes a user's unlocked folders. Failures are left to the next time.
fn remove_left(among: &Path, user: u32) {
    for folder in left(among, user).unwrap_or_default() {
        // Locked until it is removed, so that no process takes it for a new one.
        if let Some(_lock) = locked(&folder) {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

fn left(among: &Path, user: u32) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(among)? {
        let entry = entry?;
        let is_ours = |found: fs::Metadata| found.is_dir() && found.uid() == user;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.metadata().is_ok_and(is_ours)
        {
            folders.push(entry.path());
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_left_is_removed_by_the_next_and_what_is_used_stays() {
        let among = tempfile::tempdir().unwrap();
        let used = Scratch::make(among.path()).unwrap();
        let killed = Scratch::make(among.path()).unwrap();
        fs::write(killed.path().join("content"), "x").unwrap();
        // Like a process that is killed: the lock ends, the folder stays.
        let left = killed.folder.keep();
        drop(killed._lock);
        for other in ["something-else", "plimsoll-scratch"] {
            fs::create_dir(among.path().join(other)).unwrap();
        }
        std::os::unix::fs::symlink(
            among.path().join("something-else"),
            among.path().join("plimsoll-scratch-x"),
        )
        .unwrap();
        let next = Scratch::make(among.path()).unwrap();
        assert!(used.path().is_dir() && next.path().is_dir() && !left.exists());
        assert_eq!(fs::read_dir(among.path()).unwrap().count(), 5);
        let path = next.path().to_owned();
        drop((used, next));
        assert!(!path.exists());
    }
}
