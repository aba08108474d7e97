//! Large answers on their way out: in memory while their client's share has room, else in an
//! unnamed file, from which they are sent as the client receives them.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use groupware_content::unnamed_file;
use groupware_net::{FairSemaphore, Gauge, Permit, Principal};
use groupware_runtime::Caller;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Body as _;

use crate::budget::{SMALL_BYTES, pool, units};
use crate::error::ApiError;
use crate::stream::{FileBody, Streams};

/// Memory for large answers that clients have yet to receive; the second value is for trusted
/// programs. Small answers are bounded by the number of connections.
const HELD_BYTES: [usize; 2] = [32 << 20, 256 << 20];
/// Disk space for answers that wait in files; the second value is for trusted programs. It counts
/// in no quota: a client that receives slowly need not have stored much.
const FILED_BYTES: [usize; 2] = [1 << 30, 2 << 30];
/// Memory for answers that are being written to files; the second value is for trusted programs. On
/// a slow disk, answers wait for it.
const FILING_BYTES: [usize; 2] = [64 << 20, 256 << 20];

/// Longest wait for room that others hold.
const PATIENCE: Duration = Duration::from_secs(2);

/// Stores large answers that wait for their clients.
#[derive(Debug)]
pub(crate) struct Answers {
    held: FairSemaphore,
    filed: FairSemaphore,
    filing: FairSemaphore,
    streams: Arc<Streams>,
    /// The directory of the files, on the disk that holds them.
    folder: PathBuf,
}

impl Answers {
    pub(crate) fn new(streams: Arc<Streams>, folder: PathBuf) -> Self {
        Self {
            held: pool(HELD_BYTES),
            filed: pool(FILED_BYTES),
            filing: pool(FILING_BYTES),
            streams,
            folder,
        }
    }

    /// Gauges of the memory of waiting answers, the space of their files, and the memory of those
    /// being written.
    pub(crate) fn gauges(&self) -> [Gauge; 3] {
        [self.held.gauge(), self.filed.gauge(), self.filing.gauge()]
    }

    /// Reserves memory for a response in the client's share until its body is sent or dropped, or
    /// sends it from a file.
    ///
    /// # Errors
    /// 503 if the client leaves too many files unread, too many of its answers are being written,
    /// or no room is left.
    pub(crate) async fn send(
        &self,
        caller: &Caller,
        response: Response,
    ) -> Result<Response, ApiError> {
        let size = response.body().size_hint().lower();
        if size <= SMALL_BYTES as u64 {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|_| no_room())?.to_bytes();
        let source = caller.source();
        let body = match self.held.try_take(&source, units(bytes.len())) {
            Some(permit) => Body::from(Bytes::from_owner(HeldBytes {
                bytes,
                _permit: permit,
            })),
            None => Body::new(self.file(caller, &source, bytes).await?),
        };
        Ok(Response::from_parts(parts, body))
    }

    async fn file(
        &self,
        caller: &Caller,
        source: &Principal,
        bytes: Bytes,
    ) -> Result<FileBody, ApiError> {
        let room = taken(&self.filed, caller, units(bytes.len())).await?;
        // An answer that is larger than a share is written alone.
        let memory = units(bytes.len()).min(self.filing.most(source));
        let memory = taken(&self.filing, caller, memory).await?;
        let slot = self.streams.slot(caller, "").await?;
        let (folder, length) = (self.folder.clone(), bytes.len() as u64);
        let write = move || {
            let mut file = unnamed_file(&folder, length)?;
            file.write_all(&bytes)?;
            drop((bytes, memory));
            Ok::<_, std::io::Error>(file)
        };
        let file = self
            .streams
            .disk
            .work(write)
            .await?
            .map_err(|_| no_room())?;
        Ok(FileBody::new(Arc::clone(&self.streams), file, (0, length), slot).in_room(room))
    }
}

/// Takes units for the caller. If others wait and the caller holds most, its connection is closed.
async fn taken(pool: &FairSemaphore, caller: &Caller, units: usize) -> Result<Permit, ApiError> {
    let source = caller.source();
    if !pool.has_share(&source, units) {
        return Err(no_room());
    }
    let taken = pool.take_or_yield(&source, units, caller.ticket());
    let taken = tokio::time::timeout(PATIENCE, taken).await;
    taken.map_err(|_| no_room())
}

