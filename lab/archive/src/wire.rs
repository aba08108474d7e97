//! The JSON files of an archive as they lie on disk: a record and the sizes of its files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{ArchiveError, Manifest, TrialRecord};

/// Largest file that the reader loads; an hour at 3000 users writes some 20 MB.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 30;

/// Largest file that the reader parses line by line; the data kept in memory is a good half of that.
const MAX_LOG_BYTES: u64 = 16 << 30;

/// Size of each file that belongs to a record, by its path below the record's folder.
pub(crate) type Sizes = BTreeMap<String, u64>;

/// `manifest.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ManifestFile {
    #[serde(flatten)]
    pub(crate) manifest: Manifest,
    /// Sizes of `plan.json` and the kept files.
    #[serde(default)]
    pub(crate) file_bytes: Sizes,
}

/// `trial.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TrialFile {
    #[serde(flatten)]
    pub(crate) record: TrialRecord,
    /// Sizes of the trial's data files.
    #[serde(default)]
    pub(crate) file_bytes: Sizes,
}

#[derive(Deserialize)]
struct Version {
    schema: String,
}

/// Reads a whole file, within [`MAX_FILE_BYTES`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ArchiveError> {
    let file = File::open(path).map_err(ArchiveError::read(path))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(ArchiveError::read(path))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ArchiveError::damaged(path, None, "it is larger than 1 GiB"));
    }
    Ok(bytes)
}

/// As [`read`]; the size must also be the one in `sizes`, if that names the file.
pub(crate) fn read_sized(path: &Path, name: &str, sizes: &Sizes) -> Result<Vec<u8>, ArchiveError> {
    let bytes = read(path)?;
    let found = bytes.len() as u64;
    match sizes.get(name) {
        Some(&expected) if expected != found => Err(ArchiveError::Size {
            path: path.to_path_buf(),
            expected,
            found,
        }),
        _ => Ok(bytes),
    }
}

/// Opens a file to be read line by line, within [`MAX_LOG_BYTES`]; the size must be the one in `sizes`, if that names
/// the file.
pub(crate) fn open_sized(
    path: &Path,
    name: &str,
    sizes: &Sizes,
) -> Result<BufReader<File>, ArchiveError> {
    let file = File::open(path).map_err(ArchiveError::read(path))?;
    let found = file.metadata().map_err(ArchiveError::read(path))?.len();
    match sizes.get(name) {
        Some(&expected) if expected != found => Err(ArchiveError::Size {
            path: path.to_path_buf(),
            expected,
            found,
        }),
        _ if found > MAX_LOG_BYTES => Err(ArchiveError::damaged(
            path,
            None,
            "it is larger than 16 GiB",
        )),
        _ => Ok(BufReader::new(file)),
    }
}

/// Parses JSON, naming the line of an error.
pub(crate) fn json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ArchiveError> {
    serde_json::from_slice(bytes)
        .map_err(|e| ArchiveError::damaged(path, Some(e.line() as u64).filter(|l| *l > 0), e))
}

/// Parses JSON of a known version; checks the version first.
pub(crate) fn versioned<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    known: &'static str,
) -> Result<T, ArchiveError> {
    let version: Version = json(path, bytes)?;
    if version.schema != known {
        let found = version.schema.chars().take(60).collect();
        return Err(ArchiveError::Version {
            path: path.to_path_buf(),
            found,
            known,
        });
    }
    json(path, bytes)
}
