//! Keeps content from being swept while another process copies it.
//!
//! The lock is the system's, and goes with the process that has it, however that ends.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{ContentError, ContentStore};

/// As long as one is held, in whichever process, no content is removed from the store.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "held, not used")] File);

impl ContentStore {
    /// Waits until no sweep removes anything, and keeps all later ones from it. Content that a record
    /// refers to in a snapshot that is begun afterwards is there until the hold is dropped.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn hold(&self) -> Result<Hold, ContentError> {
        let path = path(self);
        let file = open(&path).and_then(|file| file.lock_shared().map(|()| file));
        file.map(Hold)
            .map_err(|error| ContentError::of(&path, error))
    }
}

impl ContentStore {
    /// As long as this is held, nobody else takes a hold, and no content is removed; `None` where somebody
    /// holds the store.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn hold_alone(&self) -> Result<Option<Hold>, ContentError> {
        Hold::none_other(self)
    }
}

impl Hold {
    /// The right to remove; `None` where somebody holds the store.
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
