//! Files that a command writes for a person, and never over others unless it is told to.

use std::fs;
use std::io;
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
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let write = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        let permissions = fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(permissions)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| failure(path, &error))
}

pub(crate) fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::text(
        Exit::BadInput,
        format!("can't write {}: {error}", path.display()),
    )
}
