//! The engine on disk: one SQLite file in write-ahead mode.
//!
//! Records are stored in a tree by partition and key. A large value is stored in a separate table, by number, and its
//! record contains the number. In the tree, a large value would reduce the fan-out of an inner page, and SQLite reads a
//! record that spills over as a whole to compare its key.
//!
//! The changes of a group are first written to a table of pending changes, and later into the tree, together with many
//! others (`pending`).

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
