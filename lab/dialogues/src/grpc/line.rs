//! HTTP/2 without I/O: an `h2` connection over a pipe in memory, and its streams, which are polled whenever data was
//! received. It knows the frames of messages, but not their content.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};
use lab_client::dialogue::{StreamEnd, StreamSlot};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::messages::GrpcMessages;
use super::status::Status;

/// Flow-control windows for received data, bytes: of one call, and of all calls on a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Maximum bytes of a response's headers.
const MAX_HEADERS: u32 = 64 << 10;

/// A connection.
pub(super) struct Http {
    pipe: Rc<RefCell<Pipe>>,
    connection: Connection<End, Bytes>,
    send: SendRequest<Bytes>,
    pub(super) has_ended: bool,
}

/// Received data that is not read yet, and data to send.
#[derive(Default)]
struct Pipe {
    heard: Vec<u8>,
    read: usize,
    said: Vec<u8>,
}

/// The end of the pipe that `h2` uses.
struct End(Rc<RefCell<Pipe>>);

/// A call under way.
pub(super) struct Stream {
    sending: SendStream<Bytes>,
    left: VecDeque<Bytes>,
    /// Whether the stream ends after the data left to send, and whether the end was sent.
    ends: bool,
    has_ended: bool,
    answer: Answering,
    pub(super) messages: GrpcMessages,
    /// Received bytes of the response; `None` before its head.
    pub(super) came: Option<u64>,
    /// Set on a connection that users share.
    _place: Option<StreamSlot>,
}

enum Answering {
    Head(ResponseFuture),
    Body(RecvStream),
    Over(Status),
}

/// Whether a call can start.
pub(super) enum Begun {
    Yes(Box<Stream>),
    /// The server allows no more concurrent calls.
    NotYet,
    /// The server accepts no more calls on this connection.
    No,
}

/// Why a stream ended without trailers.
pub(super) enum Broken {
    /// Ended by the server.
    Ended(Ended),
    /// The connection has ended.
    Connection(String),
    /// The received data is invalid.
    Fault(String),
}

/// How a server ends a stream.
pub(super) struct Ended {
    pub(super) status: Status,
    /// Whether the server also ends the connection.
    pub(super) leaves: bool,
    /// Whether the server reports that it did not process the call (RFC 9113, section 8.7).
    pub(super) did_nothing: bool,
}

impl Http {
    /// Creates a connection whose preface is to be sent.
    pub(super) fn begin() -> Result<Self, String> {
        let pipe = Rc::<RefCell<Pipe>>::default();
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEADERS);
        let handshake = pin!(builder.handshake(End(Rc::clone(&pipe))));
        let Poll::Ready(begun) = handshake.poll(&mut context()) else {
            return Err("a connection doesn't begin".to_owned());
        };
        let (send, connection) =
            begun.map_err(|error| format!("a connection doesn't begin: {error}"))?;
        let mut http = Self {
            pipe,
            connection,
            send,
            has_ended: false,
        };
        http.turn()?;
        Ok(http)
    }

    pub(super) fn hear(&self, bytes: &[u8]) {
        let pipe = &mut *self.pipe.borrow_mut();
        pipe.heard.drain(..pipe.read);
        pipe.read = 0;
        pipe.heard.extend_from_slice(bytes);
    }

    /// Appends the data to send now.
    pub(super) fn say(&self, out: &mut Vec<u8>) {
        out.append(&mut self.pipe.borrow_mut().said);
    }

    /// Reads received data, and writes data to send.
    pub(super) fn turn(&mut self) -> Result<(), String> {
        if self.has_ended {
            return Ok(());
        }
        match Pin::new(&mut self.connection).poll(&mut context()) {
            Poll::Pending => Ok(()),
            Poll::Ready(Err(error)) if !error.is_remote() => Err(foreign(&error)),
            Poll::Ready(_) => {
                self.has_ended = true;
                Ok(())
            }
        }
    }

    /// Returns true if calls are possible on it, now or later.
    pub(super) fn goes_on(&mut self) -> bool {
        let turned = self.turn().is_ok() && !self.has_ended;
        turned && !matches!(self.send.poll_ready(&mut context()), Poll::Ready(Err(_)))
    }

    /// Starts a call, and then takes its head.
    pub(super) fn call(&mut self, head: &mut Option<Request<()>>) -> Result<Begun, String> {
        self.turn()?;
        if self.has_ended {
            return Ok(Begun::No);
        }
        match self.send.poll_ready(&mut context()) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Ok(Begun::No),
            Poll::Pending => return Ok(Begun::NotYet),
        }
        let head = head.take().ok_or("there is nothing to call")?;
        let (answer, sending) = match self.send.send_request(head, false) {
            Ok(begun) => begun,
            Err(error) if error.is_remote() => return Ok(Begun::No),
            Err(error) => return Err(format!("the call can't be said: {error}")),
        };
        Ok(Begun::Yes(Box::new(Stream::new(answer, sending, None))))
    }
}

impl Stream {
    fn new(answer: ResponseFuture, sending: SendStream<Bytes>, place: Option<StreamSlot>) -> Self {
        Self {
            sending,
            left: VecDeque::new(),
            ends: false,
            has_ended: false,
            answer: Answering::Head(answer),
            messages: GrpcMessages::default(),
            came: None,
            _place: place,
        }
    }

