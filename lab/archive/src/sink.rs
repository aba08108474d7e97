//! Durable writing: buffered files that count their bytes and sync, and atomic publication.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::ArchiveError;

/// A file being written: buffered, counted, and synced at its end.
#[derive(Debug)]
pub(crate) struct Sink {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl Sink {
    pub(crate) fn create(path: PathBuf) -> Result<Self, ArchiveError> {
        let file = File::create(&path).map_err(ArchiveError::write(&path))?;
        Ok(Self {
            path,
            file: BufWriter::with_capacity(1 << 16, file),
            bytes: 0,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.file
            .write_all(bytes)
            .map_err(ArchiveError::write(&self.path))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Hands buffered bytes to the system, so that a full disk is noticed now.
    pub(crate) fn flush(&mut self) -> Result<(), ArchiveError> {
        self.file.flush().map_err(ArchiveError::write(&self.path))
    }

    /// Flushes and syncs; returns the size.
    pub(crate) fn seal(mut self) -> Result<u64, ArchiveError> {
        self.flush()?;
        self.file
            .get_ref()
            .sync_all()
            .map_err(ArchiveError::write(&self.path))?;
        Ok(self.bytes)
    }
}

/// Writes a whole file under a temporary name, syncs it, and renames it.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let mut sink = Sink::create(temporary.clone())?;
    sink.put(bytes)?;
    sink.seal()?;
    rename(&temporary, path)
}

/// Renames and syncs the folder that holds the new name.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    fs::rename(from, to).map_err(ArchiveError::write(to))?;
    to.parent().map_or(Ok(()), sync_folder)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(dir: &Path) -> Result<(), ArchiveError> {
    File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(ArchiveError::write(dir))
}

/// Creates a folder and its parents, with durable names; existing folders are no error.
pub(crate) fn folder(dir: &Path) -> Result<(), ArchiveError> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|at| !at.exists()).collect();
    fs::create_dir_all(dir).map_err(ArchiveError::write(dir))?;
    for made in missing.iter().rev() {
        let above = made.parent().unwrap_or(Path::new(""));
        // A relative path starts in the working directory.
        let here = above.as_os_str().is_empty();
        sync_folder(if here { Path::new(".") } else { above })?;
    }
    Ok(())
}

/// Removes a folder and its content; a missing folder is no error.
pub(crate) fn remove_folder(dir: &Path) -> Result<(), ArchiveError> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ArchiveError::write(dir)(e)),
        _ => Ok(()),
    }
}
