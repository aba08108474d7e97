//! The folders of content, and how a file gets its place among them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::among::Among;
use crate::pins::{Pin, SharedPins};
use crate::scratch::Scratch;
use crate::tail::with_tail;
use crate::{Content, ContentError, ContentHash, Objects, Segments};

/// Bytes that are read at once to hash a file.
const READ_BYTES: usize = 64 << 10;
/// Room is taken so far ahead of what has come in.
const AHEAD_BYTES: u64 = 64 << 20;
/// What content leaves of the disk, and of a small one such a part: whoever removes something on a full disk has
/// that written down first.
const LEFT_BYTES: u64 = 128 << 20;
const LEFT_PART: u64 = 4;
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Longest name of an upload.
const NAME_BYTES: usize = 64;

/// A place for content. Clones are handles of the same place.
#[derive(Debug, Clone)]
pub struct ContentStore {
    inner: Arc<Inner>,
    /// Where finished content is put, if not in files.
    objects: Option<Arc<dyn Objects>>,
    /// Where uploads under way are put, if not in files.
    segments: Option<Arc<dyn Segments>>,
}

#[derive(Debug)]
struct Inner {
    content: PathBuf,
    uploads: PathBuf,
    pins: SharedPins,
    /// What keeps this process and others that use the folder from each other.
    among: Option<Among>,
    /// Where content goes that nothing refers to any more, if it is to stay for a while.
    spared: Option<PathBuf>,
    /// Gone with the last handle.
    _scratch: Option<Scratch>,
}

/// What is found where content should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The content.
    Whole,
    /// Nothing.
    Nothing,
    /// A file of another length, or with other bytes in it.
    Damaged,
}

