//! Generates study and workload files as text: first ones to extend (`first`), those of command-line flags (`quick`),
//! and workloads from a browser's recording of a session (HAR), from a description of a service (OpenAPI), or from the
//! log of a server.
//!
//! Text in, text out: it opens no file and no socket, and reads no clock. `lab-study` can parse all of its output;
//! skipped parts are reported.

pub mod address;
mod draft;
mod error;
pub mod first;
pub mod har;
pub mod log;
mod multipart;
pub mod openapi;
pub mod quick;
mod secret;
mod text;

pub use error::ImportError;
pub use lab_units::yaml;

/// An imported workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The workload file.
    pub workload: String,
    /// The server, without a path, for `--url`; `None` if a description names none.
    pub server: Option<String>,
    /// Environment variables that a run needs, in the order of their use.
    pub asked: Vec<String>,
    /// Notes about skipped or guessed parts; a sentence each, without a full stop.
    pub said: Vec<String>,
}
