//! Bodies that are too large to be held: they pass through in buffers, of which there are so many
//! and no more.

mod buffers;
mod disk;
mod inflow;
mod outflow;

pub(crate) use buffers::{Buffer, Buffers};
pub(crate) use disk::Disk;
pub(crate) use inflow::{Flow, Inflow};
pub(crate) use outflow::FileBody;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
pub(crate) const STREAMS: usize = 256;
/// Most of one user's.
const STREAMS_OF_USER: usize = STREAMS / 2;
/// Longest wait for one of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// A mark on a response whose body is streamed: it takes its memory from here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streamed;

/// One of the bodies that may be streamed, and one of a user's.
#[derive(Debug)]
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_user: OwnedSemaphorePermit,
}

/// What streaming takes.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) incoming: Arc<Buffers>,
    pub(crate) outgoing: Arc<Buffers>,
    pub(crate) disk: Disk,
    places: Arc<Semaphore>,
    /// Of users with bodies under way.
    places_of_users: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            incoming: Arc::new(Buffers::new(IN_BYTES)),
            outgoing: Arc::new(Buffers::new(OUT_BYTES)),
            disk: Disk::new(),
            places: Arc::new(Semaphore::new(STREAMS)),
            places_of_users: Mutex::default(),
        }
    }

    /// Waits for a place, for a user who leaves some to others.
    ///
    /// # Errors
    /// 503 if there is none for long.
    pub(crate) async fn place(&self, user: &str) -> Result<Place, ApiError> {
        let of_user = self.places_of(user);
        let place = async {
            // Who waits for a place of their own takes none of all meanwhile.
            let of_user = of_user.acquire_owned().await?;
            let of_all = Arc::clone(&self.places).acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>(Place {
                _of_all: of_all,
                _of_user: of_user,
            })
        };
        match crate::turn::step_aside(tokio::time::timeout(PATIENCE, place)).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => {
                let message = "Too many uploads and downloads are under way.";
                Err(ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 5))
            }
        }
    }

    fn places_of(&self, user: &str) -> Arc<Semaphore> {
        let users = self.places_of_users.lock();
        let mut users = users.unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = users.get(user) {
            return Arc::clone(places);
        }
        // Nobody holds or awaits a place of those that only the table knows.
        users.retain(|_, places| Arc::strong_count(places) > 1);
        let places = Arc::new(Semaphore::new(STREAMS_OF_USER));
        users.insert(user.to_owned(), Arc::clone(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_user_leaves_places_to_others() {
        let streams = Streams::new();
        let mut held = Vec::new();
        for _ in 0..STREAMS_OF_USER {
            held.push(streams.place("ada").await.unwrap());
        }
        {
            let mut next = std::pin::pin!(streams.place("ada"));
            tokio::select! {
                biased;
                _ = next.as_mut() => panic!("these are all of hers"),
                () = std::future::ready(()) => {}
            }
            held.push(streams.place("bob").await.unwrap());
            held.remove(0);
            held.push(next.await.unwrap());
        }
        drop(held);
        drop(streams.place("eve").await.unwrap());
        assert_eq!(streams.places_of_users.lock().unwrap().len(), 1);
        assert_eq!(streams.places.available_permits(), STREAMS);
    }
}
