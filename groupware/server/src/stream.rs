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

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Memory for bodies of requests under way. With [`OUT_BYTES`], it stays below 64 MiB, however many
/// uploads and downloads there are.
const IN_BYTES: usize = 24 << 20;
/// Memory for bodies of responses under way.
const OUT_BYTES: usize = 12 << 20;
/// Most bodies that are streamed at once; each has a file open.
pub(crate) const STREAMS: usize = 256;
/// Longest wait for one of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// A mark on a response whose body is streamed: it takes its memory from here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streamed;

/// One of the bodies that may be streamed.
pub(crate) type Place = OwnedSemaphorePermit;

/// What streaming takes.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) incoming: Arc<Buffers>,
    pub(crate) outgoing: Arc<Buffers>,
    pub(crate) disk: Disk,
    places: Arc<Semaphore>,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            incoming: Arc::new(Buffers::new(IN_BYTES)),
            outgoing: Arc::new(Buffers::new(OUT_BYTES)),
            disk: Disk::new(),
            places: Arc::new(Semaphore::new(STREAMS)),
        }
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// 503 if there is none for long.
    pub(crate) async fn place(&self) -> Result<Place, ApiError> {
        let place = Arc::clone(&self.places).acquire_owned();
        match crate::turn::step_aside(tokio::time::timeout(PATIENCE, place)).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => {
                let message = "Too many uploads and downloads are under way.";
                Err(ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 5))
            }
        }
    }
}
