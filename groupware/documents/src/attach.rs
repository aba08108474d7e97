//! Attaching files to documents, and detaching them.

use groupware_ids::{ContentHash, Placed};
use groupware_store::Snapshot;

use crate::mailbox::{self, Changes};
use crate::write::require_changeable;
use crate::{
    Attachment, Context, DatabaseName, Decision, Document, DocumentError, FileName, ItemName,
    ItemPath, Principal, Reason, Seen, Unid, access, limits, objects,
};

/// A file whose content is stored.
#[derive(Debug, Clone)]
pub struct NewAttachment {
    /// The item that it is attached to.
    pub item: ItemName,
    /// Its name; a file of the same name in the same item is replaced.
    pub name: FileName,
    /// Its media type, according to its sender.
    pub media_type: String,
    /// Its length.
    pub bytes: u64,
    /// The hash of its content.
    pub hash: ContentHash,
    /// The place of its content.
    pub placed: Placed,
}

/// Attaches files atomically. The content must be pinned until the batch is committed. Returns true
/// if all of them are new.
///
/// # Errors
/// 403 if the user lacks the right; 404 if the document is missing; 400 if it has too many attachments; 507
/// if the owner's quota is exhausted; 412 if a file replaces one that the client doesn't know; 503
/// if the content's object was removed meanwhile.
pub fn attach(
    context: &Context<'_>,
    (database, unid): (&DatabaseName, &Unid),
    files: &[NewAttachment],
    seen: &Seen,
) -> Result<Decision<bool>, DocumentError> {
    let held = require_changeable(context.snapshot, context.who, (database, unid))?;
    let mut document = held.document.clone();
    let mut all_new = true;
    for file in files {
        let before = document.position(&file.item, &file.name);
        check(before.map(|at| &document.attachments[at]), seen)?;
        all_new &= put(&mut document, file, context.now)?;
    }
    let mut changes = Changes::in_database(context, database)?;
    changes.replace((database, unid), Some(&held), Some(&document))?;
    let mut batch = changes.into_batch();
    for (at, file) in files.iter().enumerate() {
        // For equal files in one form, one object is enough.
        if !files[..at].iter().any(|before| before.hash == file.hash) {
            objects::refer_to(
                context.snapshot,
                (file.hash, file.bytes),
                file.placed,
                &mut batch,
            )?;
        }
    }
    Ok(Decision {
        batch,
        outcome: all_new,
    })
}

/// Rejects a change if the client doesn't know the current attachment.
fn check(attachment: Option<&Attachment>, seen: &Seen) -> Result<(), DocumentError> {
    let tag = attachment.map(Attachment::tag);
    let current = tag.as_deref().zip(attachment.map(|it| it.modified));
    seen.check(current)
}

/// Adds a file to a document or replaces one; returns true if it is new.
pub(crate) fn put(
    document: &mut Document,
    file: &NewAttachment,
    now: i64,
) -> Result<bool, DocumentError> {
    let attachment = Attachment {
        item: file.item.as_str().to_owned(),
        name: file.name.as_str().to_owned(),
        media_type: media_type(&file.media_type),
        bytes: file.bytes,
        hash: file.hash,
        modified: now,
    };
    document.modified = now;
    if let Some(at) = document.position(&file.item, &file.name) {
        document.attachments[at] = attachment;
        return Ok(false);
    }
    if document.attachments.len() >= limits::ATTACHMENTS {
        return Err(DocumentError::bad_request(format!(
            "A document has at most {} attachments.",
            limits::ATTACHMENTS
        )));
    }
    document.attachments.push(attachment);
    Ok(true)
}

/// Returns the type if it is valid in a header, else that of arbitrary bytes.
fn media_type(text: &str) -> String {
    let text = text.trim();
    let is_fine = (3..=limits::MEDIA_TYPE_BYTES).contains(&text.len())
        && text.contains('/')
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    match is_fine {
        true => text.to_owned(),
        false => "application/octet-stream".to_owned(),
    }
}

/// Returns the record of an attachment.
///
/// # Errors
/// 403 if the user lacks the right; 404 if the document or attachment is missing.
pub fn attachment(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
    place: &ItemPath,
    name: &FileName,
) -> Result<Attachment, DocumentError> {
    access::may_read(snapshot, who, &place.database)?;
    let held = mailbox::require(snapshot, who.mailbox, &place.database, &place.unid)?;
    let at = held.document.position(&place.item, name);
    at.and_then(|at| held.document.attachments.into_iter().nth(at))
        .ok_or_else(missing)
}

/// Detaches an attachment from its document.
///
/// # Errors
/// 403 if the user lacks the right; 404 if the document or attachment is missing; 412 if the version is outdated.
pub fn detach(
    context: &Context<'_>,
    place: &ItemPath,
    name: &FileName,
    seen: &Seen,
) -> Result<Decision<()>, DocumentError> {
    let (database, unid) = (&place.database, &place.unid);
    let held = require_changeable(context.snapshot, context.who, (database, unid))?;
    let at = held
        .document
        .position(&place.item, name)
        .ok_or_else(missing)?;
    check(held.document.attachments.get(at), seen)?;
    let mut document = held.document.clone();
    document.attachments.remove(at);
    document.modified = context.now;
    let mut changes = Changes::in_database(context, database)?;
    changes.replace((database, unid), Some(&held), Some(&document))?;
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

/// Renames an attachment within its item.
///
/// # Errors
/// 403 if the user lacks the right; 404 if the document or attachment is missing; 409 if another attachment
/// of the item has the name; 412 if the client doesn't know its current version.
pub fn rename(
    context: &Context<'_>,
    place: &ItemPath,
    (name, to): (&FileName, &FileName),
    seen: &Seen,
) -> Result<Decision<()>, DocumentError> {
    let (database, unid) = (&place.database, &place.unid);
    let held = require_changeable(context.snapshot, context.who, (database, unid))?;
    let position = |name| held.document.position(&place.item, name);
    let at = position(name).ok_or_else(missing)?;
    check(held.document.attachments.get(at), seen)?;
    if position(to).is_some_and(|taken| taken != at) {
        let message = "There is an attachment of this name.";
        return Err(DocumentError::refused(Reason::Conflict, message));
    }
    let mut document = held.document.clone();
    to.as_str().clone_into(&mut document.attachments[at].name);
    document.modified = context.now;
    let mut changes = Changes::in_database(context, database)?;
    changes.replace((database, unid), Some(&held), Some(&document))?;
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

fn missing() -> DocumentError {
    DocumentError::not_found("There is no such attachment.")
}
