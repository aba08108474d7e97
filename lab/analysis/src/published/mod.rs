//! What published reports say, beside ours: their figures, their unit of throughput (NotesMark), and
//! what their sessions carried.
//!
//! It stands apart from the statistics: nothing here changes a verdict.

pub(crate) mod tables;
pub(crate) mod transfer;
