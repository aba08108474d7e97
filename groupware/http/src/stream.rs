//! Bodies that are too large to be held: they pass through in buffers, of which there are so many
//! and no more.

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

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_runtime::Caller;
use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Memory for bodies of requests under way. With [`OUT_BYTES`], it stays below 64 MiB, however many
/// uploads and downloads there are.
const IN_BYTES: usize = 24 << 20;
/// Memory for bodies of responses under way. As much again may go to those that get none of it, a
/// few small pieces each.
const OUT_BYTES: usize = 12 << 20;
/// Most bodies that are streamed at once; each has a file open.
pub const STREAMS: usize = 256;
/// Most of one user's.
const STREAMS_OF_USER: usize = STREAMS / 2;
/// Longest wait for one of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// A mark on a response whose body is streamed: it takes its memory from here.
#[derive(Debug, Clone, Copy)]
pub struct Streamed;

/// One of the bodies that may be streamed, and one of a user's.
#[derive(Debug)]
pub struct StreamSlot {
    _of_all: OwnedSemaphorePermit,
    _of_user: OwnedSemaphorePermit,
}

/// What streaming takes.
#[derive(Debug)]
pub struct Streams {
    /// Buffers of requests' bodies.
    pub incoming: Arc<Buffers>,
    /// Buffers of responses' bodies.
    pub outgoing: Arc<Buffers>,
    /// The way to threads that may wait for the disk.
    pub disk: Disk,
    slots: Arc<Semaphore>,
    /// Of users with bodies under way.
    slots_of_users: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Whose bodies are being written.
    writers: Arc<Mutex<HashSet<String>>>,
}

impl Streams {
    /// All that there may be.
    #[expect(
        clippy::new_without_default,
        reason = "it is no value like others: a server has one"
    )]
    pub fn new() -> Self {
        Self {
            incoming: Arc::new(Buffers::new(IN_BYTES)),
            outgoing: Arc::new(Buffers::new(OUT_BYTES)),
            disk: Disk::new(),
            slots: Arc::new(Semaphore::new(STREAMS)),
            slots_of_users: Mutex::default(),
            writers: Arc::default(),
        }
    }

    /// Waits for a slot, for a user who leaves some to others.
    ///
    /// # Errors
    /// 503 if there is none for long.
    pub async fn slot(&self, caller: &Caller, user: &str) -> Result<StreamSlot, ApiError> {
        let of_user = self.slots_of(user);
        let slot = async {
            // Who waits for a slot of their own takes none of all meanwhile.
            let of_user = of_user.acquire_owned().await?;
            let of_all = Arc::clone(&self.slots).acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>(StreamSlot {
                _of_all: of_all,
                _of_user: of_user,
            })
        };
        match caller.give_way(tokio::time::timeout(PATIENCE, slot)).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => {
                let message = "Too many uploads and downloads are under way.";
                Err(ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 5))
            }
        }
    }

    fn slots_of(&self, user: &str) -> Arc<Semaphore> {
        let users = self.slots_of_users.lock();
        let mut users = users.unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = users.get(user) {
            return Arc::clone(slots);
        }
        // Nobody holds or awaits a slot of those that only the table knows.
        users.retain(|_, slots| Arc::strong_count(slots) > 1);
        let slots = Arc::new(Semaphore::new(STREAMS_OF_USER));
        users.insert(user.to_owned(), Arc::clone(&slots));
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_user_leaves_slots_to_others() {
        let (streams, caller) = (Streams::new(), Caller::internal());
        let mut held = Vec::new();
        for _ in 0..STREAMS_OF_USER {
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
        assert_eq!(streams.slots_of_users.lock().unwrap().len(), 1);
        assert_eq!(streams.slots.available_permits(), STREAMS);
    }
}
