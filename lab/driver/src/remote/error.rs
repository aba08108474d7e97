//! Why a message can't be read.

use std::io;

/// Largest message. A window of a hundred steps has some hundred KB; the variables of 100,000 users
/// some MB.
pub const MAX_FRAME_BYTES: u32 = 64 << 20;

/// Why a message can't be read.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The other side is gone, or the pipe broke.
    #[error("the connection to the other process ended")]
    Io(#[from] io::Error),
    /// Its length is beyond [`MAX_FRAME_BYTES`].
    #[error("a message of {0} bytes is longer than any")]
    TooLong(usize),
    /// It is none of the messages.
    #[error("a message is not understood: {0}")]
    Unknown(#[from] serde_json::Error),
    /// It is one, and says what can't be.
    #[error("a message makes no sense: {0}")]
    Nonsense(String),
}
