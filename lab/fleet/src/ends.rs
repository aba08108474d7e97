//! The ends of a trial's way, for threads that wait: what a carrier carries goes in and comes out here, and little of it
//! waits.

use std::io;
use std::sync::Arc;

use lab_driver::remote::{FrameSink, FrameSource, MAX_FRAME_BYTES, MessageError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Frames that may wait between a thread and its carrier.
const WAITING: usize = 64;
/// Bytes of them: the longest frame has room, and short ones beside it.
const WAITING_BYTES: u32 = MAX_FRAME_BYTES + (16 << 20);

/// A frame that waits, with the room that it takes.
struct Frame {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

/// Where frames are put.
pub(crate) struct Inlet {
    frames: mpsc::Sender<Frame>,
    room: Arc<Semaphore>,
    /// Bytes of room.
    most: u32,
}

/// Where they come out, in their order.
pub(crate) struct Outlet(mpsc::Receiver<Frame>);

/// Nobody takes frames there any more.
#[derive(Debug)]
pub(crate) struct Closed;

/// A way for frames from one to another.
pub(crate) fn way() -> (Inlet, Outlet) {
    with_room(WAITING_BYTES)
}

fn with_room(most: u32) -> (Inlet, Outlet) {
    let (frames, come) = mpsc::channel(WAITING);
    let room = Arc::new(Semaphore::new(most as usize));
    (Inlet { frames, room, most }, Outlet(come))
}

impl Inlet {
    /// Puts one there, once there is room for it.
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
    /// The next one; `None` when no other comes.
    pub(crate) async fn recv(&mut self) -> Option<Vec<u8>> {
        Some(self.0.recv().await?.bytes)
    }
}

/// Where a thread puts frames that are to be carried, with what it waits by.
pub(crate) struct Sink(pub(crate) Inlet, pub(crate) Handle);

/// Where a thread gets frames that came.
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
