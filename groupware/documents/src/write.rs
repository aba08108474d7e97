//! Creating, reading, changing, and deleting documents.

use groupware_store::Snapshot;

use crate::mailbox::{self, Changes, HeldDocument};
use crate::{
    Context, DatabaseName, Decision, Document, DocumentError, Fields, Seen, Unid, Version, Who,
    access, domino,
};

/// Makes a document.
///
/// # Errors
/// 403 if the user may not add to the database; 507 if the owner's share is used up.
pub fn create(
    context: &Context<'_>,
    database: &DatabaseName,
    fields: Fields,
) -> Result<Decision<Unid>, DocumentError> {
    let who = context.who;
    access::may_add(context.snapshot, who, database)?;
    let unid = Unid::from_bits(context.bits);
    let document = Document {
        created: context.now,
        modified: context.now,
        author: (!who.is_owner()).then(|| who.user.to_owned()),
        fields,
        attachments: Vec::new(),
    };
    let mut changes = Changes::in_database(context, database)?;
    changes.replace((database, &unid), None, Some(&document))?;
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: unid,
    })
}

/// A document as JSON, and its version. `only` names the fields wanted.
///
/// # Errors
/// 403 if the user may not read the database; 404 if there is no such document.
pub fn document(
    snapshot: &dyn Snapshot,
    who: Who<'_>,
    (database, unid): (&DatabaseName, &Unid),
    only: Option<&[String]>,
) -> Result<(Vec<u8>, Version), DocumentError> {
    access::may_read(snapshot, who, database)?;
    let held = mailbox::require(snapshot, who.mailbox, database, unid)?;
    let body = domino::document(&held.document, (who.mailbox, database, unid), only);
    Ok((body, Version::of(&held)))
}

/// Passes those who may change a document, before they send what may be large.
///
/// # Errors
/// 403 if the user may not; 404 if there is no such document.
pub fn check_change(
    snapshot: &dyn Snapshot,
    who: Who<'_>,
    place: (&DatabaseName, &Unid),
) -> Result<(), DocumentError> {
    require_changeable(snapshot, who, place).map(drop)
}

/// Puts these fields in place of all that the document has. Attachments stay.
///
/// # Errors
/// 403 if the user may not; 404 if there is no such document; 412 if it was changed since; 507.
pub fn replace(
    context: &Context<'_>,
    place: (&DatabaseName, &Unid),
    fields: &Fields,
    seen: &Seen,
) -> Result<Decision<()>, DocumentError> {
    change(context, place, seen, |document| {
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
    seen: &Seen,
) -> Result<Decision<()>, DocumentError> {
    change(context, place, seen, |document| {
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
    seen: &Seen,
) -> Result<Decision<()>, DocumentError> {
    let held = require_changeable(context.snapshot, context.who, place)?;
    check(&held, seen)?;
    let mut changes = Changes::in_database(context, place.0)?;
    changes.replace(place, Some(&held), None)?;
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

fn change(
    context: &Context<'_>,
    place: (&DatabaseName, &Unid),
    seen: &Seen,
    edit: impl FnOnce(&mut Document) -> Result<(), DocumentError>,
) -> Result<Decision<()>, DocumentError> {
    let held = require_changeable(context.snapshot, context.who, place)?;
    check(&held, seen)?;
    let mut document = held.document.clone();
    edit(&mut document)?;
    document.modified = context.now;
    let mut changes = Changes::in_database(context, place.0)?;
    changes.replace(place, Some(&held), Some(&document))?;
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

/// A document that the user may change.
pub(crate) fn require_changeable(
    snapshot: &dyn Snapshot,
    who: Who<'_>,
    (database, unid): (&DatabaseName, &Unid),
) -> Result<HeldDocument, DocumentError> {
    access::may_add(snapshot, who, database)?;
    let held = mailbox::require(snapshot, who.mailbox, database, unid)?;
    access::may_change(who, &held.document)?;
    Ok(held)
}

fn check(held: &HeldDocument, seen: &Seen) -> Result<(), DocumentError> {
    let version = Version::of(held);
    seen.check(Some((&version.tag(), version.modified)))
}
