//! Creating, reading, changing, and deleting documents.

use groupware_store::Snapshot;

use crate::document::percent_encoded;
use crate::mailbox::{self, Changes, Held};
use crate::{
    Context, DatabaseName, Decision, Document, DocumentError, Fields, FileName, Place, Unid,
};

/// The path that names a document.
pub fn document_path(mailbox: &str, database: &DatabaseName, unid: &Unid) -> String {
    format!("/docs/{mailbox}/{database}/api/data/documents/unid/{unid}")
}

/// The path that names an attachment, or without a name the item that it belongs to.
pub fn attachment_path(mailbox: &str, place: &Place, name: Option<&FileName>) -> String {
    let document = document_path(mailbox, &place.database, &place.unid);
    match name {
        Some(name) => format!(
            "{document}/{}/{}",
            place.item,
            percent_encoded(name.as_str())
        ),
        None => format!("{document}/{}", place.item),
    }
}

/// Makes a document.
///
/// # Errors
/// 507 if the owner's share is used up.
pub fn create(
    context: &Context<'_>,
    database: &DatabaseName,
    fields: Fields,
) -> Result<Decision<Unid>, DocumentError> {
    let unid = Unid::from_bits(context.bits);
    let document = Document {
        created: context.now,
        modified: context.now,
        fields,
        attachments: Vec::new(),
    };
    let mut changes = Changes::new(context)?;
    changes.replace((database, &unid), None, Some(&document))?;
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: unid,
    })
}

/// A document as JSON, and when it was last changed. `only` names the fields wanted.
///
/// # Errors
/// 404 if there is no such document.
pub fn document(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    (database, unid): (&DatabaseName, &Unid),
    only: Option<&[String]>,
) -> Result<(Vec<u8>, i64), DocumentError> {
    let held = mailbox::require(snapshot, mailbox, database, unid)?;
    let body = held.document.render((mailbox, database, unid), only);
    Ok((body, held.document.modified))
}

/// Puts these fields in place of all that the document has. Attachments stay.
///
/// # Errors
/// 404 if there is no such document; 412 if it was changed since; 507.
pub fn replace(
    context: &Context<'_>,
    place: (&DatabaseName, &Unid),
    fields: &Fields,
    unmodified_since: Option<i64>,
) -> Result<Decision<()>, DocumentError> {
    change(context, place, unmodified_since, |document| {
        document.fields = fields.clone();
        Ok(())
    })
}

/// Changes the fields that are named; `null` removes one.
///
/// # Errors
/// As [`replace`].
pub fn patch(
    context: &Context<'_>,
    place: (&DatabaseName, &Unid),
    fields: &Fields,
    unmodified_since: Option<i64>,
) -> Result<Decision<()>, DocumentError> {
    change(context, place, unmodified_since, |document| {
        document.fields.merge(fields.clone())
    })
}

/// Deletes a document with its attachments.
///
/// # Errors
/// As [`replace`].
pub fn delete(
    context: &Context<'_>,
    place: (&DatabaseName, &Unid),
    unmodified_since: Option<i64>,
) -> Result<Decision<()>, DocumentError> {
    let held = mailbox::require(context.snapshot, context.mailbox, place.0, place.1)?;
    check_unmodified(&held, unmodified_since)?;
    let mut changes = Changes::new(context)?;
    changes.replace(place, Some(&held), None)?;
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

fn change(
    context: &Context<'_>,
    place: (&DatabaseName, &Unid),
    unmodified_since: Option<i64>,
    edit: impl FnOnce(&mut Document) -> Result<(), DocumentError>,
) -> Result<Decision<()>, DocumentError> {
    let held = mailbox::require(context.snapshot, context.mailbox, place.0, place.1)?;
    check_unmodified(&held, unmodified_since)?;
    let mut document = held.document.clone();
    edit(&mut document)?;
    document.modified = context.now;
    let mut changes = Changes::new(context)?;
    changes.replace(place, Some(&held), Some(&document))?;
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

fn check_unmodified(held: &Held, since: Option<i64>) -> Result<(), DocumentError> {
    match since {
        Some(since) if held.document.modified > since => Err(DocumentError::refused(
            412,
            "The document was changed meanwhile.",
        )),
        _ => Ok(()),
    }
}
