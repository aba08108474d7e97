//! Study files from their folder: only this module reads the lab's texts from disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use lab_study::{Bytes, Environment, Files};

use crate::watched::Watched;

/// The maximum bytes of a study, workload, or table of figures; a wrong path must not fill the memory.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The maximum number of names in an error: more don't help to find the right one.
const MAX_NAMES: usize = 10_000;

/// Reads paths as given by the shell.
pub(crate) struct Disk;

/// As [`Disk`], for commands that run the study: variables of the environment are resolved, and missing ones are
/// reported before anything starts.
pub(crate) struct DiskAndEnvironment;

impl Files for DiskAndEnvironment {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        Disk.read(path)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        Disk.names(folder)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn Bytes>> {
        Disk.open(path)
    }

    fn environment(&self, name: &str) -> Environment {
        std::env::var(name).map_or(Environment::Unset, Environment::Set)
    }
}

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = File::open(Path::new(path))?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "this is a folder",
            ));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the file is larger than 16 MiB",
            ));
        }
        Ok(bytes)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn Bytes>> {
        let file = File::open(Path::new(path))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this is no file",
            ));
        }
        Ok(Arc::new(Watched::new(path, file)?))
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let folder = if folder.is_empty() { "." } else { folder };
        let Ok(entries) = fs::read_dir(folder) else {
            return Vec::new();
        };
        entries
            .take(MAX_NAMES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect()
    }
}
