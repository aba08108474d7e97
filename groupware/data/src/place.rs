//! The place of the data.

use std::fmt;
use std::path::{Path, PathBuf};

use groupware_postgres::Database;

/// The place of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// In a folder on disk, created if it is missing.
    Folder(PathBuf),
    /// In memory, lost when the server stops.
    Memory,
    /// Records in a PostgreSQL database, attachments and the admin token in a folder.
    Postgres {
        /// The database of the records.
        database: Database,
        /// The folder of the rest; created if it is missing.
        folder: PathBuf,
    },
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Memory => f.write_str("memory"),
            Self::Postgres { database, .. } => write!(f, "{database}"),
        }
    }
}

impl Data {
    /// Returns the folder on disk, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) | Self::Postgres { folder, .. } => Some(folder),
            Self::Memory => None,
        }
    }
}
