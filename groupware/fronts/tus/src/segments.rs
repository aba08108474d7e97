//! Uploads with their bytes in an object store, so that any server can continue them.
//!
//! The server that receives a chunk has a copy of the upload in an unnamed file, which makes the checksum, the
//! hash, and the finished content cheap. Acknowledged bytes are stored in the object store as a segment, and
//! listed in the upload's record. A server with no copy, or an old one, first reads the missing segments.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use groupware_content::{ContentError, Keep, Segments, Upload as Copy};
use groupware_documents::{
    self as documents, DocumentError, HeldUpload, Reason, Segment, Upload, UploadId,
};
use groupware_http::{ApiError, Owner, Streams};
use groupware_service::Service;
use groupware_store::CommitError;

use crate::failure::{UploadFailure, stopping};
use crate::front::Tus;
use crate::open::Claimed;

/// Most searches for segments that other servers have merged meanwhile.
const TRIES: u32 = 3;

/// Stores the bytes of an upload as segments, and lists these in its record.
#[derive(Debug, Clone)]
struct Keeper {
    service: Service,
    segments: Arc<dyn Segments>,
    streams: Arc<Streams>,
    mailbox: String,
    id: UploadId,
}

impl Keep for Keeper {
    fn keep(&self, file: &File, span: Range<u64>) -> Result<(), ContentError> {
        if span.is_empty() {
            return Ok(());
        }
        let held = self.held()?;
        // Its length may have been set meanwhile, too.
        if held.upload.offset() != Some(span.start) || span.end > held.upload.length {
            return Err(ContentError::Taken);
        }
        let listed = held.upload.segments.as_deref().unwrap_or_default();
        let kept = documents::segments_to_keep(listed, span.end - span.start);
        let replaced = listed[kept..].to_vec();
        let again: u64 = replaced.iter().map(|segment| segment.bytes).sum();
        let new = self.put(file, held.revision, span.start - again..span.end)?;
        let names = new.clone();
        let now = self.service.now_s();
        let batch = documents::keep_segments((&self.mailbox, &self.id), held, (kept, new), now);
        match self.service.store().commit_blocking(batch) {
            Ok(_) => {
                self.remove_later(replaced);
                Ok(())
            }
            Err(CommitError::Conflict { .. }) => {
                self.remove_later(names);
                Err(ContentError::Taken)
            }
            // The commit may have succeeded: the segments stay.
            Err(error) => Err(ContentError::Away(Box::new(error))),
        }
    }
}

impl Keeper {
    fn held(&self) -> Result<HeldUpload, ContentError> {
        let store = self.service.store();
        let held = store.read(|snapshot| documents::held_upload(snapshot, &self.mailbox, &self.id));
        let held = held.map_err(unrecorded)?;
        match held.upload.finished {
            None => Ok(held),
            Some(_) => Err(ContentError::Taken),
        }
    }

    /// Stores the bytes of a file within this span.
    fn put(
        &self,
        file: &File,
        revision: u64,
        span: Range<u64>,
    ) -> Result<Vec<Segment>, ContentError> {
        let mut new = Vec::new();
        let mut at = span.start;
        for bytes in documents::segment_lengths(span.end - span.start) {
            let bits = self.service.random_bits();
            let name = documents::segment_name(&self.id, revision, bits);
            let put = self.segments.put(&name, &|| read(file, at, bytes));
            new.push(Segment { bytes, name });
            if let Err(error) = put {
                self.remove_later(new);
                return Err(error);
            }
            at += bytes;
        }
        Ok(new)
    }

    fn remove_later(&self, segments: Vec<Segment>) {
        remove_later(&self.streams, &self.segments, segments);
    }
}

/// Removes segments that no record lists. The sweep removes what this can't.
pub(crate) fn remove_later(streams: &Streams, store: &Arc<dyn Segments>, segments: Vec<Segment>) {
    if segments.is_empty() {
        return;
    }
    let store = Arc::clone(store);
    streams.disk.later(move || {
        for segment in segments {
            let _ = store.remove(&segment.name);
        }
    });
}

/// Without a record, the upload was deleted meanwhile.
fn unrecorded(error: DocumentError) -> ContentError {
    match error.reason() {
        Some(Reason::NotFound) => ContentError::Taken,
        _ => ContentError::Away(Box::new(error)),
    }
}

fn read(file: &File, at: u64, bytes: u64) -> Result<Vec<u8>, ContentError> {
    let mut read = vec![0; usize::try_from(bytes).unwrap_or_default()];
    let filled = file.read_exact_at(&mut read, at);
    filled.map_err(|source| ContentError::Io {
        path: "a copy of an upload".into(),
        source,
    })?;
    Ok(read)
}

/// Creates an empty copy of a new upload, laid out for so many bytes up to an initial maximum.
pub(crate) async fn create(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    lengths: (u64, u64),
    segments: &Arc<dyn Segments>,
) -> Result<Copy, UploadFailure> {
    let (content, keeper) = (front.content.clone(), keeper(front, owner, id, segments));
    let create = move || content.create_copy(lengths, Box::new(keeper));
    Ok(front.streams.disk.work(create).await??)
}

fn keeper(front: &Tus, owner: &Owner, id: &UploadId, segments: &Arc<dyn Segments>) -> Keeper {
    Keeper {
        service: front.service.clone(),
        segments: Arc::clone(segments),
        streams: Arc::clone(&front.streams),
        mailbox: owner.mailbox().to_owned(),
        id: id.clone(),
    }
}