fn no_room() -> ApiError {
    let message = "Too many large responses wait to be received.";
    ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 1)
}

/// Bytes that release their memory with the last reference, which is after hyper has written them.
struct HeldBytes {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRANGER: [u8; 4] = [192, 0, 2, 1];

    async fn received(response: Response) -> Bytes {
        response.into_body().collect().await.unwrap().to_bytes()
    }

    fn response(bytes: usize) -> Response {
        Response::new(Body::from(vec![7; bytes]))
    }

    #[tokio::test]
    async fn what_a_share_has_no_room_for_is_sent_from_a_file() {
        let answers = Answers::new(Arc::new(Streams::new()), std::env::temp_dir());
        let (caller, free) = (Caller::at(STRANGER.into()), answers.held.free());
        let share = HELD_BYTES[0] / 4;
        let first = answers.send(&caller, response(share - 1000)).await.unwrap();
        assert!(answers.held.free() < free);
        let taken = answers.held.free();
        let second = answers.send(&caller, response(share)).await.unwrap();
        assert_eq!(answers.held.free(), taken, "it is in a file");
        assert_eq!(second.body().size_hint().exact(), Some(share as u64));
        assert_eq!(received(second).await, vec![7; share]);
        // Other clients have shares of their own.
        let other = answers
            .send(&Caller::at([192, 0, 2, 2].into()), response(share))
            .await;
        assert!(answers.held.free() < taken);
        let bytes = received(first).await;
        let part = bytes.slice(5..6);
        drop((bytes, other));
        assert!(answers.held.free() < free, "a part of it is still there");
        drop(part);
        assert_eq!(answers.held.free(), free);
    }

    #[tokio::test]
    async fn who_leaves_many_files_unread_gets_no_more() {
        let answers = Answers::new(Arc::new(Streams::new()), std::env::temp_dir());
        let caller = Caller::at(STRANGER.into());
        let (source, size) = (caller.source(), SMALL_BYTES * 2);
        let all =
            |pool: &FairSemaphore, but: usize| pool.try_take(&source, pool.most(&source) - but);
        let _memory = all(&answers.held, 0).unwrap();
        let _files = all(&answers.filed, units(size)).unwrap();
        let free = answers.filed.free();
        let last = answers.send(&caller, response(size)).await.unwrap();
        assert_eq!(answers.filed.free(), free - units(size));
        let refused = answers.send(&caller, response(size)).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let other = Caller::at([192, 0, 2, 2].into());
        assert!(answers.send(&other, response(size)).await.is_ok());
        // Its space is free again once the client has received it.
        assert_eq!(received(last).await.len(), size);
        assert_eq!(answers.filed.free(), free);
        assert!(answers.send(&caller, response(size)).await.is_ok());
    }

    #[tokio::test]
    async fn what_waits_for_a_slow_disk_has_a_bound() {
        let answers = Answers::new(Arc::new(Streams::new()), std::env::temp_dir());
        let caller = Caller::at(STRANGER.into());
        let (source, size) = (caller.source(), SMALL_BYTES * 2);
        let all =
            |pool: &FairSemaphore, but: usize| pool.try_take(&source, pool.most(&source) - but);
        let _memory = all(&answers.held, 0).unwrap();
        let free = answers.filing.free();
        // As if other answers of the client were being written.
        let writing = all(&answers.filing, units(size)).unwrap();
        let last = answers.send(&caller, response(size)).await.unwrap();
        assert_eq!(received(last).await.len(), size);
        let too_many = answers.send(&caller, response(size + 1)).await;
        let refused = too_many.unwrap_err().status();
        assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
        drop(writing);
        // A large answer is sent once no other answer of the client is being written, whatever its size.
        let share = FILING_BYTES[0] / 4;
        let large = answers.send(&caller, response(share + 1)).await.unwrap();
        assert_eq!(answers.filing.free(), free, "it is in its file");
        assert_eq!(received(large).await.len(), share + 1);
    }

    #[tokio::test]
    async fn small_responses_need_no_room() {
        let answers = Answers::new(Arc::new(Streams::new()), std::env::temp_dir());
        let free = answers.held.free();
        let small = answers
            .send(&Caller::at(STRANGER.into()), response(SMALL_BYTES))
            .await;
        assert_eq!((answers.held.free(), small.is_ok()), (free, true));
    }
}
