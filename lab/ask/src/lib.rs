//! The key `ask` of study files: which commands and addresses of a system say what it counts, and how their answers are
//! read.
//!
//! Pure: text → file → template → [`AskSpec`] in a cell. It starts no command and reads no answer.

mod file;
mod preset;
mod spec;
mod template;

pub use file::AskFile;
pub use spec::{AskSpec, By, filled_in};
pub use template::{AskTemplate, Written, templates};
