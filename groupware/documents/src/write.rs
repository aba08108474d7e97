//! Creating, reading, changing, and deleting documents.

use groupware_store::Snapshot;

use crate::mailbox::{self, Changes, HeldDocument};
use crate::{
    Context, DatabaseName, Decision, Document, DocumentError, Fields, Principal, Seen, Unid,
    Version, access, domino,
};

/// Creates a document.
///
/// # Errors
/// 403 if the user may not add to the database; 507 if the owner's quota is exhausted.
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

/// Returns a document as JSON, and its version. `only` names the wanted fields.
///
/// # Errors
/// 403 if the user may not read the database; 404 if the document is missing.
pub fn document(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
    (database, unid): (&DatabaseName, &Unid),
    only: Option<&[String]>,
) -> Result<(Vec<u8>, Version), DocumentError> {
    access::may_read(snapshot, who, database)?;
    let held = mailbox::require(snapshot, who.mailbox, database, unid)?;
    let body = domino::document(&held.document, (who.mailbox, database, unid), only);
    Ok((body, Version::of(&held)))
}

/// Checks that the user may change a document, before a body that may be large is sent.
///
/// # Errors
/// 403 if the user lacks the right; 404 if the document is missing.
pub fn check_change(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
    place: (&DatabaseName, &Unid),
) -> Result<(), DocumentError> {
    require_changeable(snapshot, who, place).map(drop)
}

/// Replaces all fields of the document. Attachments stay.
///
/// # Errors
/// 403 if the user lacks the right; 404 if the document is missing; 412 if it was changed since; 507.
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

/// Changes the named fields; `null` removes one.
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

/// Returns a document that the user may change.
pub(crate) fn require_changeable(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
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
