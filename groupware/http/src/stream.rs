//! Bodies that are too large for memory: they pass through a bounded number of buffers.

mod buffers;
mod disk;
mod inflow;
mod outflow;
mod written;

pub use buffers::{Buffer, Buffers};
pub use disk::Disk;
pub use inflow::{Flow, Inflow};
pub use outflow::{FileBody, Pieces};
pub use written::WrittenBody;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use groupware_net::{FairSemaphore, Gauge, Permit, Principal};
use groupware_runtime::Caller;
use http::StatusCode;

use crate::error::ApiError;

/// Memory for bodies of requests under way. With [`OUT_BYTES`], it stays below 64 MiB, however many
/// uploads and downloads there are.
const IN_BYTES: usize = 24 << 20;
/// Memory for bodies of responses under way. As much again may be used by bodies without a buffer,
/// a few small pieces each.
const OUT_BYTES: usize = 12 << 20;
/// Most bodies that are streamed at once; each has a file open.
pub const STREAMS: usize = 256;
/// Most bodies that threads write at once; each user has one at most.
const EXPORTS: usize = 64;
/// Most of these threads that run at once; the others wait for their clients.
const EXPORTS_AT_WORK: usize = 8;
/// Longest wait for a place.
const PATIENCE: Duration = Duration::from_secs(10);

/// Marks a response whose body is streamed: its memory is counted here.
#[derive(Debug, Clone, Copy)]
pub struct Streamed;

/// A permit for a streamed body.
#[derive(Debug)]
pub struct StreamSlot {
    _permit: Permit,
}

/// The resources of streaming.
#[derive(Debug)]
pub struct Streams {
    /// Buffers of requests' bodies.
    pub incoming: Arc<Buffers>,
    /// Buffers of responses' bodies.
    pub outgoing: Arc<Buffers>,
    /// The blocking pool for disk work.
    pub disk: Disk,
    slots: FairSemaphore,
    exports: FairSemaphore,
    /// Permits of the threads that write bodies.
    at_work: FairSemaphore,
    /// The users whose bodies are being written.
    writers: Arc<Mutex<HashSet<String>>>,
}

impl Streams {
    /// Returns all resources, unused.
    #[expect(
        clippy::new_without_default,
        reason = "it is no value like others: a server has one"
    )]
    pub fn new() -> Self {
        Self {
            incoming: Arc::new(Buffers::new(IN_BYTES)),
            outgoing: Arc::new(Buffers::new(OUT_BYTES)),
            disk: Disk::new(),
            slots: FairSemaphore::new(STREAMS),
            exports: FairSemaphore::new(EXPORTS),
            at_work: FairSemaphore::of_turns(EXPORTS_AT_WORK, usize::MAX),
            writers: Arc::default(),
        }
    }

    /// Gauges of the slots, and of the bodies that threads write.
    pub fn gauges(&self) -> [Gauge; 2] {
        [self.slots.gauge(), self.exports.gauge()]
    }

    /// Waits for a slot of a user's share, or of an address' share without a user. If others wait,
    /// the connection of the source that holds most slots is closed.
    ///
    /// # Errors
    /// 503 if none is free for long.
    pub async fn slot(&self, caller: &Caller, user: &str) -> Result<StreamSlot, ApiError> {
        let permit = place(&self.slots, caller, user).await;
        match permit {
            Some(permit) => Ok(StreamSlot { _permit: permit }),
            None => {
                let message = "Too many uploads and downloads are under way.";
                Err(ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 5))
            }
        }
    }
}

/// Takes a place in a pool; `None` if none is free for long. Users behind a trusted program have shares, too.
async fn place(pool: &FairSemaphore, caller: &Caller, user: &str) -> Option<Permit> {
    let source = match caller.source() {
        Principal::Trusted => Principal::User(user.into()),
        source => source,
    };
    let place = pool.take_or_yield(&source, 1, caller.ticket());
    let place = tokio::time::timeout(PATIENCE, place);
    caller.yield_until(place).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_user_leaves_slots_to_others() {
        let (streams, caller) = (Streams::new(), Caller::internal());
        let mut held = Vec::new();
        for _ in 0..STREAMS / 4 {
            held.push(streams.slot(&caller, "ada").await.unwrap());
        }
        {
            let mut next = std::pin::pin!(streams.slot(&caller, "ada"));
            tokio::select! {
                biased;
                _ = next.as_mut() => panic!("these are all of hers"),
                () = std::future::ready(()) => {}
            }
            held.push(streams.slot(&caller, "bob").await.unwrap());
            held.remove(0);
            held.push(next.await.unwrap());
        }
        drop(held);
        drop(streams.slot(&caller, "eve").await.unwrap());
        assert_eq!(streams.slots.free(), STREAMS);
    }

    #[tokio::test]
    async fn strangers_leave_half_of_the_slots_to_users() {
        let (streams, mut held) = (Streams::new(), Vec::new());
        for number in 0..STREAMS / 2 {
            let caller = Caller::at([192, 0, 2, (number % 2) as u8].into());
            held.push(streams.slot(&caller, "").await.unwrap());
        }
        assert_eq!(streams.slots.free(), STREAMS / 2);
        assert!(streams.slot(&Caller::internal(), "ada").await.is_ok());
    }
}
