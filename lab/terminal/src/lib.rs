//! What commands of the lab show in a terminal while they work: progress of a run, lines on stderr, and the width of text.

pub mod panel;
pub mod progress;
pub mod stderr;
pub mod width;
pub mod words;
