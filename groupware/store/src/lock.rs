//! Keeps a second process, or a second store of this one, out of a data folder.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::{OpenError, place};

/// Held as long as the folder is open; the system lets go of it when the process ends, however
/// it ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Holds a folder, which is made, for its owner alone, if it isn't there.
    ///
    /// # Errors
    /// When another process holds it, or the disk refuses.
    pub fn take(folder: &Path) -> Result<Self, OpenError> {
        Self::lock(folder, File::try_lock)
    }

    /// Holds a folder together with others who do the same.
    ///
    /// # Errors
    /// When another process holds it for itself, or the disk refuses.
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