impl ContentStore {
    /// Opens the place in `folder`, which is made if it isn't there, in one that is. Nobody but the user of this process
    /// may read what is in it. The caller sees to it that no other process uses it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open(folder: &Path) -> Result<Self, ContentError> {
        Self::open_with(folder, (None, false), false)
    }

    /// The same where other processes have it open, too, all in this way.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open_shared(folder: &Path) -> Result<Self, ContentError> {
        Self::open_with(folder, (None, true), false)
    }

    /// The same; content that nothing refers to any more is [spared](crate::Spared), until it is removed
    /// there.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open_sparing(folder: &Path) -> Result<Self, ContentError> {
        Self::open_with(folder, (None, false), true)
    }

    /// A place in a new folder among the system's temporary ones, gone with the last handle. What a process
    /// that was killed left of such places is removed.
    ///
    /// # Errors
    /// When the disk refuses.
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
        // Nobody else gets past these two: no file below them is another user's to read.
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
        let among = is_shared.then(|| Among::open(folder.join("content.claims")));
        let among = among.transpose().map_err(io)?;
        // Whoever made them may have ended before this.
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

    /// The same place for uploads, with a store of objects for what is finished from now on.
    #[must_use]
    pub fn with_objects(self, objects: Arc<dyn Objects>) -> Self {
        Self {
            objects: Some(objects),
            ..self
        }
    }

    /// The same place, with uploads under way in a store that other servers use, too.
    #[must_use]
    pub fn with_segments(self, segments: Arc<dyn Segments>) -> Self {
        Self {
            segments: Some(segments),
            ..self
        }
    }

    /// Where uploads under way are, if not in files.
    pub fn segments(&self) -> Option<&Arc<dyn Segments>> {
        self.segments.as_ref()
    }

    /// The store of objects, if there is one.
    pub fn objects(&self) -> Option<&Arc<dyn Objects>> {
        self.objects.as_ref()
    }

    /// A folder of its disk, which nobody else reads: files without names may be made in it.
    pub fn folder(&self) -> &Path {
        &self.inner.uploads
    }

    /// Begins to read content from `at` on, so many bytes, wherever it lies.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if it isn't there; the object store's, or the disk's.
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

    /// Opens content that lies in a file for reading. Only the first bytes, as many as the content has, count: those
    /// behind them are a trace of the upload that a crash has left.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if it isn't there; else the disk's.
    pub fn read(&self, hash: ContentHash) -> Result<File, ContentError> {
        let path = self.path_of(hash);
        File::open(&path).map_err(|error| ContentError::of(&path, error))
    }

    /// Looks whether content is there, and right to the last byte.
    ///
    /// # Errors
    /// When the disk refuses to read it.
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

    /// Whether any content lies in files here.
    ///
    /// # Errors
    /// When the disk refuses.
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

    /// Whether a file of this name and length is there; what is in it is not looked at.
    pub fn has(&self, hash: ContentHash, bytes: u64) -> bool {
        let found = fs::metadata(self.path_of(hash));
        found.is_ok_and(|found| found.len() == bytes)
    }

    /// Keeps sweeps away from content, there or not, as long as the pin lives.
    ///
    /// # Errors
    /// When the disk refuses, where other processes sweep, too.
    pub fn pin(&self, hash: ContentHash) -> Result<Pin, ContentError> {
        let first = hash.as_bytes()[0];
        let elsewhere = self.among().map(|among| among.pin(first)).transpose();
        let elsewhere = elsewhere.map_err(|error| ContentError::of(&self.path_of(hash), error))?;
        Ok(Pin::new(&self.inner.pins, hash, elsewhere))
    }

    pub(crate) fn among(&self) -> Option<&Among> {
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

    /// The file of an upload. Whatever a client may call an upload, no other folder is reached.
    pub(crate) fn path_of_upload(&self, name: &str) -> Result<PathBuf, ContentError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !(1..=NAME_BYTES).contains(&name.len()) || !name.bytes().all(is_plain) {
            return Err(ContentError::BadName);
        }
        Ok(self.inner.uploads.join(name))
    }

    /// Makes a whole file durable and gives it its place, under a pin, where the file stays also
    /// under the name that it has.
    ///
    /// The link comes first, so that one sync of the file and one of the folder do for both. A crash
    /// in between can leave a name with the wrong bytes behind it, to which nothing refers. Hence
    /// what is found there is never trusted, but replaced. Nor is it read: how long that takes would tell
    /// whoever sends a file whether somebody else has it.
    pub(crate) fn place(&self, from: &Path, file: &File, pin: &Pin) -> Result<(), ContentError> {
        let target = self.path_of(pin.hash());
        let folder = self.folder_of(pin.hash().as_bytes()[0]);
        match fs::hard_link(from, &target) {
            Ok(()) => sync_both((from, file), &folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Others may refer to what is there: its place is given to nothing that a crash may take.
                let synced = file.sync_data();
                synced.map_err(|error| ContentError::of(from, error))?;
                let replaced = self.replace(from, &target);
                replaced.map_err(|error| ContentError::of(&target, error))?;
                sync_folder(&folder)
            }
            Err(error) => Err(ContentError::of(&target, error)),
        }
    }

    /// Has a name be this file's, too, in the place of another's.
    fn replace(&self, from: &Path, target: &Path) -> io::Result<()> {
        let name = from.file_name().unwrap_or_default();
        // What a crash leaves of it, the sweep takes as it takes an upload that nobody knows.
        let again = self.uploads().join(format!("{}-again", name.display()));
        match fs::remove_file(&again) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::hard_link(from, &again)?;
        fs::rename(&again, target)?;
        // A rename among names of one file does nothing at all.
        match fs::remove_file(&again) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Where a data folder has content that is spared.
pub(crate) fn spared_folder(folder: &Path) -> PathBuf {
    folder.join("spared")
}

/// Makes a folder that only the user of this process may enter, if it isn't there.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    match builder.mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Makes a folder private that an older version has made otherwise. Another user's stays as that user
/// has it.
fn narrow(folder: &Path) -> io::Result<()> {
    let narrow = fs::Permissions::from_mode(FOLDER_MODE);
    match fs::set_permissions(folder, narrow) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

/// Opens a new file that only the user of this process may read.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.create_new(true).read(true).write(true);
    options.mode(FILE_MODE).open(path)
}

/// Whether a file begins with the content of this hash, and has nothing behind it but, perhaps, the
/// tail of an upload.
fn is_whole(file: File, hash: ContentHash, bytes: u64) -> io::Result<bool> {
    let length = file.metadata()?.len();
    if length != bytes && length != with_tail(bytes) {
        return Ok(false);
    }
    has_hash(file.take(bytes), hash)
}

/// Whether all that can be read has this hash.
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

/// Makes the bytes of a file and the names in a folder durable, both at once: a file system with a
/// journal commits it once for the two.
pub(crate) fn sync_both((path, file): (&Path, &File), folder: &Path) -> Result<(), ContentError> {
    std::thread::scope(|scope| {
        let names = std::thread::Builder::new().spawn_scoped(scope, || sync_folder(folder));
        let bytes = file.sync_data();
        bytes.map_err(|error| ContentError::of(path, error))?;
        match names.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(synced)) => synced,
            // No thread to be had, or it failed: then one after the other.
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

/// Room for the next bytes of a file, taken a stretch ahead of what has come in: who announces much
/// and sends little takes little.
#[derive(Debug)]
pub(crate) struct Preallocated {
    /// The file will have so many bytes.
    length: u64,
    /// So many have room.
    taken: u64,
}

impl Preallocated {
    /// The first stretch for a new file of this length. A disk without room for all of it, and a little more, is full
    /// from the start.
    pub(crate) fn begin(file: &File, length: u64) -> io::Result<Self> {
        let mut room = Self::resume(0, length);
        if let Some(until) = room.due(0) {
            has_room(file, length)?;
            room.take(file, until)?;
        }
        Ok(room)
    }

    /// Of a file that goes on from `written`: the first stretch is taken by what comes, for who only asks how far it is.
    pub(crate) fn resume(written: u64, length: u64) -> Self {
        let taken = written;
        Self { length, taken }
    }

    /// None that is wanted any more, or yet.
    pub(crate) fn none(length: u64) -> Self {
        Self {
            length,
            taken: length,
        }
    }

    /// The file will have so many bytes.
    pub(crate) fn limit(&mut self, length: u64) {
        self.length = length;
    }

    /// Whether room was taken past this.
    pub(crate) fn passes(&self, end: u64) -> bool {
        self.taken > end
    }

    /// Takes the next stretch once the bytes up to `end` pass the last one.
    pub(crate) fn cover(&mut self, file: &File, end: u64) -> io::Result<()> {
        let Some(until) = self.due(end) else {
            return Ok(());
        };
        has_room(file, until - self.taken)?;
        self.take(file, until)
    }

    /// Up to where the next stretch goes, once the bytes up to `end` pass the last one.
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

/// Fails where the disk of a file hasn't so many bytes for content. One that doesn't say how large it is is taken at its
/// word later.
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

/// A new file without a name, with room for so many bytes.
///
/// # Errors
/// When the folder's disk hasn't so much room for content, or the file can't be made.
pub fn unnamed_file(folder: &Path, bytes: u64) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    has_room(&file, bytes)?;
    reserve(&file, 0, bytes)?;
    Ok(file)
}

/// Takes room for the bytes of a file between these two. A file system that can't only notes the
/// length.
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
