//! Bodies of requests that are answered before their end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use groupware_net::ConnectionActivity;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// A body that records in its connection that it was not read to its end: the client still sends,
/// and the answer must outlive that.
#[derive(Debug)]
pub(crate) struct Watchful {
    body: Incoming,
    pulse: Arc<ConnectionActivity>,
    /// The body has ended or failed.
    is_over: bool,
}

impl Watchful {
    /// Records this body's state in `pulse`.
    pub(crate) fn new(body: Incoming, pulse: Arc<ConnectionActivity>) -> Self {
        Self {
            body,
            pulse,
            is_over: false,
        }
    }
}

impl Body for Watchful {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.is_over = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watchful {
    fn drop(&mut self) {
        if !self.is_over && !self.body.is_end_stream() {
            self.pulse.give_up_body();
        }
    }
}
