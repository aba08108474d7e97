//! Where the data lies.

use std::fmt;
use std::path::{Path, PathBuf};

use groupware_postgres::Database;

/// Where the data lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// In a folder on disk, made if it isn't there.
    Folder(PathBuf),
    /// In memory, gone when the server stops.
    Memory,
    /// Records in a PostgreSQL database, attachments and the admin token in a folder.
    Postgres {
        /// Where the records are.
        database: Database,
        /// Where the rest is; made if it isn't there.
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
    /// The folder on disk, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) | Self::Postgres { folder, .. } => Some(folder),
            Self::Memory => None,
        }
    }
}
