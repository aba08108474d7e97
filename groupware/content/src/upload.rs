//! An upload whose length is known and that goes on where it was after a crash.

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

/// Bytes that are read at once to hash what is there.
const READ_BYTES: usize = 64 << 10;
/// What a write that passes the page cache by must be a multiple of, in memory and in the file: no disk
/// asks for more.
const BLOCK_BYTES: usize = 4096;

fn open_direct(path: &Path) -> Option<File> {
    let mut options = File::options();
    let options = options.write(true).custom_flags(OFlag::O_DIRECT.bits());
    options.open(path).ok()
}

/// Writes the slots' pages once, so that no slot is the first to use its block: that would have to be
/// noted in the file system's journal, at every chunk.
fn blank(file: &File, length: u64) -> io::Result<()> {
    file.write_all_at(&BLANK, slot_at(length, 0))
}

/// The slots that are in a file for content of this length.
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

/// Whether a file has another name than the upload's: then it is content, and others may refer to it.
fn is_linked(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() > 1)
}

/// Makes bytes of an upload durable elsewhere than in its file.
pub trait Keep: fmt::Debug + Send + Sync {
    /// Makes the bytes of a file within this span durable, behind those that are.
    ///
    /// # Errors
    /// [`ContentError::Taken`] if another server has gone on with the upload; those of the place where they are kept.
    fn keep(&self, file: &File, span: Range<u64>) -> Result<(), ContentError>;
}

/// Content under way. Bytes are [appended](Upload::append), and become durable when they are
/// [settled](Upload::settle), as a chunk.
#[derive(Debug)]
pub struct Upload {
    store: ContentStore,
    path: PathBuf,
    file: File,
    /// The same file, for writes that pass the page cache by; `None` where it can't be done.
    direct: Option<File>,
    room: Preallocated,
    length: u64,
    /// It may have so many of them for now.
    allowed: u64,
    /// So much is written; behind `settled`, it may still be discarded.
    written: u64,
    hasher: blake3::Hasher,
    settled: u64,
    settled_hasher: blake3::Hasher,
    /// Of the next slot.
    sequence: u64,
    /// The file's name is durable too.
    is_named: bool,
    /// The file has its place as content, which others may refer to: nothing is written into it.
    is_content: bool,
    /// What makes bytes durable, where the file has no name and is but a copy.
    keep: Option<Box<dyn Keep>>,
}

impl ContentStore {
    /// Makes the file of a new upload and takes room for what comes first. Nothing is durable yet: the
    /// file of an upload that a crash has lost is made again by [`ContentStore::resume_upload`].
    ///
    /// # Errors
    /// [`ContentError::Full`] if there is no room; else the disk's.
    pub fn create_upload(&self, name: &str, length: u64) -> Result<Upload, ContentError> {
        self.create_upload_of(name, length, length)
    }

    /// The same for an upload that may have no more than `allowed` of its bytes yet: no room is taken
    /// beyond them.
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

    /// Opens an upload as a crash, or an orderly end, has left it: at the last offset that was
    /// settled. All that is there is read.
    ///
    /// An upload that was finished shares its file with the content. If it can't be proved whole any
    /// more, it begins anew in a file of its own: others may refer to the content by now.
    ///
    /// # Errors
    /// As [`ContentStore::create_upload`].
    pub fn resume_upload(&self, name: &str, length: u64) -> Result<Upload, ContentError> {
        self.resume_upload_of(name, length, length)
    }

    /// The same for an upload that may have no more than `allowed` of its bytes yet.
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
        // It is longer where a crash came before it was cut to a length that was told late.
        if !is_content && file.metadata().map_err(io)?.len() != with_tail(length) {
            file.set_len(with_tail(length)).map_err(io)?;
        }
        // Until it is known what has come in; content has all that it needs.
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

