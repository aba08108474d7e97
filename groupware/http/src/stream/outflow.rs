//! A range of a file, or of another source, as the body of a response, read as the client receives it.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use groupware_net::Permit;
use hyper::body::{Body, Frame, SizeHint};

use super::buffers::{BUFFER_BYTES, Buffer};
use super::{StreamSlot, Streams};

/// Longest wait for a buffer. A client holds a buffer until it has received it, and slow clients
/// may hold all: other bodies continue without.
const WAIT: Duration = Duration::from_millis(500);
/// Bytes of a read without a buffer. A connection holds at most three of these pieces.
const PIECE_BYTES: usize = 16 << 10;

/// The source of a body. Calls block, and run on threads that may.
pub trait Pieces: Send + Sync {
    /// Fills the buffer with the bytes from `at` on.
    ///
    /// # Errors
    /// When there are fewer, or they can't be read.
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;
}

impl Pieces for File {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, at)
    }
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Piece>> + Send>>;

/// The result of a read.
struct Piece {
    bytes: Bytes,
    has_buffer: bool,
}

/// The body: a range of a file.
pub struct FileBody {
    streams: Arc<Streams>,
    file: Arc<dyn Pieces>,
    at: u64,
    end: u64,
    /// Longest wait for the next buffer.
    wait: Duration,
    reading: Option<Reading>,
    _slot: StreamSlot,
    _room: Option<Permit>,
}

impl FileBody {
    /// Returns a body of so many bytes from `at` on.
    pub fn new(
        streams: Arc<Streams>,
        file: impl Pieces + 'static,
        (at, length): (u64, u64),
        slot: StreamSlot,
    ) -> Self {
        Self {
            streams,
            file: Arc::new(file),
            at,
            end: at + length,
            wait: WAIT,
            reading: None,
            _slot: slot,
            _room: None,
        }
    }

    /// Holds the permit for the file's disk space until the body is dropped.
    pub(crate) fn in_room(self, room: Permit) -> Self {
        Self {
            _room: Some(room),
            ..self
        }
    }

    /// Reads the next buffer, which is released when the client has received it.
    fn read(&self) -> Reading {
        let (streams, file, at) = (Arc::clone(&self.streams), Arc::clone(&self.file), self.at);
        let (left, wait) = (self.end - at, self.wait);
        Box::pin(async move {
            let buffer = tokio::time::timeout(wait, streams.outgoing.take()).await;
            let work = move || read_piece(&*file, (at, left), buffer.ok());
            let read = streams.disk.work(work);
            read.await
                .map_err(|_| io::Error::other("the server is stopping"))?
        })
    }
}

/// Reads from a position of a file as much as fits.
fn read_piece(
    file: &dyn Pieces,
    (at, left): (u64, u64),
    buffer: Option<Buffer>,
) -> io::Result<Piece> {
    let left = usize::try_from(left).unwrap_or(usize::MAX);
    let has_buffer = buffer.is_some();
    let bytes = match buffer {
        Some(mut buffer) => {
            buffer.fill(left.min(BUFFER_BYTES), |bytes| {
                file.read_exact_at(bytes, at)
            })?;
            Bytes::from_owner(buffer)
        }
        None => {
            let mut piece = vec![0; left.min(PIECE_BYTES)];
            file.read_exact_at(&mut piece, at)?;
            piece.into()
        }
    };
    Ok(Piece { bytes, has_buffer })
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.at == self.end {
            return Poll::Ready(None);
        }
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => self.read(),
        };
        let Poll::Ready(read) = reading.as_mut().poll(context) else {
            self.reading = Some(reading);
            return Poll::Pending;
        };
        let Piece { bytes, has_buffer } = read?;
        self.at += bytes.len() as u64;
        // After a failed wait, a body takes a free buffer or none, without waiting, until one was free.
        self.wait = if has_buffer { WAIT } else { Duration::ZERO };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.end
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.end - self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use groupware_runtime::Caller;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn clients_that_keep_all_buffers_hold_nobody_up() {
        let streams = Arc::new(Streams::new());
        let bytes: Vec<u8> = (0_u32..200_000).flat_map(u32::to_le_bytes).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut kept = Vec::new();
        while let Ok(buffer) = tokio::time::timeout(Duration::ZERO, streams.outgoing.take()).await {
            kept.push(buffer);
        }
        let slot = streams.slot(&Caller::internal(), "ada").await.unwrap();
        let span = (1, bytes.len() as u64 - 1);
        let mut body = FileBody::new(Arc::clone(&streams), file, span, slot);
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first.len(), PIECE_BYTES);
        // A buffer is free again.
        kept.pop();
        let second = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(second.len(), BUFFER_BYTES);
        let mut all = [first, second].concat();
        all.extend_from_slice(&body.collect().await.unwrap().to_bytes());
        assert!(all == bytes[1..]);
    }
}
