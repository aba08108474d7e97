//! Unreferenced content that is kept for a while, because a change log can restore states with
//! references to it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::store::spared_folder;
use crate::{ContentError, ContentHash};

/// The spared content of a data folder, possibly none.
#[derive(Debug, Clone)]
pub struct Spared {
    folder: PathBuf,
}

/// A file of spared content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparedFile {
    /// Its hash, which is its name.
    pub hash: ContentHash,
    /// Its length.
    pub bytes: u64,
    /// The time of the loss of its last reference.
    pub since: SystemTime,
}

/// Moves content out of its place, and records the time.
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
    /// The spared content of a data folder.
    pub fn of(data: &Path) -> Self {
        Self {
            folder: spared_folder(data),
        }
    }

    /// Opens a file for reading. Bytes after the content's length are to be ignored.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if it is missing; errors of the disk.
    pub fn read(&self, hash: ContentHash) -> Result<File, ContentError> {
        let path = self.folder.join(hash.to_string());
        File::open(&path).map_err(|error| ContentError::of(&path, error))
    }

    /// Lists all files, oldest first.
    ///
    /// # Errors
    /// Errors of the disk.
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

    /// Removes a file.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn remove(&self, hash: ContentHash) -> Result<(), ContentError> {
        let path = self.folder.join(hash.to_string());
        fs::remove_file(&path).map_err(|error| ContentError::of(&path, error))
    }
}
