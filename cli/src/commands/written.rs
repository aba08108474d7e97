//! Files that a command writes for a person; existing files are replaced only with `--force`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::exit::{Exit, Failure};

/// Fails if a file is there already.
pub(crate) fn is_free(path: &Path) -> Result<(), Failure> {
    match path.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(Failure::text(
            Exit::BadInput,
            format!("{} is there already, and stays as it is", path.display()),
        )
        .hint("--force writes over it")),
        Err(error) => Err(failure(path, &error)),
    }
}

/// Writes a file whole, or keeps the previous one.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, text.as_bytes()).map_err(|error| failure(path, &error))
}

/// The same for callers with their own error message. Concurrent writes are whole, too.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(path, |file| file.write_all(bytes))
}

/// Returns the folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The same with the output of `fill`; if that fails, the previous file is kept.
pub(crate) fn replace_by<T, E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    // The usual mode of new files: the umask reduces it.
    let permissions = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new()
        .permissions(permissions)
        .tempfile_in(folder_of(path))?;
    let made = fill(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(io::Error::from)?;
    Ok(made)
}

pub(crate) fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::text(
        Exit::BadInput,
        format!("can't write {}: {error}", path.display()),
    )
}
