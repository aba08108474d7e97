//! The ends of a trial's transport for blocking threads: bounded queues of the carrier's frames.

use std::io;
use std::sync::Arc;

use lab_driver::remote::{FrameSink, FrameSource, MAX_FRAME_BYTES, MessageError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Frames that may wait between a thread and its carrier.
const WAITING: usize = 64;
/// Bytes of waiting frames: room for the longest frame and short ones beside it.
const WAITING_BYTES: u32 = MAX_FRAME_BYTES + (16 << 20);

/// A queued frame with its share of the byte limit.
struct Frame {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

/// The sending end of the queue.
pub(crate) struct Inlet {
    frames: mpsc::Sender<Frame>,
    room: Arc<Semaphore>,
    /// Byte limit.
    most: u32,
}

/// The receiving end, in order.
pub(crate) struct Outlet(mpsc::Receiver<Frame>);

/// The receiver of the queue is closed.
#[derive(Debug)]
pub(crate) struct Closed;

/// Creates a queue of frames.
pub(crate) fn way() -> (Inlet, Outlet) {
    with_room(WAITING_BYTES)
}

fn with_room(most: u32) -> (Inlet, Outlet) {
    let (frames, come) = mpsc::channel(WAITING);
    let room = Arc::new(Semaphore::new(most as usize));
    (Inlet { frames, room, most }, Outlet(come))
}

impl Inlet {
    /// Queues a frame when there is room.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Closed> {
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(size.min(self.most));
        let frame = Frame {
            bytes,
            _room: room.await.map_err(|_| Closed)?,
        };
        self.frames.send(frame).await.map_err(|_| Closed)
    }
}

impl Outlet {
    /// Returns the next frame, or `None` after the last.
    pub(crate) async fn recv(&mut self) -> Option<Vec<u8>> {
        Some(self.0.recv().await?.bytes)
    }
}

/// A blocking thread's sending end, with the runtime handle to wait on.
pub(crate) struct Sink(pub(crate) Inlet, pub(crate) Handle);

/// A blocking thread's receiving end.
pub(crate) struct Source(pub(crate) Outlet);

impl FrameSink for Sink {
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError> {
        if frame.len() > MAX_FRAME_BYTES as usize {
            return Err(MessageError::TooLong(frame.len()));
        }
        let sent = self.1.block_on(self.0.send(frame.to_vec()));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe).into())
    }
}

impl FrameSource for Source {
    fn receive(&mut self) -> Result<Option<Vec<u8>>, MessageError> {
        Ok(self.0.0.blocking_recv().map(|frame| frame.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_bytes_wait_than_there_is_room_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let (inlet, mut outlet) = with_room(100);
            let long = || vec![1; 200];
            inlet.send(vec![2; 9]).await.unwrap();
            let mut waits = Box::pin(inlet.send(long()));
            tokio::select! {
                biased;
                _ = &mut waits => panic!("there is no room"),
                () = std::future::ready(()) => {}
            }
            assert_eq!(outlet.recv().await.unwrap(), [2; 9]);
            waits.await.unwrap();
            assert_eq!(outlet.recv().await.unwrap(), long());
            inlet.send(long()).await.unwrap();
            drop(outlet);
            assert!(inlet.send(long()).await.is_err(), "nobody takes it");
        });
    }
}
