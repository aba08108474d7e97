//! One stream: sends the request and reads the response as it arrives. It judges nothing.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::h2::client::ResponseFuture;
use ::h2::{Error, RecvStream, SendStream};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// A request in progress and its response. Dropping it before its end cancels the stream on the server.
pub(super) struct StreamExchange {
    /// The parts still to be sent, and their stream.
    sending: Option<(SendStream<Bytes>, VecDeque<Bytes>)>,
    answer: Answering,
}

enum Answering {
    Head(ResponseFuture),
    Body(RecvStream),
    Trailers(RecvStream),
    Over(Option<RecvStream>),
}

/// The next part of a response.
pub(super) enum ResponsePart {
    /// The head.
    Head(StatusCode, HeaderMap),
    /// A part of the body.
    Data(Bytes),
    /// The response has ended.
    End,
}

impl StreamExchange {
    /// Returns a request whose head is being sent, with the body that follows it.
    pub(super) fn new(
        answer: ResponseFuture,
        mut stream: SendStream<Bytes>,
        body: VecDeque<Bytes>,
    ) -> Self {
        let sending = (!body.is_empty()).then(|| {
            stream.reserve_capacity(body.iter().map(Bytes::len).sum());
            (stream, body)
        });
        Self {
            sending,
            answer: Answering::Head(answer),
        }
    }

    /// Continues sending, and returns the next received part.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponsePart, Error>> {
        self.send(cx);
        loop {
            match &mut self.answer {
                Answering::Head(future) => {
                    let (head, body) = ready!(Pin::new(future).poll(cx))?.into_parts();
                    self.answer = match body.is_end_stream() {
                        true => Answering::Over(Some(body)),
                        false => Answering::Body(body),
                    };
                    return Poll::Ready(Ok(ResponsePart::Head(head.status, head.headers)));
                }
                Answering::Body(body) => {
                    let Some(data) = ready!(body.poll_data(cx)).transpose()? else {
                        self.next(Answering::Trailers);
                        continue;
                    };
                    // It fails only for more than was received.
                    let _released = body.flow_control().release_capacity(data.len());
                    if body.is_end_stream() {
                        self.next(|body| Answering::Over(Some(body)));
                    }
                    return Poll::Ready(Ok(ResponsePart::Data(data)));
                }
                Answering::Trailers(body) => {
                    ready!(body.poll_trailers(cx))?;
                    self.next(|body| Answering::Over(Some(body)));
                }
                Answering::Over(_) => return Poll::Ready(Ok(ResponsePart::End)),
            }
        }
    }

    /// Returns the rest of a finished response.
    pub(super) fn into_rest(self) -> Option<RecvStream> {
        match self.answer {
            Answering::Over(rest) => rest,
            _ => None,
        }
    }

    fn next(&mut self, is: fn(RecvStream) -> Answering) {
        let before = std::mem::replace(&mut self.answer, Answering::Over(None));
        if let Answering::Body(body) | Answering::Trailers(body) = before {
            self.answer = is(body);
        }
    }

    /// Sends as much as the server's windows allow. If sending fails, the response's end has the reason.
    fn send(&mut self, cx: &mut Context<'_>) {
        while let Some((stream, body)) = &mut self.sending {
            // Capacity that is already available is not reported again.
            let room = match stream.capacity() {
                0 => match stream.poll_capacity(cx) {
                    Poll::Pending => return,
                    Poll::Ready(Some(Ok(room))) => room,
                    Poll::Ready(Some(Err(_)) | None) => {
                        self.sending = None;
                        return;
                    }
                },
                room => room,
            };
            let piece = next(body, room);
            let last = body.is_empty();
            if stream.send_data(piece, last).is_err() || last {
                self.sending = None;
            }
        }
    }
}

/// Takes the next part of a body, at most `room` bytes.
fn next(body: &mut VecDeque<Bytes>, room: usize) -> Bytes {
    let Some(first) = body.front_mut() else {
        return Bytes::new();
    };
    let piece = first.split_to(room.min(first.len()));
    if first.is_empty() {
        body.pop_front();
    }
    piece
}
