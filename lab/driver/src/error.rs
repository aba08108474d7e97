//! Why a load could not start, or failed.

use std::io;

use crate::remote::MessageError;
use lab_client::{BaseUrl, TlsError};

/// Why a load could not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The load spec contradicts itself, such as no users or a window of no length.
    #[error("this load can't be driven: {0}")]
    Load(&'static str),
    /// There is too little of something that users share.
    #[error("this load can't be driven: {0}")]
    Shared(String),
    /// The server's name has no address.
    #[error("{base} has no address")]
    Resolve {
        /// The server.
        base: BaseUrl,
        /// The resolver's error.
        source: io::Error,
    },
    /// The TLS options are unusable.
    #[error("TLS can't be set up: {0}")]
    Tls(TlsError),
    /// A worker thread, its runtime, or its timer could not be created.
    #[error("a worker can't be started")]
    Runtime(#[source] io::Error),
    /// A worker could not be pinned to its core.
    #[error("a worker can't be pinned to core {core}")]
    Pin {
        /// The core.
        core: usize,
        /// The kernel's error.
        source: io::Error,
    },
    /// A user's own variables could not be created.
    #[error("the variables of user {index} can't be made: {detail}")]
    User {
        /// Its index.
        index: u32,
        /// Why.
        detail: String,
    },
    /// A script can't be loaded, or its modules throw.
    #[error("{0}")]
    Script(String),
    /// A script ended the test before its load (`test.abort`), for this reason.
    #[error("`test.abort` of the script: {0}")]
    Aborted(String),
    /// A generator process could not be started.
    #[error("the generator {} can't be started", program.display())]
    Spawn {
        /// Its program.
        program: std::path::PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The load spec can't be written as a message to generators.
    #[error("generators can't be told what to drive")]
    Message(#[source] Box<MessageError>),
    /// A generator refused its work, or ended before it was done.
    #[error("{name} {detail}")]
    Generator {
        /// The generator's name.
        name: String,
        /// How it ended, with the end of its stderr.
        detail: String,
    },
    /// The connection to a generator, or its machine, was lost; not caused by the generator or the load.
    #[error("{name} {detail}")]
    Lost {
        /// The generator's name.
        name: String,
        /// The observed loss.
        detail: String,
    },
    /// A thread of the driver panicked: a defect of this program.
    #[error("a thread of the driver failed")]
    Panicked,
}
