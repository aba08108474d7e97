//! Receives a chunk and writes it to the disk.

use axum::body::Body;
use groupware_content::{ContentError, Pin, Upload};
use groupware_documents::{self as documents, Context, UploadId};
use groupware_http::{ApiError, Buffer, Flow, Inflow, Owner, StreamSlot, header_text as text};
use groupware_proto_http::tus::{self, Algorithm, Checksum};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use sha1::Digest as _;

use crate::failure::{UploadFailure, stopping};
use crate::front::Tus;
use crate::headers::CHECKSUM;
use crate::open::{Claimed, key};
use crate::segments::remove_later;
use crate::work::change;

/// Bytes of a chunk between two syncs: a crash loses no more than this, and the disk need not write
/// everything at the end.
const CHECKPOINT_BYTES: u64 = 8 << 20;
/// The status of tus for a checksum mismatch.
const CHECKSUM_MISMATCH: u16 = 460;

/// The result of a chunk.
pub(crate) struct Outcome {
    /// The upload's offset, all of it durable.
    pub(crate) offset: u64,
}

/// Why reading the body of a request stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Flow(Flow),
    /// Another request wants the upload.
    UploadRequest,
}

/// Receives a chunk. If the connection breaks, the received bytes are kept, unless the chunk has a
/// checksum. With the last byte, the upload becomes an attachment.
pub(crate) async fn receive(
    front: &Tus,
    owner: &Owner,
    (id, ends): (&UploadId, Ends),
    mut claimed: Claimed,
    (headers, body): (&HeaderMap, Body),
) -> Result<Outcome, UploadFailure> {
    let checksum = text(headers, CHECKSUM)
        .map(tus::checksum)
        .transpose()
        .map_err(ApiError::from)?;
    let left = claimed
        .upload()
        .map_or(0, |upload| upload.allowed() - upload.offset());
    let announced = text(headers, CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > left) {
        return Err(too_long().into());
    }
    let stream = front.streams.slot(owner.caller(), owner.who().user).await?;
    let mut inflow = Inflow::new(
        body,
        &front.streams.incoming,
        front.body_within,
        owner.caller(),
    );
    let mut sum = checksum.map(Sum::new);
    loop {
        let end = tokio::select! {
            biased;
            flow = inflow.fill() => End::Flow(flow),
            () = claimed.asked() => End::UploadRequest,
        };
        let buffer = inflow.take();
        if end == End::Flow(Flow::More) {
            (claimed, sum) = write(front, claimed, (buffer, sum), (NextStep::GoOn, ends)).await?;
            continue;
        }
        let is_over = end == End::Flow(Flow::Ended);
        // A truncated chunk can't match its checksum.
        let then = match is_over || sum.is_none() {
            true => NextStep::Settle,
            false => NextStep::Discard,
        };
        let (mut claimed, _) = write(front, claimed, (buffer, sum.take()), (then, ends)).await?;
        let (offset, length) = claimed
            .upload()
            .map_or((0, 0), |upload| (upload.written(), upload.length()));
        if ends == Ends::AsFile && offset == length && then == NextStep::Settle {
            finish(front, owner, id, (claimed, Some(stream)), true).await?;
        } else if !is_over {
            return Err(cut_off(end).into());
        }
        return Ok(Outcome { offset });
    }
}

/// The result of a complete upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// An attachment.
    AsFile,
    /// A part to be joined, or an upload that may become longer.
    Open,
}

/// The step after the bytes of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    /// More bytes follow.
    GoOn,
    /// The chunk ends, and is made durable; the last chunk is made durable with the finished upload.
    Settle,
    /// The chunk is discarded.
    Discard,
}

/// Writes a buffer in one step on the blocking pool.
async fn write(
    front: &Tus,
    mut claimed: Claimed,
    (buffer, mut sum): (Option<Buffer>, Option<Sum>),
    then: (NextStep, Ends),
) -> Result<(Claimed, Option<Sum>), UploadFailure> {
    let work = move || {
        let Some(upload) = claimed.upload() else {
            return (claimed, sum, Ok(true));
        };
        let written = write_now(upload, buffer.as_ref(), &mut sum, then);
        match &written {
            Ok(_) | Err(ContentError::Full | ContentError::TooLong) => {}
            // The disk has the state acknowledged before the chunk.
            Err(ContentError::Away(_) | ContentError::Refused(_) | ContentError::Taken) => {}
            // The state of the disk is unknown: the next request reads it.
            Err(_) => drop(claimed.take()),
        }
        (claimed, sum, written)
    };
    let (claimed, sum, written) = front.streams.disk.work(work).await?;
    match written? {
        true => Ok((claimed, sum)),
        false => {
            let status = StatusCode::from_u16(CHECKSUM_MISMATCH);
            let status = status.unwrap_or(StatusCode::BAD_REQUEST);
            Err(ApiError::new(status, "The chunk does not fit its checksum.").into())
        }
    }
}

