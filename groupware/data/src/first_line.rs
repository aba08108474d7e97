//! Files of one line, readable by their owner only. The first of several servers writes them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use groupware_runtime::random;

/// Writes a line to a file unless the file exists; returns true if it was written. The line is written to a temporary
/// file and then linked, so that a full disk or a kill never leaves a partial file.
pub(crate) fn write(path: &Path, line: &str) -> io::Result<bool> {
    let mut beside = path.as_os_str().to_owned();
    let number = u64::from_le_bytes(random::bytes());
    beside.push(format!(".{number:016x}.partial"));
    let beside = PathBuf::from(beside);
    let placed = write_whole(&beside, line).and_then(|()| fs::hard_link(&beside, path));
    // A leftover temporary file is never read.
    let _ = fs::remove_file(&beside);
    let is_first = match placed {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(is_first)
}

/// Uses `create_new` and sets the mode at creation, so that no other user can ever read the file.
fn write_whole(path: &Path, line: &str) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}
