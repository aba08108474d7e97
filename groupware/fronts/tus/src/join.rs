//! Joins parts to one upload (`concatenation`): their content is copied into its file, and one batch puts its
//! record in the place of theirs. What was set aside for them is for it then. Where their bytes lie in an object store, it
//! has their segments.

use groupware_content::Upload;
use groupware_documents::{self as documents, Context, DocumentError, NewUpload, UploadId};
use groupware_http::{ApiError, Owner};
use http::StatusCode;

use crate::failure::UploadFailure;
use crate::front::Tus;
use crate::open::key;
use crate::receive::finish;
use crate::work::{
    change, check_length, check_place, claim, create_file, record, remove_file, resume,
};

/// Makes an attachment of parts that are whole, and gives its length.
pub(crate) async fn join(
    front: &Tus,
    owner: &Owner,
    (id, bits, mut new): (&UploadId, u128, NewUpload),
    names: &[String],
) -> Result<u64, UploadFailure> {
    let parts = names.iter().map(|name| UploadId::parse(name));
    let parts: Vec<UploadId> = parts.collect::<Result<_, _>>()?;
    new.length = total(front, owner, &parts)?;
    check_length(front, new.length)?;
    check_place(front, owner, &new)?;
    let stream = front.streams.slot(owner.caller(), owner.who().user).await?;
    let mut claimed = front
        .uploads
        .claim(owner.caller(), &key(owner.mailbox(), id))
        .await?;
    let joined = |context: &Context<'_>| documents::join(context, &new, &parts);
    if new.is_segmented {
        change(front, owner, bits, joined).await?;
        let record = record(front, owner, id)?;
        resume(front, owner, id, (&mut claimed, &record)).await?;
    } else {
        let upload = create_file(front, owner, id, (new.length, new.length)).await?;
        let upload = match copy(front, owner, upload, &parts).await {
            Ok(upload) => upload,
            Err(error) => {
                remove_file(front, id).await;
                return Err(error);
            }
        };
        if let Err(error) = change(front, owner, bits, joined).await {
            remove_file(front, id).await;
            return Err(error.into());
        }
        claimed.put(upload);
    }
    finish(front, owner, id, (claimed, Some(stream)), false).await?;
    for part in &parts {
        front.uploads.forget(&key(owner.mailbox(), part));
        let (content, name) = (front.content.clone(), part.to_string());
        // The sweep gets what this doesn't.
        let remove = move || drop(content.remove_upload(&name));
        front.streams.disk.later(remove);
    }
    Ok(new.length)
}

/// The bytes of all parts.
fn total(front: &Tus, owner: &Owner, parts: &[UploadId]) -> Result<u64, DocumentError> {
    let mut total: u64 = 0;
    for part in parts {
        let part = record(front, owner, part)?;
        part.check_part()?;
        total = total.saturating_add(part.length);
    }
    Ok(total)
}

/// Copies the parts in their order, one at a time: each is others' to ask for before and after.
async fn copy(
    front: &Tus,
    owner: &Owner,
    mut upload: Upload,
    parts: &[UploadId],
) -> Result<Upload, UploadFailure> {
    for part in parts {
        let mut claimed = claim(front, owner, part).await?;
        let length = record(front, owner, part)?.length;
        let offset = claimed
            .resume(front.disk(), part, (length, length))
            .await?
            .offset();
        if offset != length {
            let message = format!("The part {part} has {offset} of its {length} bytes.");
            return Err(ApiError::new(StatusCode::BAD_REQUEST, message).into());
        }
        let append = move || {
            let Some(part) = claimed.upload() else {
                return Ok(upload);
            };
            upload.append_all_of(part).map(|()| upload)
        };
        upload = front.streams.disk.work(append).await??;
    }
    // Durable before the parts' records go.
    let settle = move || upload.settle().map(|()| upload);
    Ok(front.streams.disk.work(settle).await??)
}
