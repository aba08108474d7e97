//! Ways for messages to a generator and back. What is said knows no transport: a child's pipes carry
//! it on this machine, and whatever else carries frames whole and in order does so beyond it.

use std::io::{self, Read, Write};

use super::error::{MAX_FRAME_BYTES, MessageError};

/// Where frames are sent.
pub trait FrameSink {
    /// Sends one, of at most [`MAX_FRAME_BYTES`]; waits where it must.
    ///
    /// # Errors
    /// When the other side can't be reached any more, or the frame is too long.
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError>;
}

/// Where frames come from: each once, whole, in the order that they were sent in.
pub trait FrameSource {
    /// Awaits the next; `None` when the other side has ended.
    ///
    /// # Errors
    /// When the other side is gone, or sends what is no frame.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, MessageError>;
}

/// A stream of bytes as a channel: each frame behind its length in four bytes.
#[derive(Debug)]
pub struct Piped<T>(pub T);

impl<T: Write> FrameSink for Piped<T> {
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError> {
        let length = u32::try_from(frame.len()).ok();
        let length = length.filter(|length| *length <= MAX_FRAME_BYTES);
        let length = length.ok_or(MessageError::TooLong(frame.len()))?;
        self.0.write_all(&length.to_be_bytes())?;
        self.0.write_all(frame)?;
        Ok(self.0.flush()?)
    }
}

impl<T: Read> FrameSource for Piped<T> {
    fn receive(&mut self) -> Result<Option<Vec<u8>>, MessageError> {
        let mut length = [0; 4];
        let got = self.0.read(&mut length[..1])?;
        if got == 0 {
            return Ok(None);
        }
        self.0.read_exact(&mut length[1..])?;
        let length = u32::from_be_bytes(length);
        if length > MAX_FRAME_BYTES {
            return Err(MessageError::TooLong(length as usize));
        }
        // Grown as bytes come: a length alone reserves nothing.
        let mut frame = Vec::new();
        let from = self.0.by_ref();
        let taken = from.take(u64::from(length)).read_to_end(&mut frame)?;
        if taken < length as usize {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(Some(frame))
    }
}

impl<T: FrameSink + ?Sized> FrameSink for Box<T> {
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError> {
        (**self).send(frame)
    }
}

impl<T: FrameSource + ?Sized> FrameSource for Box<T> {
    fn receive(&mut self) -> Result<Option<Vec<u8>>, MessageError> {
        (**self).receive()
    }
}
