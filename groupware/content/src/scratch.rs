//! A folder among the system's temporary ones, gone when whoever made it lets it go. A process that was
//! killed leaves it behind: the next one that makes such a folder removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

/// What its name begins with.
const PREFIX: &str = "plimsoll-scratch-";
/// Others that look for what is left take it away before it is locked as often as this, or not at all.
const TRIES: usize = 16;

/// The folder. Its lock says that somebody uses it, and goes with the process.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: Flock<File>,
}

impl Scratch {
    /// A new one in `among`, where those that were left are removed.
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

/// The lock of a folder that is still there once it is held.
fn locked(folder: &Path) -> Option<Flock<File>> {
    let lock = Flock::lock(File::open(folder).ok()?, FlockArg::LockExclusiveNonblock).ok()?;
    let (held, there) = (lock.metadata().ok()?, fs::symlink_metadata(folder).ok()?);
    (held.ino() == there.ino() && held.dev() == there.dev()).then_some(lock)
}

/// Removes the folders of a user that nobody holds. What can't be removed stays for the next time.
fn remove_left(among: &Path, user: u32) {
    for folder in left(among, user).unwrap_or_default() {
        // Held until it is gone, so that nobody takes it for a new one.
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
        // As when the process ends at once: the lock goes, the folder stays.
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
