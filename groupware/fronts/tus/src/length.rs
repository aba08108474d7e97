//! Uploads of unknown length (`creation-defer-length`): their reserved space grows with them, and
//! their files are laid out again once the length is known.

use groupware_documents::{self as documents, Context, Upload, UploadId};
use groupware_http::{ApiError, Owner, header_text as text};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;

use crate::failure::UploadFailure;
use crate::front::Tus;
use crate::open::Claimed;
use crate::work::{change, check_length, check_room};

/// The step of reserved space.
pub(crate) const STEP_BYTES: u64 = 16 << 20;

/// Reserves the space of the next chunk, beyond the existing bytes; for a chunk of unknown length,
/// a few steps, after which it is truncated.
pub(crate) async fn make_room(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (claimed, set_aside): (&mut Claimed, u64),
    headers: &HeaderMap,
) -> Result<(), UploadFailure> {
    let Some(upload) = claimed.upload() else {
        return Ok(());
    };
    let announced = text(headers, CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    let end = upload
        .offset()
        .saturating_add(announced.unwrap_or(4 * STEP_BYTES));
    let rounded = end.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES);
    // A length beyond the limit is reported when space is reserved.
    let needed = match end > upload.length() && announced.is_some() {
        true => end,
        false => rounded.min(upload.length()),
    };
    if needed > set_aside {
        check_room(front, owner, needed - set_aside)?;
        let extend = |context: &Context<'_>| documents::extend(context, id, needed, false);
        change(front, owner, front.service.random_bits(), extend).await?;
    }
    upload.allow(needed.max(set_aside));
    Ok(())
}

/// Records the length of an upload, which can't be changed afterwards.
pub(crate) async fn settle_length(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (claimed, record): (&mut Claimed, &Upload),
    length: u64,
) -> Result<(), UploadFailure> {
    let extend = |context: &Context<'_>| documents::extend(context, id, length, true);
    if record.deferred.is_none() {
        // Succeeds for the same length, and fails for another.
        return Ok(change(front, owner, 0, extend).await?);
    }
    let offset = claimed.upload().map_or(0, |upload| upload.offset());
    if length < offset {
        let message = format!("The upload has {offset} bytes already.");
        return Err(ApiError::bad_request(message).into());
    }
    check_length(front, length)?;
    check_room(front, owner, length.saturating_sub(record.length))?;
    if length <= record.laid_out() {
        work(front, claimed, move |upload| upload.reserve(length)).await?;
    }
    change(front, owner, front.service.random_bits(), extend).await?;
    work(front, claimed, move |upload| upload.truncate(length)).await
}

/// Works on an upload on the blocking pool. After a failure, the next request reads the offset from
/// the disk.
async fn work(
    front: &Tus,
    claimed: &mut Claimed,
    work: impl FnOnce(&mut groupware_content::Upload) -> Result<(), groupware_content::ContentError>
    + Send
    + 'static,
) -> Result<(), UploadFailure> {
    let Some(mut upload) = claimed.take() else {
        return Err(ApiError::with_status(500, "The upload is gone.").into());
    };
    let worked = move || work(&mut upload).map(|()| upload);
    claimed.put(front.streams.disk.work(worked).await??);
    Ok(())
}
