//! What several requests have done: looks at records and room, changes, files.

use groupware_content::{ContentError, Upload as File};
use groupware_documents::{
    self as documents, Context, Decision, DocumentError, NewUpload, Reason, Upload, UploadId,
};
use groupware_http::{ApiError, Owner};
use groupware_service::ChangeError;
use groupware_service::documents::room;
use groupware_store::Snapshot;
use http::StatusCode;

use crate::failure::UploadFailure;
use crate::front::Tus;
use crate::open::{Claimed, key};
use crate::segments::{catch_up, create};

/// Whether there is the document that an upload is for.
pub(crate) fn check_place(
    front: &Tus,
    owner: &Owner,
    new: &NewUpload,
) -> Result<(), DocumentError> {
    front.service.store().read(|snapshot| {
        let place = (&new.place.database, &new.place.unid);
        documents::document(snapshot, owner.who(), place, Some(&[])).map(drop)
    })
}

/// Whether so many bytes more may be set aside.
pub(crate) fn check_room(front: &Tus, owner: &Owner, bytes: u64) -> Result<(), UploadFailure> {
    if room(&front.service, owner.mailbox())? >= bytes {
        return Ok(());
    }
    let message = "This would take more than your share of the disk.";
    Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, message).into())
}

/// Whether an attachment may have so many bytes.
pub(crate) fn check_length(front: &Tus, length: u64) -> Result<(), UploadFailure> {
    if length <= front.attachment_bytes {
        return Ok(());
    }
    let message = format!(
        "An attachment has at most {} bytes.",
        front.attachment_bytes
    );
    Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message).into())
}

/// What is recorded of an upload. One whose bytes lie where this server doesn't look for any is no more.
pub(crate) fn record(front: &Tus, owner: &Owner, id: &UploadId) -> Result<Upload, DocumentError> {
    let find = |snapshot: &dyn Snapshot| documents::upload(snapshot, owner.mailbox(), id);
    let upload = front.service.store().read(find)?;
    let is_reached = upload.segments.is_some() == front.content.segments().is_some();
    match upload.finished.is_some() || is_reached {
        true => Ok(upload),
        false => Err(DocumentError::refused(
            Reason::NotFound,
            "Uploads have another place now than when this one began: begin it anew.",
        )),
    }
}

/// How far an upload is that isn't finished.
pub(crate) async fn offset(
    front: &Tus,
    id: &UploadId,
    (claimed, record): (&mut Claimed, &Upload),
) -> Result<u64, UploadFailure> {
    if let Some(offset) = record.offset() {
        return Ok(offset);
    }
    let bytes = (record.laid_out(), record.length);
    Ok(claimed.resume(front.disk(), id, bytes).await?.offset())
}

/// Has an upload that isn't finished at hand, with all bytes that have come.
pub(crate) async fn resume(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (mut claimed, record): (Claimed, &Upload),
) -> Result<Claimed, UploadFailure> {
    if let Some(segments) = front.content.segments() {
        return catch_up(front, owner, id, (claimed, record), segments).await;
    }
    offset(front, id, (&mut claimed, record)).await?;
    Ok(claimed)
}

/// Claims an upload that there is a record of: names that were made up shall take no place of uploads
/// that are at hand. The record is to be read again once nobody else changes it.
pub(crate) async fn claim(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
) -> Result<Claimed, UploadFailure> {
    let key = key(owner.mailbox(), id);
    if !front.uploads.is_at_hand(&key) {
        record(front, owner, id)?;
    }
    Ok(front.uploads.claim(owner.caller(), &key).await?)
}

/// Decides and commits as the owner.
pub(crate) async fn change<T>(
    front: &Tus,
    owner: &Owner,
    bits: u128,
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, ChangeError<DocumentError>> {
    let (service, who) = (&front.service, (owner.who(), bits));
    groupware_service::documents::change(service, owner.caller(), who, decide).await
}

/// The file of a new upload, laid out for so many bytes, of which it may have so many at first.
pub(crate) async fn create_file(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (length, allowed): (u64, u64),
) -> Result<File, UploadFailure> {
    if let Some(segments) = front.content.segments() {
        return create(front, owner, id, (length, allowed), segments).await;
    }
    let (content, name) = (front.content.clone(), id.to_string());
    let create = move || content.create_upload_of(&name, length, allowed);
    Ok(front.streams.disk.work(create).await??)
}

/// Removes an upload's file, if it has one.
pub(crate) async fn remove_file(front: &Tus, id: &UploadId) -> Result<(), UploadFailure> {
    if let Some(removal) = file_removal(front, id) {
        front.streams.disk.work(removal).await??;
    }
    Ok(())
}

/// What removes an upload's file, on a thread that may wait for the disk; `None` where the bytes of uploads lie in an
/// object store.
pub(crate) fn file_removal(
    front: &Tus,
    id: &UploadId,
) -> Option<impl FnOnce() -> Result<(), ContentError> + Send + use<>> {
    if front.content.segments().is_some() {
        return None;
    }
    let (content, name) = (front.content.clone(), id.to_string());
    Some(move || content.remove_upload(&name))
}
