//! The manifest of a backup.

use serde::{Deserialize, Serialize};

/// The format of manifests.
pub(crate) const SCHEMA: &str = "plimsoll.backup/1";

/// The manifest of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `plimsoll.backup/1`.
    pub schema: String,
    /// The backup's name: the moment of its start, UTC, as in `20261122T084500Z`.
    pub name: String,
    /// The same moment in seconds since 1970. The records are of a moment soon after.
    pub taken_s: i64,
    /// The version of the program that made it.
    pub plimsoll: String,
    /// The number of users.
    pub users: u64,
    /// The number of contents that the records refer to.
    pub contents: u64,
    /// The size of this content in bytes.
    pub content_bytes: u64,
    /// The file of the records.
    pub records: Records,
}

/// The file of the records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// The length in bytes.
    pub bytes: u64,
    /// The hash in hexadecimal digits.
    pub blake3: String,
}
