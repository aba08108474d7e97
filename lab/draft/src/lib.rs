//! Drafts of study and workload files, as text that a person goes on from.
//!
//! Text in, text out: it opens no file and no socket, reads no clock, and judges nothing. What it
//! writes is read back by `lab-study` like any other file.

pub mod first;
pub mod quick;
pub mod yaml;
