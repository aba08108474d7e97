//! Steps that several requests share: checks of records and room, changes, files.

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

/// Checks that the document of an upload exists.
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

/// Checks that so many more bytes may be reserved.
pub(crate) fn check_room(front: &Tus, owner: &Owner, bytes: u64) -> Result<(), UploadFailure> {
    if room(&front.service, owner.mailbox())? >= bytes {
        return Ok(());
    }
    let message = "This would take more than your share of the disk.";
    Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, message).into())
}

/// Checks that an attachment may have so many bytes.
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

/// Returns the record of an upload. An upload whose bytes are where this server has no access counts as missing.
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

/// Returns the offset of an unfinished upload.
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

/// Opens an unfinished upload with all received bytes.
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

/// Claims a recorded upload: invented names must not take the place of open uploads. The record
/// must be read again once the claim is held.
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

/// Creates the file of a new upload, laid out for so many bytes up to an initial maximum.
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

/// Returns the removal of an upload's file, for the blocking pool; `None` where the bytes of
/// uploads are in an object store.
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
