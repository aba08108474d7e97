//! The store's folder and files, which only the server's own user can read, whatever the umask. Knows nothing of their
//! content.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::sys::statvfs::statvfs;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The free space below which a disk is full: a transaction needs a few pages, and file systems reserve some blocks.
const FULL_BYTES: u64 = 1 << 20;

/// Creates a folder and its missing parents, and makes their names durable. An existing folder keeps its permissions:
/// the files in it are private anyway.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let is_missing = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(folder)?;
    for made in missing {
        let parent = made.parent().filter(|it| !it.as_os_str().is_empty());
        sync_folder(parent.unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Opens a file for writing; a missing file is created, private.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    options.mode(FILE_MODE).open(path)
}

/// Makes a file private, if it exists. Another user's file stays unchanged.
pub(crate) fn narrow(path: &Path) -> io::Result<()> {
    use io::ErrorKind::{NotFound, PermissionDenied};
    match fs::set_permissions(path, Permissions::from_mode(FILE_MODE)) {
        Err(error) if !matches!(error.kind(), NotFound | PermissionDenied) => Err(error),
        _ => Ok(()),
    }
}

/// The disk space that is free for unprivileged users, and the size of the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Free {
    pub(crate) bytes: u64,
    pub(crate) of: u64,
}

/// The free space of the disk that contains this path.
pub(crate) fn free(path: &Path) -> io::Result<Free> {
    let disk = statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.fragment_size());
    Ok(Free {
        bytes: bytes(disk.blocks_available()),
        of: bytes(disk.blocks()),
    })
}

/// Returns true if the disk that contains this path is full.
pub(crate) fn is_full(path: &Path) -> bool {
    free(path).is_ok_and(|free| free.bytes < FULL_BYTES)
}

/// Makes the names in a folder durable: without it, a crash may lose a file's name.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all())
}
