//! Content that arrives in one request: complete, or not at all.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::store::{Preallocated, create_file, has_room};
use crate::{ContentError, ContentStore, Pin};

/// The interval of checks for room on the disk if the length is unknown.
const LOOK_BYTES: u64 = 1 << 20;

/// Unfinished content; removed on drop.
#[derive(Debug)]
pub struct Whole {
    store: ContentStore,
    path: PathBuf,
    file: File,
    written: u64,
    room: Preallocated,
    /// The length up to which the disk has room, for content of unknown length.
    looked: u64,
    hasher: blake3::Hasher,
}

impl ContentStore {
    /// Starts content under a name that no upload has; preallocates space on arrival if its length
    /// is known.
    ///
    /// # Errors
    /// [`ContentError::Full`] if there is no room; errors of the disk.
    pub fn create_whole(&self, name: &str, length: Option<u64>) -> Result<Whole, ContentError> {
        let path = self.path_of_upload(name)?;
        let io = |error| ContentError::of(&path, error);
        let file = create_file(&path).map_err(io)?;
        let room = Preallocated::begin(&file, length.unwrap_or_default()).map_err(|error| {
            let _ = fs::remove_file(&path);
            io(error)
        })?;
        Ok(Whole {
            store: self.clone(),
            path,
            file,
            written: 0,
            room,
            looked: length.map_or(0, |_| u64::MAX),
            hasher: blake3::Hasher::new(),
        })
    }
}

impl Whole {
    /// The number of bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        let end = self.written + bytes.len() as u64;
        self.look(end)
            .and_then(|()| self.room.cover(&self.file, end))
            .and_then(|()| self.file.write_all_at(bytes, self.written))
            .map_err(|error| ContentError::of(&self.path, error))?;
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Checks that the disk has room for these bytes, and some of the next ones.
    fn look(&mut self, end: u64) -> io::Result<()> {
        if end > self.looked {
            let ahead = end + LOOK_BYTES;
            has_room(&self.file, ahead - self.written)?;
            self.looked = ahead;
        }
        Ok(())
    }

    /// Links the content to its place, durably.
    ///
    /// # Errors
    /// Errors of the disk or the object store; the content is then lost.
    pub fn finish(self) -> Result<Pin, ContentError> {
        let hash = self.hasher.finalize().into();
        if let Some(objects) = self.store.objects() {
            let placed = objects.put(hash, &self.file, self.written)?;
            return Ok(Pin::of_object(self.store.pins(), hash, placed));
        }
        // More space than needed may have been allocated.
        if self.room.passes(self.written) {
            self.file
                .set_len(self.written)
                .map_err(|error| ContentError::of(&self.path, error))?;
        }
        let pin = self.store.pin(hash)?;
        self.store.place(&self.path, &self.file, &pin)?;
        Ok(pin)
    }
}

impl Drop for Whole {
    /// Finished content has another name by now.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