/// Returns whether the bytes match their checksum, as far as this is known.
fn write_now(
    upload: &mut Upload,
    buffer: Option<&Buffer>,
    sum: &mut Option<Sum>,
    (then, ends): (NextStep, Ends),
) -> Result<bool, ContentError> {
    let bytes = buffer.map_or(&[][..], Buffer::bytes);
    if let Err(error) = upload.append(bytes) {
        upload.discard();
        return Err(error);
    }
    if let Some(sum) = sum {
        sum.update(bytes);
    }
    let fits = then != NextStep::Settle || sum.take().is_none_or(Sum::fits);
    if !fits || then == NextStep::Discard {
        upload.discard();
        return Ok(fits);
    }
    let unsettled = upload.written() - upload.offset();
    // Finishing the upload makes it durable.
    let is_whole = ends == Ends::AsFile && upload.written() == upload.length();
    let is_due = match then {
        // Bytes with a checksum are not kept before it matches.
        NextStep::GoOn => sum.is_none() && unsettled >= CHECKPOINT_BYTES,
        _ => unsettled > 0,
    };
    if is_due
        && !is_whole
        && let Err(error) = upload.settle()
    {
        upload.discard();
        return Err(error);
    }
    Ok(true)
}

/// Makes the attachment of an upload with all bytes written: first the content becomes durable in
/// its final place, then the record, then the upload's own file is removed. `is_new` means that
/// this request received the last bytes.
///
/// It continues to its end if the client disconnects: storing a large attachment in an object store
/// takes longer than some clients, and proxies, wait for an answer, and each retry would start again.
///
/// A crash before the record leaves a complete upload; the next request for its offset repeats
/// this.
pub(crate) async fn finish(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (claimed, stream): (Claimed, Option<StreamSlot>),
    is_new: bool,
) -> Result<(), UploadFailure> {
    let (front, whose, id) = (front.clone(), owner.clone(), id.clone());
    let finished = async move {
        let finished = finish_now(&front, &whose, &id, claimed, is_new).await;
        drop(stream);
        finished
    };
    let finished = owner.caller().to_the_end(finished).await;
    finished.unwrap_or_else(|| Err(stopping().into()))
}

async fn finish_now(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    mut claimed: Claimed,
    is_new: bool,
) -> Result<(), UploadFailure> {
    // Another server may have received the last chunk, too.
    let is_shared = is_new && front.content.segments().is_some();
    let at = claimed.upload().filter(|_| is_shared);
    let at = at.map(|upload| upload.offset());
    let (claimed, pin) = place(front, claimed, is_new).await?;
    attach(front, owner, id, (claimed, pin?), at).await
}

/// Records the attachment of an upload with stored content, if the upload is at this offset.
pub(crate) async fn attach(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (mut claimed, pin): (Claimed, Pin),
    at: Option<u64>,
) -> Result<(), UploadFailure> {
    let bits = front.service.random_bits();
    let finish =
        |context: &Context<'_>| documents::finish(context, id, (pin.hash(), pin.placed()), at);
    let segments = change(front, owner, bits, finish).await?;
    if let Some(store) = front.content.segments() {
        remove_later(&front.streams, store, segments);
    }
    let upload = claimed.take();
    drop(claimed);
    front.uploads.forget(&key(owner.mailbox(), id));
    if let Some(upload) = upload {
        front.streams.disk.later(move || upload.compact());
    }
    Ok(())
}

/// Stores the content in its final place.
pub(crate) async fn place(
    front: &Tus,
    claimed: Claimed,
    is_new: bool,
) -> Result<(Claimed, Result<Pin, UploadFailure>), UploadFailure> {
    let work = move || place_now(claimed, is_new);
    let (claimed, placed) = front.streams.disk.work(work).await?;
    let gone = || Err(ApiError::with_status(500, "The upload is gone.").into());
    let placed = placed.map_or_else(gone, |placed| placed.map_err(UploadFailure::from));
    Ok((claimed, placed))
}

