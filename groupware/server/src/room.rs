//! Bounds the memory that bodies of requests and responses take, all together.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Bodies up to this size have room of their own, so that large ones don't hold them up.
pub(crate) const SMALL_BYTES: usize = 64 << 10;
/// Room for small bodies of requests.
const SMALL_ROOM_BYTES: usize = 64 << 20;
/// Room for large bodies of requests.
const LARGE_ROOM_BYTES: usize = 256 << 20;
/// Room for large bodies of responses that clients have yet to receive. Small ones are bounded by
/// the number of connections.
pub(crate) const RESPONSE_ROOM_BYTES: usize = 256 << 20;
/// What room is counted in.
const UNIT_BYTES: usize = 1 << 10;

/// The room that there is.
#[derive(Debug)]
pub(crate) struct Room {
    small: Semaphore,
    large: Semaphore,
    responses: Arc<Semaphore>,
}

impl Room {
    /// `response_bytes` is the room for large bodies of responses.
    pub(crate) fn new(response_bytes: usize) -> Self {
        Self {
            small: Semaphore::new(SMALL_ROOM_BYTES / UNIT_BYTES),
            large: Semaphore::new(LARGE_ROOM_BYTES / UNIT_BYTES),
            responses: Arc::new(Semaphore::new(response_bytes / UNIT_BYTES)),
        }
    }

    /// Waits for room for a request's body of up to so many bytes.
    pub(crate) async fn for_request(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        let (room, most) = match bytes <= SMALL_BYTES {
            true => (&self.small, SMALL_ROOM_BYTES),
            false => (&self.large, LARGE_ROOM_BYTES),
        };
        room.acquire_many(units(bytes.min(most))).await.ok()
    }

    /// Has a response keep room until the last byte of its body is sent or given up; `None` if
    /// there is none.
    pub(crate) async fn for_response(&self, response: Response) -> Option<Response> {
        let size = response.body().size_hint().lower();
        if size <= SMALL_BYTES as u64 {
            return Some(response);
        }
        let bytes = usize::try_from(size).ok()?;
        let permit = Arc::clone(&self.responses)
            .try_acquire_many_owned(units(bytes))
            .ok()?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.ok()?.to_bytes();
        let held = Bytes::from_owner(Held {
            bytes,
            _permit: permit,
        });
        Some(Response::from_parts(parts, Body::from(held)))
    }
}

/// Counted up; more than fits never gets a permit.
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// Bytes that give their room back when the last reference to them goes, which is when hyper has
/// written them, not when it has taken them.
struct Held {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn large_responses_keep_room_as_long_as_their_bytes_live() {
        block_on(async {
            let room = Room::new(200 << 10);
            let response = || Response::new(Body::from(vec![7; 100 << 10]));
            let first = room.for_response(response()).await.unwrap();
            let second = room.for_response(response()).await.unwrap();
            assert!(room.for_response(response()).await.is_none());
            assert_eq!(second.body().size_hint().exact(), Some(100 << 10));
            let bytes = second.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(bytes, vec![7; 100 << 10]);
            let part = bytes.slice(5..6);
            drop(bytes);
            assert!(room.for_response(response()).await.is_none());
            drop((part, first));
            assert!(room.for_response(response()).await.is_some());
            assert_eq!(room.responses.available_permits(), 200);
            // Small ones need none.
            let _all = room.responses.acquire_many(200).await.unwrap();
            let small = Response::new(Body::from(vec![7; SMALL_BYTES]));
            assert!(room.for_response(small).await.is_some());
        });
    }

    #[test]
    fn large_requests_leave_room_for_small_ones() {
        block_on(async {
            let room = Room::new(0);
            let all = room.for_request(usize::MAX).await.unwrap();
            assert_eq!(all.num_permits(), LARGE_ROOM_BYTES / UNIT_BYTES);
            let small = room.for_request(1).await.unwrap();
            assert_eq!(small.num_permits(), 1);
        });
    }
}
