//! Content that comes in one piece: whole, or not at all.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::store::{Preallocated, create_file, has_room};
use crate::{ContentError, ContentStore, Pin};

/// Whether the disk has room is looked at each time that so many bytes more are there, where nobody says how many come.
const LOOK_BYTES: u64 = 1 << 20;

/// Content under way; gone if it is dropped before it is finished.
#[derive(Debug)]
pub struct Whole {
    store: ContentStore,
    path: PathBuf,
    file: File,
    written: u64,
    room: Preallocated,
    /// Up to where the disk has room, of content that doesn't say how long it is.
    looked: u64,
    hasher: blake3::Hasher,
}

impl ContentStore {
    /// Begins content under a name that no upload has; takes room as it comes in where its length
    /// is known.
    ///
    /// # Errors
    /// [`ContentError::Full`] if there is no room; else the disk's.
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
    /// The bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes bytes behind those that are there.
    ///
    /// # Errors
    /// The disk's.
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

    /// Has a disk with room for these bytes, and those of the next ones that are soon there.
    fn look(&mut self, end: u64) -> io::Result<()> {
        if end > self.looked {
            let ahead = end + LOOK_BYTES;
            has_room(&self.file, ahead - self.written)?;
            self.looked = ahead;
        }
        Ok(())
    }

    /// Puts the content in its place, durable.
    ///
    /// # Errors
    /// The disk's, or the object store's; then the content is gone.
    pub fn finish(self) -> Result<Pin, ContentError> {
        let hash = self.hasher.finalize().into();
        if let Some(objects) = self.store.objects() {
            let placed = objects.put(hash, &self.file, self.written)?;
            return Ok(Pin::of_object(self.store.pins(), hash, placed));
        }
        // Room may have been taken for more than came.
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
    /// The content, if it was finished, has another name by now.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
