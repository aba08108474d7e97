//! The changes of a run to the machine, as its journal stores them: enough to restore it.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{HostError, disk};

/// The old value of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The changed file.
    pub path: String,
    /// The file to write the old value to; mostly the same.
    pub restore: String,
    /// The value before the change.
    pub old: String,
}

/// The changes of a run to the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Files, with their old values.
    pub entries: Vec<Entry>,
    /// Folders in which file systems are made, as canonical paths: absolute, and without links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<PathBuf>,
}

impl From<Vec<Entry>> for Changes {
    fn from(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            disks: Vec::new(),
        }
    }
}

impl Changes {
    /// Removes all file systems. A failure of one does not prevent the others.
    pub(crate) fn clear(&self) -> Result<Vec<PathBuf>, HostError> {
        let mut cleared = Vec::new();
        let mut failure = None;
        for folder in &self.disks {
            match disk::clear(folder) {
                Ok(found) => cleared.extend(found),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(cleared), Err)
    }
}

impl Entry {
    pub(crate) fn failed(&self, source: io::Error) -> HostError {
        HostError::PutBack {
            path: self.restore.clone(),
            value: self.old.clone(),
            source,
        }
    }
}
