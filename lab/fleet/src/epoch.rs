//! The number of an agent's last lease, on disk, so that no lease after a restart reuses a number.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::FleetError;

/// Its file.
fn file(state: &Path) -> PathBuf {
    state.join("epoch")
}

/// The number of the last lease; 0 before the first.
pub(crate) fn read(state: &Path) -> Result<u64, FleetError> {
    let path = file(state);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(FleetError::file(path)(error)),
    };
    let number = text.trim().parse();
    number.map_err(|_| {
        let what = "is not the number of a lease; if no run has this agent, remove it";
        FleetError::file(path)(io::Error::new(io::ErrorKind::InvalidData, what))
    })
}

/// Stores it atomically.
pub(crate) fn keep(state: &Path, epoch: u64) -> io::Result<()> {
    fs::create_dir_all(state)?;
    let mut next = tempfile::NamedTempFile::new_in(state)?;
    writeln!(next, "{epoch}")?;
    next.as_file().sync_all()?;
    next.persist(file(state)).map_err(|error| error.error)?;
    File::open(state)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_and_nonsense_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("new");
        assert_eq!(read(&state).unwrap(), 0);
        keep(&state, 7).unwrap();
        keep(&state, 8).unwrap();
        assert_eq!(read(&state).unwrap(), 8);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
        fs::write(file(&state), "x").unwrap();
        assert!(read(&state).is_err());
    }
}
