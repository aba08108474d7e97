//! A part of a file as the body of a response, read as the client receives it.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Place;
use super::buffers::BUFFER_BYTES;
use crate::AppState;

type Reading = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// The body: bytes of a file from one place to another.
pub(crate) struct FileBody {
    state: AppState,
    file: Arc<File>,
    at: u64,
    end: u64,
    reading: Option<Reading>,
    _place: Place,
}

impl FileBody {
    /// So many bytes from `at` on.
    pub(crate) fn new(state: AppState, file: File, (at, length): (u64, u64), place: Place) -> Self {
        Self {
            state,
            file: Arc::new(file),
            at,
            end: at + length,
            reading: None,
            _place: place,
        }
    }

    /// Reads the next buffer. It is given back when the client has received it.
    fn read(&self) -> Reading {
        let (state, file, at) = (self.state.clone(), Arc::clone(&self.file), self.at);
        let left = usize::try_from(self.end - at).unwrap_or(usize::MAX);
        Box::pin(async move {
            let streams = &state.streams;
            let mut buffer = streams.outgoing.take().await;
            let read = streams.disk.work(move || {
                buffer.fill(left.min(BUFFER_BYTES), |bytes| {
                    file.read_exact_at(bytes, at)
                })?;
                Ok(Bytes::from_owner(buffer))
            });
            read.await
                .map_err(|_| io::Error::other("the server is stopping"))?
        })
    }
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
        let bytes = read?;
        self.at += bytes.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.end
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.end - self.at)
    }
}