    /// Makes an empty copy of an upload whose bytes are durable elsewhere, in a file without a name.
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
        // A file without a name can't be opened once more.
        let mut upload = Upload::new(self.clone(), folder.to_owned(), (file, None, room), length);
        upload.keep = Some(keep);
        upload.allow(allowed);
        Ok(upload)
    }

    /// Removes the file of an upload, if there is one.
    ///
    /// # Errors
    /// The disk's.
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
    /// The descriptors that each takes as long as it is open.
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

    /// The bytes that it will have.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes that it may have for now.
    pub fn allowed(&self) -> u64 {
        self.allowed
    }

    /// The bytes that are durable.
    pub fn offset(&self) -> u64 {
        self.settled
    }

    /// The bytes that are written, durable or not.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether its file has its place as content, also if [finishing](Upload::finish) it failed after
    /// that. Such an upload takes no more bytes: drop it and resume it.
    pub fn is_content(&self) -> bool {
        self.is_content
    }

    /// Whether its file is as this left it: no other process has worked on it since.
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
        // What can't be told is read anew.
        is_same().unwrap_or_default()
    }

    /// Lets it have no more than so many bytes until further notice.
    pub fn allow(&mut self, bytes: u64) {
        self.allowed = bytes.min(self.length);
        self.room.limit(self.allowed);
    }

    /// Prepares the file for another length, durably: what is settled can be found where it will lie then,
    /// and where it lies now. Whoever has noted the new length cuts the file [to it](Upload::cut_to).
    ///
    /// # Errors
    /// [`ContentError::TooLong`] if it has more bytes, or was laid out for fewer; the disk's.
    pub fn lay_out(&mut self, length: u64) -> Result<(), ContentError> {
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
        // The first page of the one tail is never a page of the other, unless both are the same.
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

    /// Goes on with a length that the file was laid out for.
    ///
    /// # Errors
    /// The disk's. Drop the upload and resume it then.
    pub fn cut_to(&mut self, length: u64) -> Result<(), ContentError> {
        let io = |error| ContentError::of(&self.path, error);
        if self.keep.is_none() {
            self.file.set_len(with_tail(length)).map_err(io)?;
        }
        self.room = Preallocated::resume(self.settled, length);
        (self.length, self.allowed) = (length, length);
        // Behind the one that was written for it.
        self.sequence = self.sequence.next_multiple_of(2) + 1;
        Ok(())
    }

    /// Writes what another upload has behind what is there.
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

    /// Takes bytes over that are durable elsewhere already.
    ///
    /// # Errors
    /// As [`Upload::append`].
    pub fn take_over(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        self.append(bytes)?;
        self.note_settled();
        Ok(())
    }

    /// Writes bytes behind those that are there.
    ///
    /// # Errors
    /// [`ContentError::TooLong`] if there are too many; the disk's. Then discard or go on from
    /// [`Upload::offset`].
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

    /// Writes whole blocks straight to the disk, where they lie as that asks for: what is synced
    /// within the same breath gains nothing by being copied into the page cache first. How many bytes
    /// were written; the rest, or all where it can't be done, is left to the cache.
    fn write_direct(&mut self, bytes: &[u8]) -> usize {
        let whole = bytes.len() - bytes.len() % BLOCK_BYTES;
        let lies_well = bytes.as_ptr().align_offset(BLOCK_BYTES) == 0
            && self.written.is_multiple_of(BLOCK_BYTES as u64);
        let Some(direct) = self.direct.as_ref().filter(|_| whole > 0 && lies_well) else {
            return 0;
        };
        match direct.write_all_at(&bytes[..whole], self.written) {
            Ok(()) => whole,
            // Some file systems only say so now; a full disk says it again.
            Err(_) => {
                self.direct = None;
                0
            }
        }
    }

    /// Forgets the bytes that were appended since the last settling.
    pub fn discard(&mut self) {
        self.written = self.settled;
        self.hasher = self.settled_hasher.clone();
    }

    /// Makes all that was appended durable, with one sync.
    ///
    /// # Errors
    /// The disk's, or those of [`Keep::keep`]. What is durable is unknown then: drop the upload and resume it.
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

    /// Puts the whole content in its place, durable, with all that was appended. The upload's own
    /// file stays until it is [retired](Upload::retire), so that a crash before the record that
    /// refers to the content is committed loses nothing.
    ///
    /// # Errors
    /// As [`Upload::settle`]; the upload must be whole.
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
        // Also where it failed behind the link. What can't be told is taken for content.
        self.is_content |= is_linked(&self.file).unwrap_or(true);
        placed?;
        self.note_settled();
        Ok(pin)
    }

    /// The same where content lies in objects. The upload keeps its bytes until it is retired, so they are to be
    /// durable here, too: whoever asks for its offset is told that all have come.
    fn finish_in(&mut self, objects: &dyn Objects) -> Result<Pin, ContentError> {
        // A copy's last chunk isn't put twice: where it can't be put as content, it is not acknowledged.
        if self.settled < self.length && self.keep.is_none() {
            self.settle()?;
        }
        let hash = self.hasher.finalize().into();
        let placed = objects.put(hash, &self.file, self.length)?;
        Ok(Pin::of_object(self.store.pins(), hash, placed))
    }

    /// Ends a finished upload whose content is referred to: removes its file, and cuts the tail off
    /// the content. Neither needs to be durable: the sweep makes up for what a crash leaves.
    pub fn retire(self) {
        if self.keep.is_some() {
            return;
        }
        let _ = fs::remove_file(&self.path);
        let _ = self.file.set_len(self.length);
    }

    /// What proves what is written so far.
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

    /// Goes to the largest offset that a slot can prove.
    fn recover(&mut self) -> io::Result<()> {
        let mut slots = slots(&self.file, self.length)?;
        slots.retain(|slot| slot.offset <= self.length);
        slots.sort_by_key(|slot| (slot.offset, slot.sequence));
        for slot in &slots {
            self.hash_to(slot.offset)?;
            if ContentHash::from(self.hasher.finalize()) == slot.hash {
                self.settled = slot.offset;
                self.settled_hasher = self.hasher.clone();
                // The next one goes where the other is, which proves less or nothing.
                self.sequence = slot.sequence.wrapping_add(1);
            }
        }
        self.discard();
        // What is there may have been written by a process that was killed before it synced.
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
