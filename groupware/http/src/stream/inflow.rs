//! The body of a request, received one buffer at a time, from clients that must keep a pace.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf, Bytes};
use groupware_runtime::Caller;
use http_body_util::BodyExt;
use hyper::body::Body as _;

use super::buffers::{Buffer, Buffers};

/// Bytes of a body, or its end, that must arrive within the body timeout. The largest bodies may
/// take long, but not for ever.
const PACE_BYTES: usize = 64 << 10;

/// The state of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// More is expected.
    More,
    /// The body has ended.
    Ended,
    /// The client sends too slowly.
    Slow,
    /// The connection broke.
    Broken,
}

/// A body under way. Received bytes stay here until they are taken: a caller that stops waiting
/// loses nothing.
#[derive(Debug)]
pub struct Inflow {
    body: Body,
    /// Received, and not yet in a buffer.
    rest: Bytes,
    buffer: Option<Buffer>,
    buffers: Arc<Buffers>,
    timeout: Duration,
    caller: Caller,
}

impl Inflow {
    /// Returns a body that must arrive at the given pace.
    pub fn new(body: Body, buffers: &Arc<Buffers>, timeout: Duration, caller: &Caller) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            buffer: None,
            buffers: Arc::clone(buffers),
            timeout,
            caller: caller.clone(),
        }
    }

    /// Waits until the buffer is full or the body is over. Other requests are worked on meanwhile.
    pub async fn fill(&mut self) -> Flow {
        let caller = self.caller.clone();
        let filled = async {
            loop {
                match tokio::time::timeout(self.timeout, self.portion()).await {
                    Ok(Some(flow)) => return flow,
                    Ok(None) => {}
                    Err(_) => return Flow::Slow,
                }
            }
        };
        caller.yield_until(filled).await
    }

    /// Takes the received bytes, if any.
    pub fn take(&mut self) -> Option<Buffer> {
        self.buffer.take()
    }

    /// Returns a taken buffer, to be filled up.
    pub fn put_back(&mut self, buffer: Buffer) {
        self.buffer = Some(buffer);
    }

    /// Waits for some of the body; `None` if the pace was kept.
    async fn portion(&mut self) -> Option<Flow> {
        let mut count = 0;
        while count < PACE_BYTES {
            if self.rest.is_empty() {
                if self.body.is_end_stream() {
                    return Some(Flow::Ended);
                }
                match self.body.frame().await {
                    None => return Some(Flow::Ended),
                    Some(Err(_)) => return Some(Flow::Broken),
                    // Trailers are ignored.
                    Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                }
                continue;
            }
            // A buffer is taken only when there are bytes for it.
            let buffer = match &mut self.buffer {
                Some(buffer) => buffer,
                empty => empty.insert(self.buffers.take().await),
            };
            let added = buffer.add(&self.rest);
            self.rest.advance(added);
            count += added;
            if buffer.room() == 0 {
                let is_over = self.rest.is_empty() && self.body.is_end_stream();
                return Some(if is_over { Flow::Ended } else { Flow::More });
            }
        }
        None
    }
}
