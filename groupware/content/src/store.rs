//! The folders of content, and how files are stored in them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::pins::{Pin, SharedPins};
use crate::process_locks::ProcessLocks;
use crate::scratch::Scratch;
use crate::tail::with_tail;
use crate::{Content, ContentError, ContentHash, Objects, Segments};

/// The size of reads for hashing a file, in bytes.
const READ_BYTES: usize = 64 << 10;
/// The amount of space preallocated beyond the received bytes.
const AHEAD_BYTES: u64 = 64 << 20;
/// The space that content must leave on the disk; on a small disk, this part of it: removals on a
/// full disk need space for their records first.
const LEFT_BYTES: u64 = 128 << 20;
const LEFT_PART: u64 = 4;
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The longest name of an upload.
const NAME_BYTES: usize = 64;

/// A store of content. Clones are handles of the same store.
#[derive(Debug, Clone)]
pub struct ContentStore {
    inner: Arc<Inner>,
    /// The store of completed content, if not files.
    objects: Option<Arc<dyn Objects>>,
    /// The store of pending uploads, if not files.
    segments: Option<Arc<dyn Segments>>,
}

#[derive(Debug)]
struct Inner {
    content: PathBuf,
    uploads: PathBuf,
    pins: SharedPins,
    /// The locks between this process and others that use the folder.
    among: Option<ProcessLocks>,
    /// The folder for spared content, if unreferenced content is kept for a while.
    spared: Option<PathBuf>,
    /// Removed with the last handle.
    _scratch: Option<Scratch>,
}

/// The result of checking content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The content is correct.
    Whole,
    /// The content is missing.
    Nothing,
    /// The file has another length, or other bytes.
    Damaged,
}

