//! Locks a data folder against a second process or a second store of this process.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::{OpenError, place};

/// The lock of an open folder. The system releases it when the process ends, also after a crash.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks a folder exclusively. A missing folder is created, private to its owner.
    ///
    /// # Errors
    /// When another process holds the lock, or the disk fails.
    pub fn take(folder: &Path) -> Result<Self, OpenError> {
        Self::lock(folder, File::try_lock)
    }

    /// Locks a folder together with other sharers.
    ///
    /// # Errors
    /// When another process holds it exclusively, or the disk fails.
    pub fn share(folder: &Path) -> Result<Self, OpenError> {
        Self::lock(folder, File::try_lock_shared)
    }

    fn lock(
        folder: &Path,
        try_lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, OpenError> {
        place::make_folder(folder).map_err(|source| OpenError::Io {
            path: folder.into(),
            source,
        })?;
        let path = folder.join("lock");
        let io = |source| OpenError::Io {
            path: path.clone(),
            source,
        };
        let file = place::open_file(&path).map_err(io)?;
        match try_lock(&file) {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
                folder: folder.into(),
            }),
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }
}
