//! The key `ask` of study files: the commands and addresses of a system that return counters, and how their answers are
//! read.
//!
//! Pure: text → file → template → [`AskSpec`] in a cell. It starts no command and reads no answer.

mod file;
mod preset;
mod spec;
mod template;

pub use file::AskFile;
pub use spec::{AskSpec, By, filled_in};
pub use template::{AskTemplate, PID, PORT, templates};
