//! The engine on disk: one SQLite file in write-ahead mode.
//!
//! Records lie in a tree by partition and key. A large value lies in a table of its own, by number,
//! and its record has the number in its place: in the tree it would make a page that leads to others
//! lead to few, and SQLite reads a record that spills over as a whole to compare its key.
//!
//! What a group changes is written to a table of pending changes first, and into the tree later, with much
//! else (`pending`).

mod checkpoint;
mod compact;
mod connect;
mod copy;
mod disk;
mod fault;
mod log_ahead;
mod open;
mod pending;
mod position;
mod read;
mod redo;
mod tree;
mod vacuum;
mod values;
mod write;

pub use compact::{Compacted, compact};
pub use copy::copy_records;
pub use open::FILE_NAME;
pub(crate) use open::open;
pub(crate) use position::position;
pub(crate) use write::SqliteWriter;
