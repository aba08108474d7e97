//! An upload of known length that continues at its offset after a crash.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use crate::store::{Preallocated, create_file, sync_both};
use crate::tail::{self, BLANK, Slot, slot_at, with_tail};
use crate::{ContentError, ContentHash, ContentStore, Objects, Pin, decode_slot};

/// The size of reads for hashing existing bytes.
const READ_BYTES: usize = 64 << 10;
/// The alignment of direct writes, in memory and in the file: no disk needs more.
const BLOCK_BYTES: usize = 4096;

fn open_direct(path: &Path) -> Option<File> {
    let mut options = File::options();
    let options = options.write(true).custom_flags(OFlag::O_DIRECT.bits());
    options.open(path).ok()
}

/// Writes the slots' pages once, so that no slot is the first write of its block: each chunk would
/// then need an entry in the file system's journal.
fn blank(file: &File, length: u64) -> io::Result<()> {
    file.write_all_at(&BLANK, slot_at(length, 0))
}

/// Reads the slots of a file for content of this length.
fn slots(file: &File, length: u64) -> io::Result<Vec<Slot>> {
    let mut slots = Vec::with_capacity(2);
    for sequence in 0..2 {
        let mut bytes = [0; tail::READ_BYTES];
        match file.read_exact_at(&mut bytes, slot_at(length, sequence)) {
            Ok(()) => slots.extend(decode_slot(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
    }
    Ok(slots)
}

/// Returns true if a file has a second link: then it is content, and records may refer to it.
fn is_linked(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() > 1)
}

/// Makes bytes of an upload durable elsewhere than in its file.
pub trait Keep: fmt::Debug + Send + Sync {
    /// Makes the bytes of a file within this span durable, after those that are.
    ///
    /// # Errors
    /// [`ContentError::Taken`] if another server has continued the upload; errors of the place where they are stored.
    fn keep(&self, file: &File, span: Range<u64>) -> Result<(), ContentError>;
}

/// A pending upload. Bytes are [appended](Upload::append), and become durable as a chunk when they
/// are [settled](Upload::settle).
#[derive(Debug)]
pub struct Upload {
    store: ContentStore,
    path: PathBuf,
    file: File,
    /// The same file opened for direct writes; `None` if they aren't possible.
    direct: Option<File>,
    room: Preallocated,
    length: u64,
    /// The bytes allowed for now.
    allowed: u64,
    /// The number of written bytes; those after `settled` may still be discarded.
    written: u64,
    hasher: blake3::Hasher,
    settled: u64,
    settled_hasher: blake3::Hasher,
    /// The sequence number of the next slot.
    sequence: u64,
    /// The file's name is durable too.
    is_named: bool,
    /// The file is linked as content, which records may refer to: nothing is written into it.
    is_content: bool,
    /// Makes bytes durable, if the file is an unnamed copy.
    keep: Option<Box<dyn Keep>>,
}

impl ContentStore {
    /// Creates the file of a new upload and preallocates its first stretch. Nothing is durable yet:
    /// [`ContentStore::resume_upload`] creates the file again if a crash loses it.
    ///
    /// # Errors
    /// [`ContentError::Full`] if there is no room; errors of the disk.
    pub fn create_upload(&self, name: &str, length: u64) -> Result<Upload, ContentError> {
        self.create_upload_of(name, length, length)
    }

    /// The same for an upload that may have at most `allowed` of its bytes yet: no more space is
    /// preallocated.
    ///
    /// # Errors
    /// As [`ContentStore::create_upload`].
    pub fn create_upload_of(
        &self,
        name: &str,
        length: u64,
        allowed: u64,
    ) -> Result<Upload, ContentError> {
        let path = self.path_of_upload(name)?;
        let io = |error| ContentError::of(&path, error);
        let file = create_file(&path).map_err(io)?;
        let begun = Preallocated::begin(&file, allowed)
            .and_then(|room| blank(&file, length).map(|()| room));
        let room = begun.map_err(|error| {
            let _ = fs::remove_file(&path);
            io(error)
        })?;
        let direct = open_direct(&path);
        let mut upload = Upload::new(self.clone(), path, (file, direct, room), length);
        upload.allow(allowed);
        Ok(upload)
    }

    /// Opens an upload after a crash or a clean stop, at the last settled offset. Reads all of its
    /// bytes.
    ///
    /// A finished upload shares its file with the content. If it can't be proved complete any more,
    /// it starts again in a new file: records may refer to the content by now.
    ///
    /// # Errors
    /// As [`ContentStore::create_upload`].
    pub fn resume_upload(&self, name: &str, length: u64) -> Result<Upload, ContentError> {
        self.resume_upload_of(name, length, length)
    }

    /// The same for an upload that may have at most `allowed` of its bytes yet.
    ///
    /// # Errors
    /// As [`ContentStore::create_upload`].
    pub fn resume_upload_of(
        &self,
        name: &str,
        length: u64,
        allowed: u64,
    ) -> Result<Upload, ContentError> {
        let path = self.path_of_upload(name)?;
        let io = |error| ContentError::of(&path, error);
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.create_upload_of(name, length, allowed);
            }
            Err(error) => return Err(io(error)),
        };
        let is_content = is_linked(&file).map_err(io)?;
        // It is longer if a crash preceded the cut to a deferred length.
        if !is_content && file.metadata().map_err(io)?.len() != with_tail(length) {
            file.set_len(with_tail(length)).map_err(io)?;
        }
        // Until the offset is known; content needs no space.
        let room = Preallocated::none(length);
        let file = (file, open_direct(&path), room);
        let mut upload = Upload::new(self.clone(), path.clone(), file, length);
        upload.recover().map_err(io)?;
        if !is_content {
            upload.room = Preallocated::resume(upload.settled, allowed);
        }
        if is_content && upload.settled < length {
            fs::remove_file(&path).map_err(io)?;
            return self.create_upload_of(name, length, allowed);
        }
        upload.is_content = is_content;
        upload.allow(allowed);
        Ok(upload)
    }

    /// Creates an empty copy of an upload whose bytes are durable elsewhere, in an unnamed file.
    ///
    /// # Errors
    /// As [`ContentStore::create_upload`].
    pub fn create_copy(
        &self,
        (length, allowed): (u64, u64),
        keep: Box<dyn Keep>,
    ) -> Result<Upload, ContentError> {
        let folder = self.uploads();
        let io = |error| ContentError::of(folder, error);
        let file = tempfile::tempfile_in(folder).map_err(io)?;
        let room = Preallocated::begin(&file, allowed).map_err(io)?;
        // An unnamed file can't be opened again.
        let mut upload = Upload::new(self.clone(), folder.to_owned(), (file, None, room), length);
        upload.keep = Some(keep);
        upload.allow(allowed);
        Ok(upload)
    }

    /// Removes the file of an upload, if it exists.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn remove_upload(&self, name: &str) -> Result<(), ContentError> {
        let path = self.path_of_upload(name)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ContentError::of(&path, error))
            }
            _ => Ok(()),
        }
    }
}

