//! Files that a command writes for a person, and never over others unless it is told to.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::exit::{Exit, Failure};

/// Whether nothing is there yet.
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

/// Writes a file whole, or leaves what was there.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, text.as_bytes()).map_err(|error| failure(path, &error))
}

/// The same, for who says otherwise what could not be written. Who does it at the same moment does it whole, too.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(path, |file| file.write_all(bytes))
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The same with what `fill` writes; its failure leaves what was there.
pub(crate) fn replace_by<T, E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    // As any other file is made: the umask takes from it.
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
