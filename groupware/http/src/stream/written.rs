//! A body that a thread of its own writes, as fast as the client receives it: for what is too large to be
//! held, and lies nowhere as it is sent.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::response::Response;
use bytes::Bytes;
use groupware_runtime::Caller;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use super::{StreamSlot, Streamed, Streams};
use crate::error::ApiError;
use crate::reply::with;

/// Most bodies that are written at once: each has a thread, that mostly waits for its client.
const AT_ONCE: usize = 8;
/// What is sent at once.
const PIECE_BYTES: usize = 64 << 10;
/// Most pieces that wait for the client.
const PIECES: usize = 2;

/// The body. Whoever writes it learns at the next piece that nobody wants it any more.
#[derive(Debug)]
pub struct WrittenBody {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    _slot: StreamSlot,
}

/// The place of a writer among those that may be.
struct Writer {
    of: Arc<Mutex<HashSet<String>>>,
    user: String,
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut writers = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        writers.remove(&self.user);
    }
}

/// Where the thread writes to.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES)];
        let piece = Bytes::copy_from_slice(bytes);
        let sent = self.0.blocking_send(Ok(piece));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Streams {
    /// A body that `write` writes, one for each user at a time. If it fails, so does the body: the client
    /// sees that it isn't whole.
    ///
    /// # Errors
    /// 503 if there is one for this user already, or if there are as many as there may be.
    pub async fn written(
        &self,
        caller: &Caller,
        user: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Result<WrittenBody, ApiError> {
        let writer = self.writer(user)?;
        let slot = self.slot(caller, user).await?;
        let (sender, pieces) = mpsc::channel(PIECES);
        tokio::task::spawn_blocking(move || {
            let end = sender.clone();
            let mut buffer = BufWriter::with_capacity(PIECE_BYTES, Pieces(sender));
            let written = write(&mut buffer).and_then(|()| buffer.flush());
            // Whoever sees the body's end may ask for the next one at once.
            drop((buffer, writer));
            if let Err(error) = written {
                let _ = end.blocking_send(Err(error));
            }
        });
        Ok(WrittenBody {
            pieces,
            _slot: slot,
        })
    }

    fn writer(&self, user: &str) -> Result<Writer, ApiError> {
        let later = |message| ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 30);
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if writers.len() >= AT_ONCE {
            return Err(later("Too many archives are being made: try again later."));
        }
        if !writers.insert(user.to_owned()) {
            return Err(later("An archive is being made already: wait for its end."));
        }
        Ok(Writer {
            of: Arc::clone(&self.writers),
            user: user.to_owned(),
        })
    }
}

impl WrittenBody {
    /// The answer: a file to be kept under this name, of letters, digits, `.`, `_`, and `-`.
    pub fn into_file(self, name: &str, media_type: &'static str) -> Response {
        let mut response = Response::new(axum::body::Body::new(self));
        response.extensions_mut().insert(Streamed);
        let disposition = format!("attachment; filename=\"{name}\"");
        for (header, value) in [
            (CONTENT_TYPE, media_type),
            (CONTENT_DISPOSITION, &disposition),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-store"),
        ] {
            response = with(response, header, value);
        }
        response
    }
}

impl Body for WrittenBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = self.pieces.poll_recv(context);
        next.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn bytes() -> Vec<u8> {
        (0_u32..100_000).flat_map(u32::to_le_bytes).collect()
    }

    #[tokio::test]
    async fn a_body_arrives_as_it_is_written_and_one_of_each_user_at_a_time() {
        let (streams, caller) = (Streams::new(), Caller::internal());
        let write = |to: &mut dyn Write| to.write_all(&bytes());
        let mut body = streams.written(&caller, "ada", write).await.unwrap();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        // The rest waits for whoever reads: it is not yet all written.
        let second = streams.written(&caller, "ada", write).await;
        assert_eq!(
            second.unwrap_err().status(),
            StatusCode::SERVICE_UNAVAILABLE
        );
        let other = streams.written(&caller, "ben", write).await.unwrap();
        let rest = body.collect().await.unwrap().to_bytes();
        assert!([first, rest].concat() == bytes());
        drop(other);
        for _ in 0..200 {
            let next = streams.written(&caller, "ada", |to| to.write_all(b"x"));
            let body = next.await.unwrap().collect().await.unwrap();
            assert_eq!(body.to_bytes(), "x");
        }
    }

    #[tokio::test]
    async fn who_goes_away_ends_the_writing_and_who_fails_breaks_the_body_off() {
        let (streams, caller) = (Streams::new(), Caller::internal());
        let (ended, end) = tokio::sync::oneshot::channel();
        let body = streams.written(&caller, "ada", move |to| {
            let written = (0..).try_for_each(|_: u64| to.write_all(&bytes()));
            let _ = ended.send(written.as_ref().map_err(io::Error::kind).err());
            written
        });
        drop(body.await.unwrap());
        assert_eq!(end.await.unwrap(), Some(io::ErrorKind::BrokenPipe));
        let failing = |to: &mut dyn Write| {
            to.write_all(b"x")?;
            Err(io::Error::other("a test asks for it"))
        };
        let body = streams.written(&caller, "ben", failing).await.unwrap();
        assert!(body.collect().await.is_err());
    }
}
