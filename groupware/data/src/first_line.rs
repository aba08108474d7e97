//! Files of one line, for their owner alone, that the first of several servers writes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use groupware_runtime::random;

/// Writes a line into a file, unless there is one; whether it has. It is written whole beside the file and then given
/// its name: a full disk or a kill at any moment leaves no half of it to be found later.
pub(crate) fn write(path: &Path, line: &str) -> io::Result<bool> {
    let mut beside = path.as_os_str().to_owned();
    let number = u64::from_le_bytes(random::bytes());
    beside.push(format!(".{number:016x}.partial"));
    let beside = PathBuf::from(beside);
    let placed = write_whole(&beside, line).and_then(|()| fs::hard_link(&beside, path));
    // Nobody looks for what is left over.
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

/// `create_new` with the mode set at once: nobody else can read the file at any moment.
fn write_whole(path: &Path, line: &str) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}