impl ContentStore {
    /// Opens the store in `folder`, which is created if it is missing, within an existing one. Only
    /// the user of this process can read it. The caller must ensure that no other process uses it.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn open(folder: &Path) -> Result<Self, ContentError> {
        Self::open_with(folder, (None, false), false)
    }

    /// The same if other processes open it, too, all by this function.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn open_shared(folder: &Path) -> Result<Self, ContentError> {
        Self::open_with(folder, (None, true), false)
    }

    /// The same; unreferenced content is [spared](crate::Spared) until it is removed there.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn open_sparing(folder: &Path) -> Result<Self, ContentError> {
        Self::open_with(folder, (None, false), true)
    }

    /// Opens a store in a new temporary folder, removed with the last handle. Also removes the
    /// folders of killed processes.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn scratch() -> Result<Self, ContentError> {
        let among = std::env::temp_dir();
        let scratch = Scratch::make(&among).map_err(|error| ContentError::of(&among, error))?;
        let folder = scratch.path().to_path_buf();
        Self::open_with(&folder, (Some(scratch), false), false)
    }

    fn open_with(
        folder: &Path,
        (scratch, is_shared): (Option<Scratch>, bool),
        is_sparing: bool,
    ) -> Result<Self, ContentError> {
        let (content, uploads) = (folder.join("content"), folder.join("uploads"));
        let io = |error| ContentError::of(folder, error);
        make_folder(folder).map_err(io)?;
        // Only their owner can enter these two: no other user can read a file below them.
        for folder in [&content, &uploads] {
            make_folder(folder).map_err(io)?;
            narrow(folder).map_err(io)?;
        }
        for byte in 0..=u8::MAX {
            make_folder(&content.join(format!("{byte:02x}"))).map_err(io)?;
        }
        let spared = is_sparing.then(|| spared_folder(folder));
        if let Some(spared) = &spared {
            make_folder(spared).map_err(io)?;
            narrow(spared).map_err(io)?;
        }
        let among = is_shared.then(|| ProcessLocks::open(folder.join("content.claims")));
        let among = among.transpose().map_err(io)?;
        // Their creator may have crashed before this.
        sync_folder(&content)?;
        sync_folder(folder)?;
        Ok(Self {
            inner: Arc::new(Inner {
                content,
                uploads,
                pins: SharedPins::default(),
                among,
                spared,
                _scratch: scratch,
            }),
            objects: None,
            segments: None,
        })
    }

    /// Returns the store with an object store for completed content.
    #[must_use]
    pub fn with_objects(self, objects: Arc<dyn Objects>) -> Self {
        Self {
            objects: Some(objects),
            ..self
        }
    }

    /// Returns the store with pending uploads in an object store shared by other servers.
    #[must_use]
    pub fn with_segments(self, segments: Arc<dyn Segments>) -> Self {
        Self {
            segments: Some(segments),
            ..self
        }
    }

    /// The store of pending uploads, if not files.
    pub fn segments(&self) -> Option<&Arc<dyn Segments>> {
        self.segments.as_ref()
    }

    /// The object store, if there is one.
    pub fn objects(&self) -> Option<&Arc<dyn Objects>> {
        self.objects.as_ref()
    }

    /// A private folder on its disk, for unnamed files.
    pub fn folder(&self) -> &Path {
        &self.inner.uploads
    }

    /// Starts to read this many bytes of content from `at` on, wherever it is stored.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if it is missing; errors of the object store or the disk.
    pub fn content(
        &self,
        hash: ContentHash,
        (at, bytes): (u64, u64),
    ) -> Result<Content, ContentError> {
        if let Some(objects) = &self.objects
            && let Some(object) = objects.read(hash, (at, bytes))?
        {
            return Ok(Content::Object(object));
        }
        self.read(hash).map(Content::File)
    }

    /// Opens content in a file for reading. Bytes after the content's length are to be ignored:
    /// they are the tail of its upload, left by a crash.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if it is missing; errors of the disk.
    pub fn read(&self, hash: ContentHash) -> Result<File, ContentError> {
        let path = self.path_of(hash);
        File::open(&path).map_err(|error| ContentError::of(&path, error))
    }

    /// Checks that content exists and is correct to the last byte.
    ///
    /// # Errors
    /// If the disk can't read it.
    pub fn verify(&self, hash: ContentHash, bytes: u64) -> Result<Found, ContentError> {
        let path = self.path_of(hash);
        if let Some(objects) = &self.objects {
            match objects.read(hash, (0, bytes)) {
                Ok(None) => {}
                Ok(Some(object)) => {
                    let reader = Content::Object(object).reader(bytes);
                    let is_right = has_hash(reader, hash);
                    return match is_right.map_err(|error| ContentError::of(&path, error))? {
                        true => Ok(Found::Whole),
                        false => Ok(Found::Damaged),
                    };
                }
                Err(ContentError::Missing { .. }) => return Ok(Found::Nothing),
                Err(error) => return Err(error),
            }
        }
        match File::open(&path).and_then(|file| is_whole(file, hash, bytes)) {
            Ok(true) => Ok(Found::Whole),
            Ok(false) => Ok(Found::Damaged),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(ContentError::of(&path, error)),
        }
    }

    /// Returns true if any content is stored in files here.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn has_any(&self) -> Result<bool, ContentError> {
        for first in 0..=u8::MAX {
            let folder = self.folder_of(first);
            let mut files =
                fs::read_dir(&folder).map_err(|error| ContentError::of(&folder, error))?;
            if files.next().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if a file of this name and length exists; its bytes are not read.
    pub fn has(&self, hash: ContentHash, bytes: u64) -> bool {
        let found = fs::metadata(self.path_of(hash));
        found.is_ok_and(|found| found.len() == bytes)
    }

    /// Protects content, stored or not, from sweeps until the pin is dropped.
    ///
    /// # Errors
    /// Errors of the disk, if other processes sweep, too.
    pub fn pin(&self, hash: ContentHash) -> Result<Pin, ContentError> {
        let first = hash.as_bytes()[0];
        let elsewhere = self.among().map(|among| among.pin(first)).transpose();
        let elsewhere = elsewhere.map_err(|error| ContentError::of(&self.path_of(hash), error))?;
        Ok(Pin::new(&self.inner.pins, hash, elsewhere))
    }

    pub(crate) fn among(&self) -> Option<&ProcessLocks> {
        self.inner.among.as_ref()
    }

    pub(crate) fn pins(&self) -> &SharedPins {
        &self.inner.pins
    }

    pub(crate) fn spared(&self) -> Option<&Path> {
        self.inner.spared.as_deref()
    }

    pub(crate) fn folder_of(&self, first: u8) -> PathBuf {
        self.inner.content.join(format!("{first:02x}"))
    }

    pub(crate) fn path_of(&self, hash: ContentHash) -> PathBuf {
        let text = hash.to_string();
        self.folder_of(hash.as_bytes()[0]).join(&text[2..])
    }

    pub(crate) fn uploads(&self) -> &Path {
        &self.inner.uploads
    }

    /// Returns the file of an upload. No name from a client can lead to another folder.
    pub(crate) fn path_of_upload(&self, name: &str) -> Result<PathBuf, ContentError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !(1..=NAME_BYTES).contains(&name.len()) || !name.bytes().all(is_plain) {
            return Err(ContentError::BadName);
        }
        Ok(self.inner.uploads.join(name))
    }

    /// Makes a complete file durable and links it to its place, under a pin; the file also keeps
    /// its present name.
    ///
    /// The link comes first, so that one sync of the file and one of the folder suffice for both. A
    /// crash in between can leave a name with wrong bytes, without references. So an existing file
    /// is never trusted, but replaced. It isn't read either: the duration would reveal to the
    /// sender whether the content exists already.
    pub(crate) fn place(&self, from: &Path, file: &File, pin: &Pin) -> Result<(), ContentError> {
        let target = self.path_of(pin.hash());
        let folder = self.folder_of(pin.hash().as_bytes()[0]);
        match fs::hard_link(from, &target) {
            Ok(()) => sync_both((from, file), &folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Other records may refer to the existing file: only a durable file may replace it.
                let synced = file.sync_data();
                synced.map_err(|error| ContentError::of(from, error))?;
                let replaced = self.replace(from, &target);
                replaced.map_err(|error| ContentError::of(&target, error))?;
                sync_folder(&folder)
            }
            Err(error) => Err(ContentError::of(&target, error)),
        }
    }

    /// Links a name to this file, replacing another file.
    fn replace(&self, from: &Path, target: &Path) -> io::Result<()> {
        let name = from.file_name().unwrap_or_default();
        // If a crash leaves it, the sweep removes it like an upload without a record.
        let again = self.uploads().join(format!("{}-again", name.display()));
        match fs::remove_file(&again) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::hard_link(from, &again)?;
        fs::rename(&again, target)?;
        // A rename between two names of one file does nothing.
        match fs::remove_file(&again) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns the folder of a data folder's spared content.
pub(crate) fn spared_folder(folder: &Path) -> PathBuf {
    folder.join("spared")
}

/// Creates a folder that only the user of this process may enter, if it is missing.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    match builder.mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Restricts the mode of a folder that an earlier version created. Another user's folder keeps its
/// mode.
fn narrow(folder: &Path) -> io::Result<()> {
    let narrow = fs::Permissions::from_mode(FOLDER_MODE);
    match fs::set_permissions(folder, narrow) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

/// Creates a file that only the user of this process may read.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.create_new(true).read(true).write(true);
    options.mode(FILE_MODE).open(path)
}

/// Returns true if a file has exactly the content of this hash, optionally followed by the tail of
/// an upload.
fn is_whole(file: File, hash: ContentHash, bytes: u64) -> io::Result<bool> {
    let length = file.metadata()?.len();
    if length != bytes && length != with_tail(bytes) {
        return Ok(false);
    }
    has_hash(file.take(bytes), hash)
}

/// Returns true if all readable bytes have this hash.
fn has_hash(mut content: impl Read, hash: ContentHash) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match content.read(&mut buffer)? {
            0 => return Ok(ContentHash::from(hasher.finalize()) == hash),
            read => hasher.update(&buffer[..read]),
        };
    }
}