impl Upload {
    /// The file descriptors that each open upload uses.
    pub const DESCRIPTORS: usize = 2;

    fn new(
        store: ContentStore,
        path: PathBuf,
        (file, direct, room): (File, Option<File>, Preallocated),
        length: u64,
    ) -> Self {
        Self {
            store,
            path,
            file,
            direct,
            room,
            length,
            allowed: length,
            written: 0,
            hasher: blake3::Hasher::new(),
            settled: 0,
            settled_hasher: blake3::Hasher::new(),
            sequence: 0,
            is_named: false,
            is_content: false,
            keep: None,
        }
    }

    /// The final length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes allowed for now.
    pub fn allowed(&self) -> u64 {
        self.allowed
    }

    /// The number of durable bytes.
    pub fn offset(&self) -> u64 {
        self.settled
    }

    /// The number of written bytes, durable or not.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns true if its file is linked as content, even if [finishing](Upload::finish) it failed
    /// after that. Such an upload accepts no more bytes: drop it and resume it.
    pub fn is_content(&self) -> bool {
        self.is_content
    }

    /// Returns true if no other process has changed its file since.
    pub fn is_current(&self) -> bool {
        if self.keep.is_some() {
            return true;
        }
        let last = self.sequence.checked_sub(1);
        let is_same = || {
            let (there, own) = (fs::metadata(&self.path)?, self.file.metadata()?);
            let is_it = (there.dev(), there.ino()) == (own.dev(), own.ino());
            let is_content = is_linked(&self.file)?;
            let slots = slots(&self.file, self.length)?;
            let newest = slots.iter().map(|slot| slot.sequence).max();
            Ok::<_, io::Error>(is_it && is_content == self.is_content && newest == last)
        };
        // If that is unknown, the file is read again.
        is_same().unwrap_or_default()
    }

