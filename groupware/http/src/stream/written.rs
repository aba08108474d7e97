//! A body that a thread writes as fast as the client receives it: for content that is too large for
//! memory, and is not stored in the form it is sent.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::response::Response;
use bytes::Bytes;
use groupware_net::{FairSemaphore, Permit, Principal};
use groupware_runtime::Caller;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use hyper::body::{Body, Frame};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{StreamSlot, Streamed, Streams, place};
use crate::error::ApiError;
use crate::reply::with;

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 << 10;
/// Most pieces that wait for the client.
const PIECES: usize = 2;

/// The body. After it is dropped, the writer's next piece fails.
#[derive(Debug)]
pub struct WrittenBody {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    _slot: StreamSlot,
    _place: Permit,
}

/// The writer of a user's body; each user has one at most.
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

/// The thread's output, during its turn. While the thread waits for the client, others have the turn.
struct Pieces {
    to: mpsc::Sender<io::Result<Bytes>>,
    turns: FairSemaphore,
    source: Principal,
    turn: Option<Permit>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.turn.is_none() {
            let turn = self.turns.take(&self.source, 1);
            self.turn = Some(Handle::current().block_on(turn));
        }
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES)];
        let piece = Ok(Bytes::copy_from_slice(bytes));
        let sent = match self.to.try_send(piece) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(piece)) => {
                self.turn = None;
                self.to.blocking_send(piece).is_ok()
            }
        };
        match sent {
            true => Ok(bytes.len()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Streams {
    /// Returns a body that `write` writes, one per user at a time. If `write` fails, the body fails
    /// too: the client sees that it isn't complete.
    ///
    /// # Errors
    /// 503 if the user has one already, or if the maximum number is reached for long.
    pub async fn written(
        &self,
        caller: &Caller,
        user: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Result<WrittenBody, ApiError> {
        let writer = self.writer(user)?;
        let place = place(&self.exports, caller, user).await;
        let place = place.ok_or_else(|| {
            let message = "Too many archives are being made: try again later.";
            ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 30)
        })?;
        let slot = self.slot(caller, user).await?;
        let (sender, pieces) = mpsc::channel(PIECES);
        let (turns, source) = (self.at_work.clone(), caller.source());
        tokio::task::spawn_blocking(move || {
            let end = sender.clone();
            let pieces = Pieces {
                to: sender,
                turns,
                source,
                turn: None,
            };
            let mut buffer = BufWriter::with_capacity(PIECE_BYTES, pieces);
            let written = write(&mut buffer).and_then(|()| buffer.flush());
            // A client that sees the body's end may ask for the next one at once.
            drop((buffer, writer));
            if let Err(error) = written {
                let _ = end.blocking_send(Err(error));
            }
        });
        Ok(WrittenBody {
            pieces,
            _slot: slot,
            _place: place,
        })
    }

    fn writer(&self, user: &str) -> Result<Writer, ApiError> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if !writers.insert(user.to_owned()) {
            let message = "An archive is being made already: wait for its end.";
            return Err(ApiError::later(
                StatusCode::SERVICE_UNAVAILABLE,
                message,
                30,
            ));
        }
        Ok(Writer {
            of: Arc::clone(&self.writers),
            user: user.to_owned(),
        })
    }
}

impl WrittenBody {
    /// Returns the answer: a file to be saved under this name, of letters, digits, `.`, `_`, and `-`.
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
        // The rest waits for the reader: it is not yet all written.
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
    async fn slow_readers_hold_up_no_other_user() {
        let streams = Streams::new();
        let write = |to: &mut dyn Write| to.write_all(&bytes());
        let mut held = Vec::new();
        for number in 0..super::super::EXPORTS_AT_WORK * 2 {
            let caller = Caller::internal();
            let name = format!("user{number}");
            let mut body = streams.written(&caller, &name, write).await.unwrap();
            // The thread has started, and waits for the client.
            assert!(body.frame().await.unwrap().is_ok());
            held.push(body);
        }
        let caller = Caller::internal();
        let body = streams.written(&caller, "ada", write).await.unwrap();
        assert!(body.collect().await.unwrap().to_bytes() == bytes());
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
