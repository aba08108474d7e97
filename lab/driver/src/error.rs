//! Why a drive could not start, or did not end well.

use std::io;

use crate::remote::MessageError;
use lab_client::{BaseUrl, TlsError};

/// Why a drive could not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The drive contradicts itself, such as no users or a window of no length.
    #[error("this load can't be driven: {0}")]
    Drive(&'static str),
    /// Users share something that there are too few of.
    #[error("this load can't be driven: {0}")]
    Shared(String),
    /// The server's name has no address.
    #[error("{base} has no address")]
    Resolve {
        /// The server.
        base: BaseUrl,
        /// What the resolver said.
        source: io::Error,
    },
    /// The TLS options are unusable.
    #[error("TLS can't be set up: {0}")]
    Tls(TlsError),
    /// A worker thread, its runtime, or its timer could not be made.
    #[error("a worker can't be started")]
    Runtime(#[source] io::Error),
    /// A worker could not be pinned to its core.
    #[error("a worker can't be pinned to core {core}")]
    Pin {
        /// The core.
        core: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// A user's own variables could not be made.
    #[error("the variables of user {index} can't be made: {detail}")]
    User {
        /// Its index.
        index: u32,
        /// Why.
        detail: String,
    },
    /// A generator process could not be started.
    #[error("the generator {} can't be started", program.display())]
    Spawn {
        /// Its program.
        program: std::path::PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// What generators are to drive can't be written as a message.
    #[error("generators can't be told what to drive")]
    Message(#[source] Box<MessageError>),
    /// A generator refused its work, or ended before it was done.
    #[error("{name} {detail}")]
    Generator {
        /// What it is called.
        name: String,
        /// How it ended, with its last words.
        detail: String,
    },
    /// The way to a generator was lost, or its machine: nothing that the generator or the load did.
    #[error("{name} {detail}")]
    Lost {
        /// What the generator is called.
        name: String,
        /// What was seen of the loss.
        detail: String,
    },
    /// A thread of the driver ended by a panic: a defect of this program.
    #[error("a thread of the driver failed")]
    Panicked,
}