    /// Starts a call on a connection that users share.
    pub(super) fn begin(
        mut to: SendRequest<Bytes>,
        place: StreamSlot,
        head: Request<()>,
    ) -> Result<Box<Self>, StreamEnd> {
        let (answer, sending) = to.send_request(head, false).map_err(|error| {
            match error.is_io() || error.is_go_away() {
                true => StreamEnd::Unsent(format!("the connection takes no more calls: {error}")),
                false => StreamEnd::Fault(format!("the call can't be said: {error}")),
            }
        })?;
        Ok(Box::new(Self::new(answer, sending, Some(place))))
    }

    /// Queues data to send, and whether it is the last.
    pub(super) fn say(&mut self, pieces: &mut VecDeque<Bytes>, ends: bool) {
        self.left.append(pieces);
        self.ends = ends;
        self.sending
            .reserve_capacity(self.left.iter().map(Bytes::len).sum());
    }

    /// Returns true if all data was sent.
    pub(super) fn has_said(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns how the call ended, if it has.
    pub(super) fn status(&self) -> Option<&Status> {
        match &self.answer {
            Answering::Over(status) => Some(status),
            _ => None,
        }
    }

    /// Sends what the server's windows allow. If sending fails, the end of the response has the reason.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) {
        while let Some(first) = self.left.front_mut() {
            let room = match self.sending.capacity() {
                0 => match self.sending.poll_capacity(cx) {
                    Poll::Ready(Some(Ok(room @ 1..))) => room,
                    Poll::Pending | Poll::Ready(Some(Ok(0))) => return,
                    Poll::Ready(_) => return self.give_up(),
                },
                room => room,
            };
            let piece = first.split_to(room.min(first.len()));
            if first.is_empty() {
                self.left.pop_front();
            }
            let last = self.left.is_empty() && self.ends;
            if self.sending.send_data(piece, last).is_err() {
                return self.give_up();
            }
            self.has_ended |= last;
        }
        if self.ends && !self.has_ended {
            self.has_ended = true;
            let _told_by_the_answer = self.sending.send_data(Bytes::new(), true);
        }
    }

    fn give_up(&mut self) {
        self.left.clear();
        self.has_ended = true;
    }

    /// Processes received data of the response; returns whether there was any.
    pub(super) fn hear(&mut self, cx: &mut Context<'_>) -> Result<bool, Broken> {
        let heard = match &mut self.answer {
            Answering::Over(_) => return Ok(false),
            Answering::Head(head) => match Pin::new(head).poll(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(head) => head.map(|head| {
                    let (head, body) = head.into_parts();
                    (head.status, head.headers, body)
                }),
            },
            Answering::Body(_) => return self.hear_body(cx),
        };
        let (status, headers, body) = heard.map_err(Broken::of)?;
        self.came = Some(0);
        self.answer = match headed(status, &headers, body.is_end_stream())? {
            Some(status) => Answering::Over(status),
            None => Answering::Body(body),
        };
        Ok(true)
    }

    fn hear_body(&mut self, cx: &mut Context<'_>) -> Result<bool, Broken> {
        let Answering::Body(body) = &mut self.answer else {
            return Ok(false);
        };
        match body.poll_data(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Some(data)) => {
                let data = data.map_err(Broken::of)?;
                // Fails only if more is released than was received.
                let _released = body.flow_control().release_capacity(data.len());
                self.messages.hear(&data);
                self.came = Some(self.came.unwrap_or_default() + data.len() as u64);
                return Ok(true);
            }
            Poll::Ready(None) => {}
        }
        let trailers = match body.poll_trailers(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(trailers) => trailers.map_err(Broken::of)?,
        };
        let trailers = trailers.unwrap_or_default();
        let status = Status::of_trailers(&trailers).map_err(Broken::Fault)?;
        let missing = || Broken::Fault("the call ended without a `grpc-status`".to_owned());
        self.answer = Answering::Over(status.ok_or_else(missing)?);
        Ok(true)
    }
}

/// Returns how the call ended, if its head alone decides that.
fn headed(status: StatusCode, headers: &HeaderMap, is_all: bool) -> Result<Option<Status>, Broken> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default();
    if status != StatusCode::OK || !kind.starts_with("application/grpc") {
        return Ok(Some(Status::of_http(status, kind)));
    }
    if !is_all {
        return Ok(None);
    }
    let status = Status::of_trailers(headers).map_err(Broken::Fault)?;
    let missing =
        || Broken::Fault("the answer has neither messages nor a `grpc-status`".to_owned());
    status.ok_or_else(missing).map(Some)
}

impl Broken {
    /// Classifies a stream error.
    fn of(error: h2::Error) -> Self {
        let reason = error.reason().filter(|_| error.is_remote());
        let refused = reason == Some(Reason::REFUSED_STREAM);
        match reason {
            Some(reason) if error.is_reset() => Self::Ended(Ended {
                status: Status::of_reset(reason),
                leaves: false,
                did_nothing: refused,
            }),
            Some(reason) => {
                let words = format!("the server ends the connection: {}", reason.description());
                Self::Ended(Ended {
                    status: Status::new(super::status::UNAVAILABLE, words),
                    leaves: true,
                    did_nothing: true,
                })
            }
            None => match error.get_io() {
                Some(cause) => Self::Connection(format!(
                    "the connection ended before the answer was whole: {cause}"
                )),
                None => Self::Fault(foreign(&error)),
            },
        }
    }
}

fn foreign(error: &h2::Error) -> String {
    format!("what came is no HTTP/2: {error}")
}

/// Wakes no task: streams are polled again when data is received.
pub(super) fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl AsyncRead for End {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let pipe = &mut *self.0.borrow_mut();
        let left = &pipe.heard[pipe.read..];
        if left.is_empty() {
            return Poll::Pending;
        }
        let count = left.len().min(space.remaining());
        space.put_slice(&left[..count]);
        pipe.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for End {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().said.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
