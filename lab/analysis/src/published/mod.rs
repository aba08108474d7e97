//! The contents of published reports, beside ours: their figures, their unit of throughput (NotesMark), and their
//! sessions' transfers.
//!
//! This module is separate from the statistics: it changes no verdict.

pub(crate) mod tables;
pub(crate) mod transfer;
