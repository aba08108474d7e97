//! Why a message can't be read.

use std::io;

/// The maximum size of a message. A window of a hundred steps has some hundred KB; the variables of 100,000 users have
/// some MB.
pub const MAX_FRAME_BYTES: u32 = 64 << 20;

/// Why a message can't be read.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The connection is lost, or the pipe broke.
    #[error("the connection to the other process ended")]
    Io(#[from] io::Error),
    /// Its length exceeds [`MAX_FRAME_BYTES`].
    #[error("a message of {0} bytes is longer than any")]
    TooLong(usize),
    /// It matches no message type.
    #[error("a message is not understood: {0}")]
    Unknown(#[from] serde_json::Error),
    /// It is a message with impossible content.
    #[error("a message makes no sense: {0}")]
    Nonsense(String),
}