/// Makes the bytes of a file and the names in a folder durable in parallel: a journaling file
/// system commits once for both.
pub(crate) fn sync_both((path, file): (&Path, &File), folder: &Path) -> Result<(), ContentError> {
    std::thread::scope(|scope| {
        let names = std::thread::Builder::new().spawn_scoped(scope, || sync_folder(folder));
        let bytes = file.sync_data();
        bytes.map_err(|error| ContentError::of(path, error))?;
        match names.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(synced)) => synced,
            // The thread could not start, or panicked: sync sequentially.
            Ok(Err(_)) | Err(_) => sync_folder(folder),
        }
    })
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), ContentError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| ContentError::of(folder, error))
}

/// Preallocated space of a file, a stretch ahead of the received bytes: a client that announces
/// much and sends little uses little.
#[derive(Debug)]
pub(crate) struct Preallocated {
    /// The future length of the file.
    length: u64,
    /// The end of the preallocated space.
    taken: u64,
}

impl Preallocated {
    /// Preallocates the first stretch of a new file of this length. Fails if the disk has no room
    /// for all of it, and a little more.
    pub(crate) fn begin(file: &File, length: u64) -> io::Result<Self> {
        let mut room = Self::resume(0, length);
        if let Some(until) = room.due(0) {
            has_room(file, length)?;
            room.take(file, until)?;
        }
        Ok(room)
    }

