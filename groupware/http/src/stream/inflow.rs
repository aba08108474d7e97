//! The body of a request as it comes in, a buffer at a time, from clients that must keep it coming.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf, Bytes};
use groupware_runtime::Caller;
use http_body_util::BodyExt;
use hyper::body::Body as _;

use super::buffers::{Buffer, Buffers};

/// So much of a body, or its end, comes in within the time that a body may take. A body that is as
/// large as they get may take long, but not for ever.
const PACE_BYTES: usize = 64 << 10;

/// What has become of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// There is more of it.
    More,
    /// That was all.
    Ended,
    /// It comes too slowly.
    Slow,
    /// The connection broke.
    Broken,
}

/// A body under way. What has come in stays here until it is taken: whoever stops waiting loses
/// nothing.
#[derive(Debug)]
pub struct Inflow {
    body: Body,
    /// Came in, and is in no buffer yet.
    rest: Bytes,
    buffer: Option<Buffer>,
    buffers: Arc<Buffers>,
    timeout: Duration,
    caller: Caller,
}

impl Inflow {
    /// A body of which so much must come in within this time as the pace asks for.
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

    /// Waits until the buffer is full or the body is over. Others are worked on meanwhile.
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
        caller.give_way(filled).await
    }

    /// What came in, if anything did.
    pub fn take(&mut self) -> Option<Buffer> {
        self.buffer.take()
    }

    /// Puts back what was taken and is to be filled up.
    pub fn put_back(&mut self, buffer: Buffer) {
        self.buffer = Some(buffer);
    }

    /// Waits for some of the body; `None` if there was as much as the pace asks for.
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
                    // Trailers say nothing here.
                    Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                }
                continue;
            }
            // Only who has something to put in gets a buffer.
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