fn place_now(mut claimed: Claimed, is_new: bool) -> (Claimed, Option<Result<Pin, ContentError>>) {
    let finished = claimed.upload().map(Upload::finish);
    let is_content = claimed.upload().is_some_and(|upload| upload.is_content());
    if let Some(Err(error)) = &finished {
        match error {
            // The last chunk isn't durable, and won't be acknowledged.
            ContentError::Full | ContentError::Away(_) if !is_content => {
                if let Some(upload) = claimed.upload().filter(|_| is_new) {
                    upload.discard();
                }
            }
            // The next request reads the offset.
            _ => drop(claimed.take()),
        }
    }
    (claimed, finished)
}

fn cut_off(end: End) -> ApiError {
    match end {
        End::UploadRequest => ApiError::new(
            StatusCode::LOCKED,
            "Another request has taken over this upload.",
        ),
        End::Flow(Flow::Slow) => ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "The body took too long to arrive.",
        ),
        End::Flow(_) => ApiError::bad_request("The body could not be read."),
    }
}

fn too_long() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "The chunk is longer than what is left of the upload.",
    )
}

/// The checksum of a chunk that is being received.
struct Sum {
    expected: Vec<u8>,
    made: Made,
}

enum Made {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Blake3(Box<blake3::Hasher>),
}

impl Sum {
    fn new(checksum: Checksum) -> Self {
        Self {
            expected: checksum.digest,
            made: match checksum.algorithm {
                Algorithm::Sha1 => Made::Sha1(sha1::Sha1::new()),
                Algorithm::Sha256 => Made::Sha256(sha2::Sha256::new()),
                Algorithm::Blake3 => Made::Blake3(Box::default()),
            },
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match &mut self.made {
            Made::Sha1(made) => made.update(bytes),
            Made::Sha256(made) => made.update(bytes),
            Made::Blake3(made) => {
                made.update(bytes);
            }
        }
    }

    fn fits(self) -> bool {
        let found = match self.made {
            Made::Sha1(made) => made.finalize().to_vec(),
            Made::Sha256(made) => made.finalize().to_vec(),
            Made::Blake3(made) => made.finalize().as_bytes().to_vec(),
        };
        found == self.expected
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::sync::mpsc::{Receiver, sync_channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use groupware_content::{ContentHash, ContentStore, ObjectId, Objects, Placed, ReadAt};
    use groupware_store::{Store, StoreOptions};
    use tokio::sync::Notify;

    use super::*;
    use crate::stage::{begin, front, owner};
    use crate::work::record;

    /// A slow content store.
    #[derive(Debug)]
    struct Slow {
        puts: AtomicU32,
        has_begun: Notify,
        goes_on: Mutex<Receiver<()>>,
    }

    impl Objects for Slow {
        fn put(&self, _: ContentHash, _: &File, _: u64) -> Result<Placed, ContentError> {
            self.puts.fetch_add(1, Relaxed);
            self.has_begun.notify_one();
            self.goes_on.lock().unwrap().recv().unwrap();
            Ok(Placed::InFile)
        }

        fn read(
            &self,
            _: ContentHash,
            _: (u64, u64),
        ) -> Result<Option<Box<dyn ReadAt>>, ContentError> {
            Ok(None)
        }

        fn remove(&self, _: ContentHash, _: ObjectId, _: Option<&str>) -> Result<(), ContentError> {
            Ok(())
        }

        fn list(&self, _: u8) -> Result<Vec<(ContentHash, ObjectId)>, ContentError> {
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn an_upload_is_finished_though_nobody_waits_for_it() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let (go_on, goes_on) = sync_channel(1);
        let slow = Arc::new(Slow {
            puts: AtomicU32::new(0),
            has_begun: Notify::new(),
            goes_on: Mutex::new(goes_on),
        });
        let content = ContentStore::scratch().unwrap();
        let front = front(&store, content.with_objects(Arc::clone(&slow) as _));
        let (owner, id) = (owner(), begin(&store, 7));
        let key = key(owner.mailbox(), &id);
        let claim = front.uploads.claim(owner.caller(), &key);
        let mut claimed = claim.await.unwrap();
        let mut upload = front.content.create_upload(id.as_str(), 1).unwrap();
        upload.append(b"x").unwrap();
        claimed.put(upload);
        tokio::select! {
            _ = finish(&front, &owner, &id, (claimed, None), true) => panic!("it takes its time"),
            () = slow.has_begun.notified() => {}
        }
        go_on.send(()).unwrap();
        let finished = async {
            while record(&front, &owner, &id).unwrap().finished.is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, finished).await.unwrap();
        assert_eq!(slow.puts.load(Relaxed), 1);
    }
}
