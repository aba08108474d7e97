//! Joins parts to one upload (`concatenation`): their content is copied into its file, and one
//! batch replaces their records by its record. It takes over their reserved space. Where their
//! bytes are in an object store, it takes over their segments.

use groupware_content::{Pin, Upload};
use groupware_documents::{
    self as documents, Context, DocumentError, NewUpload, Segment, UploadId,
};
use groupware_http::Owner;

use crate::failure::{UploadFailure, stopping};
use crate::front::Tus;
use crate::open::{Claimed, key};
use crate::receive::{attach, place};
use crate::segments::fill;
use crate::work::{
    change, check_length, check_place, claim, create_file, file_removal, record, remove_file,
};

/// Makes an attachment of complete parts, and returns its length.
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
    let claimed = front
        .uploads
        .claim(owner.caller(), &key(owner.mailbox(), id))
        .await?;
    let length = new.length;
    let (front, whose, id) = (front.clone(), owner.clone(), id.clone());
    let joined = async move {
        let joined = join_now(&front, &whose, (&id, bits, &new), &parts, claimed).await;
        drop(stream);
        joined
    };
    let joined = owner.caller().to_the_end(joined).await;
    joined.unwrap_or_else(|| Err(stopping().into()))?;
    Ok(length)
}

/// Nothing changes before the content is stored: until then, the parts keep all acknowledged bytes.
///
/// It continues to its end if the client disconnects, as [`finish`](crate::receive::finish) does.
async fn join_now(
    front: &Tus,
    owner: &Owner,
    (id, bits, new): (&UploadId, u128, &NewUpload),
    parts: &[UploadId],
    claimed: Claimed,
) -> Result<(), UploadFailure> {
    let placed = place_parts(front, owner, (id, new.length), parts, claimed).await;
    let (mut claimed, pin) = match placed {
        Ok(placed) => placed,
        Err(error) => {
            // The sweep removes what this can't.
            let _ = remove_file(front, id).await;
            return Err(error);
        }
    };
    let joined = |context: &Context<'_>| documents::join(context, new, parts);
    if let Err(error) = change(front, owner, bits, joined).await {
        claimed.take();
        let _ = remove_file(front, id).await;
        return Err(error.into());
    }
    attach(front, owner, id, (claimed, pin), None).await?;
    for part in parts {
        front.uploads.forget(&key(owner.mailbox(), part));
        if let Some(removal) = file_removal(front, part) {
            front.streams.disk.later(move || drop(removal()));
        }
    }
    Ok(())
}

/// Stores the content of parts, which have so many bytes.
async fn place_parts(
    front: &Tus,
    owner: &Owner,
    (id, length): (&UploadId, u64),
    parts: &[UploadId],
    mut claimed: Claimed,
) -> Result<(Claimed, Pin), UploadFailure> {
    let upload = create_file(front, owner, id, (length, length)).await?;
    let upload = match front.content.segments() {
        Some(segments) => {
            let listed = listed(front, owner, parts)?;
            fill(front, upload, listed, segments).await?
        }
        None => copy(front, owner, upload, parts).await?,
    };
    claimed.put(upload);
    let (mut claimed, pin) = place(front, claimed, false).await?;
    match pin {
        Ok(pin) => Ok((claimed, pin)),
        Err(error) => {
            claimed.take();
            Err(error)
        }
    }
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

/// Returns the segments of all parts, each of which is complete.
fn listed(front: &Tus, owner: &Owner, parts: &[UploadId]) -> Result<Vec<Segment>, UploadFailure> {
    let mut listed = Vec::new();
    for part in parts {
        let record = record(front, owner, part)?;
        record.check_whole(part, record.offset().unwrap_or_default())?;
        listed.extend(record.segments.unwrap_or_default());
    }
    Ok(listed)
}

/// Copies the parts in order, one at a time: other requests may claim a part before and after its copy.
async fn copy(
    front: &Tus,
    owner: &Owner,
    mut upload: Upload,
    parts: &[UploadId],
) -> Result<Upload, UploadFailure> {
    for part in parts {
        let mut claimed = claim(front, owner, part).await?;
        let record = record(front, owner, part)?;
        let offset = claimed
            .resume(front.disk(), part, (record.length, record.length))
            .await?
            .offset();
        record.check_whole(part, offset)?;
        let append = move || {
            let Some(part) = claimed.upload() else {
                return Ok(upload);
            };
            upload.append_all_of(part).map(|()| upload)
        };
        upload = front.streams.disk.work(append).await??;
    }
    // Durable before the parts' records are removed.
    let settle = move || upload.settle().map(|()| upload);
    Ok(front.streams.disk.work(settle).await??)
}
