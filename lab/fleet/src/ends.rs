//! The ends of a trial's way, for threads that wait: what a carrier carries goes in and comes out here.

use std::io;

use lab_driver::remote::{FrameSink, FrameSource, MAX_FRAME_BYTES, MessageError};
use tokio::sync::mpsc;

/// Frames that may wait between a thread and its carrier.
pub(crate) const WAITING: usize = 64;

/// Where a thread puts frames that are to be carried.
pub(crate) struct Sink(pub(crate) mpsc::Sender<Vec<u8>>);

/// Where a thread gets frames that came.
pub(crate) struct Source(pub(crate) mpsc::Receiver<Vec<u8>>);

impl FrameSink for Sink {
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError> {
        if frame.len() > MAX_FRAME_BYTES as usize {
            return Err(MessageError::TooLong(frame.len()));
        }
        let sent = self.0.blocking_send(frame.to_vec());
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe).into())
    }
}

impl FrameSource for Source {
    fn receive(&mut self) -> Result<Option<Vec<u8>>, MessageError> {
        Ok(self.0.blocking_recv())
    }
}
