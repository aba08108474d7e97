//! Transports for messages to a generator and back. The messages don't depend on the transport: a child's pipes on this
//! machine, or any other transport that delivers frames whole and in order.

use std::io::{self, Read, Write};

use super::error::{MAX_FRAME_BYTES, MessageError};

/// The sending end of a transport.
pub trait FrameSink {
    /// Sends a frame of at most [`MAX_FRAME_BYTES`]; may block.
    ///
    /// # Errors
    /// When the peer can't be reached any more, or the frame is too long.
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError>;
}

/// The receiving end of a transport: each frame once, whole, in the order of sending.
pub trait FrameSource {
    /// Waits for the next frame; `None` when the peer has ended.
    ///
    /// # Errors
    /// When the connection is lost, or the input is no frame.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, MessageError>;
}

/// A byte stream as a transport: each frame follows its length in four bytes.
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
        // The buffer grows with the received bytes: a length alone reserves no memory.
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
