//! Prevents sweeps of content while another process copies it.
//!
//! The system holds the lock, which ends with its process in any case.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{ContentError, ContentStore};

/// While any process holds one, no content is removed from the store.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "held, not used")] File);

impl ContentStore {
    /// Waits for a sweep's removals, and prevents all later ones. Content with a record in a
    /// snapshot taken afterwards exists until the hold is dropped.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn hold(&self) -> Result<Hold, ContentError> {
        let path = path(self);
        let file = open(&path).and_then(|file| file.lock_shared().map(|()| file));
        file.map(Hold)
            .map_err(|error| ContentError::of(&path, error))
    }
}

impl ContentStore {
    /// Takes an exclusive hold: until it is dropped, no other hold can be taken, and no content is
    /// removed; `None` while the store is held.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn hold_alone(&self) -> Result<Option<Hold>, ContentError> {
        Hold::none_other(self)
    }
}

impl Hold {
    /// Takes the right to remove; `None` while the store is held.
    pub(crate) fn none_other(store: &ContentStore) -> Result<Option<Self>, ContentError> {
        let path = path(store);
        let io = |error| ContentError::of(&path, error);
        let file = open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }
}

fn path(store: &ContentStore) -> PathBuf {
    store.uploads().with_file_name("content.lock")
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.create(true).truncate(false).write(true);
    options.mode(0o600).open(path)
}
