//! What a backup says of itself.

use serde::{Deserialize, Serialize};

/// The format of manifests.
pub(crate) const SCHEMA: &str = "plimsoll.backup/1";

/// What belongs to a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `plimsoll.backup/1`.
    pub schema: String,
    /// The backup's name: the moment that it was begun, UTC, as in `20261122T084500Z`.
    pub name: String,
    /// That moment, in seconds since 1970. The records are those of a moment soon after.
    pub taken_s: i64,
    /// The version of the program that made it.
    pub plimsoll: String,
    /// Users.
    pub users: u64,
    /// Pieces of content that the records refer to.
    pub contents: u64,
    /// Bytes of these.
    pub content_bytes: u64,
    /// The file of the records.
    pub records: Records,
}

/// The file of the records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// Its length.
    pub bytes: u64,
    /// Its hash, in hexadecimal digits.
    pub blake3: String,
}