    /// Sets the number of bytes allowed until further notice.
    pub fn allow(&mut self, bytes: u64) {
        self.allowed = bytes.min(self.length);
        self.room.limit(self.allowed);
    }

    /// Durably prepares the file for another length: the settled offset can then be found at the new tail and
    /// at the present one. After recording the new length, the caller cuts the file [to it](Upload::truncate).
    ///
    /// # Errors
    /// [`ContentError::TooLong`] if it has more bytes, or was laid out for fewer; errors of the disk.
    pub fn reserve(&mut self, length: u64) -> Result<(), ContentError> {
        if length < self.settled || length > self.length || self.is_content {
            return Err(ContentError::TooLong);
        }
        self.discard();
        if self.keep.is_some() {
            return Ok(());
        }
        if slot_at(length, 0) == slot_at(self.length, 0) {
            return self.settle();
        }
        // The first page of one tail is never a page of the other, unless both are the same.
        let slot = Slot {
            sequence: self.sequence.next_multiple_of(2),
            ..self.slot()
        };
        let written = self
            .file
            .write_all_at(&slot.encode(), slot_at(length, slot.sequence));
        written.map_err(|error| ContentError::of(&self.path, error))?;
        sync_both((&self.path, &self.file), self.store.uploads())?;
        self.is_named = true;
        Ok(())
    }

    /// Switches to a length that the file was laid out for.
    ///
    /// # Errors
    /// Errors of the disk. Drop the upload and resume it then.
    pub fn truncate(&mut self, length: u64) -> Result<(), ContentError> {
        let io = |error| ContentError::of(&self.path, error);
        if self.keep.is_none() {
            self.file.set_len(with_tail(length)).map_err(io)?;
        }
        self.room = Preallocated::resume(self.settled, length);
        (self.length, self.allowed) = (length, length);
        // After the slot that was written for it.
        self.sequence = self.sequence.next_multiple_of(2) + 1;
        Ok(())
    }