/// Opens or completes a copy of an upload with all bytes that its record lists.
///
/// It continues to its end if the client disconnects, and bytes read before the object store became
/// unavailable are kept: otherwise each retry would read a large upload from its beginning.
pub(crate) async fn catch_up(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (mut claimed, record): (Claimed, &Upload),
    segments: &Arc<dyn Segments>,
) -> Result<Claimed, UploadFailure> {
    let keeper = keeper(front, owner, id, segments);
    let (content, record, at_hand) = (front.content.clone(), record.clone(), claimed.take());
    let work = move || {
        let lengths = (record.laid_out(), record.length);
        let offset = record.offset().unwrap_or_default();
        let mut copy = match at_hand.filter(|copy| copy.offset() <= offset) {
            Some(copy) => copy,
            None => content.create_copy(lengths, Box::new(keeper.clone()))?,
        };
        copy.discard();
        if copy.length() != lengths.0 {
            copy.truncate(lengths.0)?;
        }
        copy.allow(lengths.1);
        let taken = take_over(&mut copy, &keeper, record);
        if let Ok(()) | Err(ContentError::Away(_)) = taken {
            copy.discard();
            claimed.put(copy);
        }
        Ok::<_, ContentError>((claimed, taken))
    };
    let streams = Arc::clone(&front.streams);
    let caught_up = async move { streams.disk.work(work).await };
    let caught_up = owner.caller().to_the_end(caught_up).await;
    let (claimed, taken) = caught_up.unwrap_or_else(|| Err(stopping()))??;
    taken.map_err(unread)?;
    Ok(claimed)
}

/// Reads the missing bytes of a copy.
fn take_over(copy: &mut Copy, keeper: &Keeper, record: Upload) -> Result<(), ContentError> {
    with_segments(keeper, record, &mut |listed| {
        read_segments(copy, &*keeper.segments, listed)
    })
}

/// Processes the segments that a record lists. Another server may merge segments concurrently, and
/// remove the old ones.
fn with_segments(
    keeper: &Keeper,
    mut record: Upload,
    act: &mut dyn FnMut(&[Segment]) -> Result<(), ContentError>,
) -> Result<(), ContentError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match act(record.segments.as_deref().unwrap_or_default()) {
            Err(ContentError::Missing { .. }) if tries < TRIES => record = keeper.held()?.upload,
            done => return done,
        }
    }
}

/// Checks that the object store has the segments that the open copy lacks, without reading them.
///
/// # Errors
/// 410 if one of them is missing.
pub(crate) async fn check_there(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (claimed, record): (&mut Claimed, &Upload),
    segments: &Arc<dyn Segments>,
) -> Result<(), UploadFailure> {
    let offset = record.offset().unwrap_or_default();
    let at_hand = claimed.upload().map_or(0, |copy| copy.offset());
    let at_hand = Some(at_hand).filter(|at| *at <= offset).unwrap_or_default();
    if at_hand == offset {
        return Ok(());
    }
    let (keeper, record) = (keeper(front, owner, id, segments), record.clone());
    let look = move || {
        with_segments(&keeper, record, &mut |listed| {
            look_for(&*keeper.segments, listed, at_hand)
        })
    };
    match front.streams.disk.work(look).await? {
        // An unreachable segment may exist, and an upload that another server continues has its segments.
        Ok(()) | Err(ContentError::Away(_) | ContentError::Taken) => Ok(()),
        Err(error) => Err(unread(error)),
    }
}

/// Checks that the segments that end behind these bytes exist.
fn look_for(segments: &dyn Segments, listed: &[Segment], at_hand: u64) -> Result<(), ContentError> {
    let mut end = 0;
    for segment in listed {
        end += segment.bytes;
        if end > at_hand && !segments.has(&segment.name)? {
            let path = (&*segment.name).into();
            return Err(ContentError::Missing { path });
        }
    }
    Ok(())
}

/// Fills the copy of an upload that is about to list these segments, which belong to other, complete uploads.
pub(crate) async fn fill(
    front: &Tus,
    mut copy: Copy,
    listed: Vec<Segment>,
    segments: &Arc<dyn Segments>,
) -> Result<Copy, UploadFailure> {
    let segments = Arc::clone(segments);
    let fill = move || read_segments(&mut copy, &*segments, &listed).map(|()| copy);
    front.streams.disk.work(fill).await?.map_err(unread)
}

fn read_segments(
    copy: &mut Copy,
    segments: &dyn Segments,
    listed: &[Segment],
) -> Result<(), ContentError> {
    let mut at = 0;
    for segment in listed {
        let end = at + segment.bytes;
        if let Some(has) = copy
            .offset()
            .checked_sub(at)
            .filter(|_| end > copy.offset())
        {
            let span = has..segment.bytes;
            segments.read(&segment.name, span, &mut |bytes| copy.take_over(bytes))?;
        }
        at = end;
    }
    Ok(())
}

/// A listed segment that is missing never reappears.
fn unread(error: ContentError) -> UploadFailure {
    match error {
        ContentError::Missing { .. } => {
            let message = "Bytes of this upload are gone: begin it anew.";
            ApiError::fault(410, message, &error).into()
        }
        error => error.into(),
    }
}
