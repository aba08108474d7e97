//! The engine on disk: one table in one SQLite file, in write-ahead mode.

mod checkpoint;
mod open;
mod read;
mod write;

pub(crate) use open::{FILE_NAME, open};
pub(crate) use read::ReadPool;