    /// Appends the bytes of another upload.
    ///
    /// # Errors
    /// As [`Upload::append`].
    pub fn append_all_of(&mut self, other: &Self) -> Result<(), ContentError> {
        let mut buffer = vec![0; READ_BYTES];
        let mut at = 0;
        while at < other.settled {
            let rest = usize::try_from(other.settled - at).unwrap_or(usize::MAX);
            let part = &mut buffer[..rest.min(READ_BYTES)];
            let read = other.file.read_exact_at(part, at);
            read.map_err(|error| ContentError::of(&other.path, error))?;
            self.append(part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Appends bytes that are durable elsewhere already.
    ///
    /// # Errors
    /// As [`Upload::append`].
    pub fn take_over(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        self.append(bytes)?;
        self.note_settled();
        Ok(())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`ContentError::TooLong`] if there are too many; errors of the disk. Then discard, or
    /// continue from [`Upload::offset`].
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        if bytes.len() as u64 > self.allowed.saturating_sub(self.written) {
            return Err(ContentError::TooLong);
        }
        if self.is_content && !bytes.is_empty() {
            let source = io::Error::other("it is content already");
            return Err(ContentError::of(&self.path, source));
        }
        self.room
            .cover(&self.file, self.written + bytes.len() as u64)
            .map_err(|error| ContentError::of(&self.path, error))?;
        let past = self.write_direct(bytes);
        self.file
            .write_all_at(&bytes[past..], self.written + past as u64)
            .map_err(|error| ContentError::of(&self.path, error))?;
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes whole aligned blocks directly to the disk: bytes that are synced at once gain nothing
    /// from a copy in the page cache. Returns the number of bytes written; the rest, or all if that
    /// isn't possible, is left to the cache.
    fn write_direct(&mut self, bytes: &[u8]) -> usize {
        let whole = bytes.len() - bytes.len() % BLOCK_BYTES;
        let lies_well = bytes.as_ptr().align_offset(BLOCK_BYTES) == 0
            && self.written.is_multiple_of(BLOCK_BYTES as u64);
        let Some(direct) = self.direct.as_ref().filter(|_| whole > 0 && lies_well) else {
            return 0;
        };
        match direct.write_all_at(&bytes[..whole], self.written) {
            Ok(()) => whole,
            // Some file systems fail only now; a full disk fails again.
            Err(_) => {
                self.direct = None;
                0
            }
        }
    }

    /// Discards the bytes appended since the last settling.
    pub fn discard(&mut self) {
        self.written = self.settled;
        self.hasher = self.settled_hasher.clone();
    }

    /// Makes all appended bytes durable, with one sync.
    ///
    /// # Errors
    /// Errors of the disk, or of [`Keep::keep`]. What is durable is unknown then: drop the upload and resume it.
    pub fn settle(&mut self) -> Result<(), ContentError> {
        if let Some(keep) = &self.keep {
            keep.keep(&self.file, self.settled..self.written)?;
            self.note_settled();
            return Ok(());
        }
        self.write_slot()?;
        if self.is_named {
            let synced = self.file.sync_data();
            synced.map_err(|error| ContentError::of(&self.path, error))?;
        } else {
            sync_both((&self.path, &self.file), self.store.uploads())?;
            self.is_named = true;
        }
        self.note_settled();
        Ok(())
    }

    /// Links the complete content to its place and makes it durable, with all appended bytes. The
    /// upload's own file stays until it is [retired](Upload::compact), so that a crash before the
    /// commit of the content's record loses nothing.
    ///
    /// # Errors
    /// As [`Upload::settle`]; the upload must be complete.
    pub fn finish(&mut self) -> Result<Pin, ContentError> {
        debug_assert_eq!(self.written, self.length, "only whole content is finished");
        if let Some(objects) = self.store.objects().cloned() {
            return self.finish_in(&*objects);
        }
        if !self.is_content {
            self.write_slot()?;
        }
        let pin = self.store.pin(self.hasher.finalize().into())?;
        let placed = self.store.place(&self.path, &self.file, &pin);
        // Even if it failed after the link. If unknown, it counts as content.
        self.is_content |= is_linked(&self.file).unwrap_or(true);
        placed?;
        self.note_settled();
        Ok(pin)
    }

    /// The same for content in objects. The upload keeps its bytes until it is retired, so they
    /// must be durable here, too: its offset then covers all of them.
    fn finish_in(&mut self, objects: &dyn Objects) -> Result<Pin, ContentError> {
        // A copy's last chunk isn't put twice: if it can't be put as content, it is not acknowledged.
        if self.settled < self.length && self.keep.is_none() {
            self.settle()?;
        }
        let hash = self.hasher.finalize().into();
        let placed = objects.put(hash, &self.file, self.length)?;
        Ok(Pin::of_object(self.store.pins(), hash, placed))
    }

    /// Ends a finished upload whose content has a record: removes its file, and cuts the tail off
    /// the content. Neither must be durable: the sweep completes it after a crash.
    pub fn compact(self) {
        if self.keep.is_some() {
            return;
        }
        let _ = fs::remove_file(&self.path);
        let _ = self.file.set_len(self.length);
    }

    /// Returns the slot that proves the written bytes.
    fn slot(&self) -> Slot {
        Slot {
            sequence: self.sequence,
            offset: self.written,
            hash: self.hasher.finalize().into(),
        }
    }

    fn write_slot(&mut self) -> Result<(), ContentError> {
        let slot = self.slot().encode();
        self.file
            .write_all_at(&slot, slot_at(self.length, self.sequence))
            .map_err(|error| ContentError::of(&self.path, error))
    }

    fn note_settled(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
        self.settled = self.written;
        self.settled_hasher = self.hasher.clone();
    }

    /// Moves to the largest offset that a slot proves.
    fn recover(&mut self) -> io::Result<()> {
        let mut slots = slots(&self.file, self.length)?;
        slots.retain(|slot| slot.offset <= self.length);
        slots.sort_by_key(|slot| (slot.offset, slot.sequence));
        for slot in &slots {
            self.hash_to(slot.offset)?;
            if ContentHash::from(self.hasher.finalize()) == slot.hash {
                self.settled = slot.offset;
                self.settled_hasher = self.hasher.clone();
                // The next one overwrites the other slot, which proves less or nothing.
                self.sequence = slot.sequence.wrapping_add(1);
            }
        }
        self.discard();
        // A process that was killed before its sync may have written these bytes.
        self.file.sync_data()
    }

    fn hash_to(&mut self, offset: u64) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        while self.written < offset {
            let rest = usize::try_from(offset - self.written).unwrap_or(usize::MAX);
            let part = &mut buffer[..rest.min(READ_BYTES)];
            self.file.read_exact_at(part, self.written)?;
            self.hasher.update(part);
            self.written += part.len() as u64;
        }
        Ok(())
    }
}