    /// Continues a file from `written`: a write preallocates the first stretch, a request for the offset doesn't.
    pub(crate) fn resume(written: u64, length: u64) -> Self {
        let taken = written;
        Self { length, taken }
    }

    /// Preallocates nothing, or nothing yet.
    pub(crate) fn none(length: u64) -> Self {
        Self {
            length,
            taken: length,
        }
    }

    /// Sets the future length of the file.
    pub(crate) fn limit(&mut self, length: u64) {
        self.length = length;
    }

    /// Returns true if space was preallocated beyond this.
    pub(crate) fn passes(&self, end: u64) -> bool {
        self.taken > end
    }

    /// Preallocates the next stretch once the bytes up to `end` exceed the last one.
    pub(crate) fn cover(&mut self, file: &File, end: u64) -> io::Result<()> {
        let Some(until) = self.due(end) else {
            return Ok(());
        };
        has_room(file, until - self.taken)?;
        self.take(file, until)
    }

    /// Returns the end of the next stretch once the bytes up to `end` exceed the last one.
    fn due(&self, end: u64) -> Option<u64> {
        let is_due = end >= self.taken && self.taken < self.length;
        is_due.then(|| end.saturating_add(AHEAD_BYTES).min(self.length))
    }

    fn take(&mut self, file: &File, until: u64) -> io::Result<()> {
        reserve(file, self.taken, until)?;
        self.taken = until;
        Ok(())
    }
}

/// Fails if the disk of a file has no room for this many bytes of content. A disk of unknown size
/// passes, and may fail later.
pub(crate) fn has_room(file: &File, bytes: u64) -> io::Result<()> {
    let Ok(disk) = nix::sys::statvfs::fstatvfs(file) else {
        return Ok(());
    };
    let of = |blocks: u64| blocks.saturating_mul(disk.fragment_size());
    let left = LEFT_BYTES.min(of(disk.blocks()) / LEFT_PART);
    match disk.blocks() > 0 && of(disk.blocks_available()).saturating_sub(left) < bytes {
        true => Err(io::ErrorKind::StorageFull.into()),
        false => Ok(()),
    }
}

/// Creates an unnamed file with room for this many bytes.
///
/// # Errors
/// If the folder's disk has no room for it, or the file can't be created.
pub fn unnamed_file(folder: &Path, bytes: u64) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    has_room(&file, bytes)?;
    reserve(&file, 0, bytes)?;
    Ok(file)
}

/// Allocates the space of a file between these two offsets. A file system without allocation only
/// sets the length.
fn reserve(file: &File, from: u64, until: u64) -> io::Result<()> {
    use nix::errno::Errno;
    use nix::fcntl::{FallocateFlags, fallocate};
    let (Ok(offset), Ok(length)) = (i64::try_from(from), i64::try_from(until - from)) else {
        return Err(io::ErrorKind::FileTooLarge.into());
    };
    match fallocate(file, FallocateFlags::empty(), offset, length) {
        Ok(()) => Ok(()),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) if file.metadata()?.len() < until => {
            file.set_len(until)
        }
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
