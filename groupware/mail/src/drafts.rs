//! Drafts: kept, rewritten, sent.

use std::sync::Arc;

use bytes::Bytes;

use crate::deliver::{Parcel, check_room, put_sent};
use crate::mailbox::{self, Changes, Stored};
use crate::{Context, Decision, Entry, Folder, MailError, Reason, Unid};

/// Keeps a new draft.
///
/// # Errors
/// A refusal if it is too large or the mailbox is full; the store's.
pub fn save(context: &Context<'_>, message: &Bytes) -> Result<Decision, MailError> {
    groupware_proto_mime::check(message)?;
    check_room(context, message.len())?;
    let mut ids = context.ids;
    ids.take();
    let unid = Unid::new(context.now_us, ids.take());
    let mut entry = Entry::of(message, context.now_us);
    entry.read = true;
    let mut changes = Changes::new(context.snapshot, context.now_us);
    changes.insert(
        &context.mailbox.into(),
        Folder::Drafts,
        unid,
        &entry,
        message,
    );
    Ok(Decision {
        batch: changes.into_batch()?,
        made: Some(unid),
        more: false,
    })
}

/// Puts another text in a draft's place. What the draft is marked with stays, as its keywords do.
///
/// # Errors
/// A refusal if there is no such draft, it is another version than the one that was `seen`, the message is too large, or
/// the mailbox is full.
pub fn rewrite(
    context: &Context<'_>,
    (unid, seen): (Unid, Option<u64>),
    message: &Bytes,
) -> Result<Decision, MailError> {
    groupware_proto_mime::check(message)?;
    let held = require_seen(context, unid, seen)?;
    check_room(
        context,
        message.len().saturating_sub(usize_of(held.entry.size)),
    )?;
    let mailbox: Arc<str> = context.mailbox.into();
    let mut entry = Entry::of(message, context.now_us);
    entry.read = true;
    entry.marks = held.entry.marks;
    let mut changes = Changes::new(context.snapshot, context.now_us);
    changes.rewrite(&mailbox, &held, &entry, message);
    Ok(Decision {
        batch: changes.into_batch()?,
        made: Some(unid),
        more: false,
    })
}

/// Sends a draft in the form that `parcel` has: it is gone from the drafts in the same batch, so
/// that it is sent once, however often that is asked for.
///
/// # Errors
/// A refusal if there is no such draft, it is another version than the one that was `seen`, or a mailbox is full.
pub fn send(
    context: &Context<'_>,
    (unid, seen): (Unid, Option<u64>),
    parcel: &Parcel,
) -> Result<Decision, MailError> {
    let held = require_seen(context, unid, seen)?;
    let mut changes = Changes::new(context.snapshot, context.now_us);
    changes.remove(&context.mailbox.into(), &held);
    let made = put_sent(context, &mut changes, parcel)?;
    Ok(Decision {
        batch: changes.into_batch()?,
        made: Some(made),
        more: false,
    })
}

/// A draft.
///
/// # Errors
/// A refusal if there is no such message, or it is no draft.
pub fn require(context: &Context<'_>, unid: Unid) -> Result<Stored, MailError> {
    let held = mailbox::require(context.snapshot, context.mailbox, unid)?;
    match held.folder {
        Folder::Drafts => Ok(held),
        _ => Err(MailError::refused(
            Reason::Conflict,
            "Only a draft can be changed.",
        )),
    }
}

/// A draft of the revision that was seen, where one is named.
fn require_seen(context: &Context<'_>, unid: Unid, seen: Option<u64>) -> Result<Stored, MailError> {
    let held = require(context, unid)?;
    match seen.is_none_or(|seen| seen == held.revision) {
        true => Ok(held),
        false => Err(MailError::refused(
            Reason::Conflict,
            "The draft was changed elsewhere meanwhile.",
        )),
    }
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
