//! Content that nothing refers to any more, and that is kept for a while all the same: a log of changes
//! leads back to when something did.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::store::spared_folder;
use crate::{ContentError, ContentHash};

/// The spared content of a data folder. There need be none.
#[derive(Debug, Clone)]
pub struct Spared {
    folder: PathBuf,
}

/// A piece of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparedFile {
    /// Its name.
    pub hash: ContentHash,
    /// Its length.
    pub bytes: u64,
    /// Since when nothing refers to it.
    pub since: SystemTime,
}

/// Takes content out of its place, and notes when.
#[expect(
    clippy::disallowed_methods,
    reason = "files have times; nothing is decided by this one here"
)]
pub(crate) fn spare(from: &Path, to: &Path) -> io::Result<()> {
    File::options()
        .write(true)
        .open(from)?
        .set_modified(SystemTime::now())?;
    fs::rename(from, to)
}

impl Spared {
    /// That of a data folder.
    pub fn of(data: &Path) -> Self {
        Self {
            folder: spared_folder(data),
        }
    }

    /// Opens a piece for reading. Only the first bytes, as many as it has, count.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if it isn't there; else the disk's.
    pub fn read(&self, hash: ContentHash) -> Result<File, ContentError> {
        let path = self.folder.join(hash.to_string());
        File::open(&path).map_err(|error| ContentError::of(&path, error))
    }

    /// All of it, oldest first.
    ///
    /// # Errors
    /// The disk's.
    pub fn files(&self) -> Result<Vec<SparedFile>, ContentError> {
        let io = |error| ContentError::of(&self.folder, error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(io)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io)?;
            let name = entry.file_name();
            let hash = name.to_str().and_then(ContentHash::parse);
            let Some(hash) = hash else { continue };
            let about = entry.metadata().map_err(io)?;
            files.push(SparedFile {
                hash,
                bytes: about.len(),
                since: about.modified().map_err(io)?,
            });
        }
        files.sort_by_key(|file| file.since);
        Ok(files)
    }

    /// Removes a piece.
    ///
    /// # Errors
    /// The disk's.
    pub fn remove(&self, hash: ContentHash) -> Result<(), ContentError> {
        let path = self.folder.join(hash.to_string());
        fs::remove_file(&path).map_err(|error| ContentError::of(&path, error))
    }
}
