//! Drafts: stored, replaced, sent.

use std::sync::Arc;

use bytes::Bytes;

use crate::deliver::{RoutedMessage, check_room, put_sent};
use crate::mailbox::{self, Changes, Stored};
use crate::{Context, Decision, Entry, Folder, MailError, Reason, Unid};

/// Stores a new draft.
///
/// # Errors
/// A refusal if it is too large or the account is full; errors of the store.
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

/// Replaces a draft's content. Its flags and keywords stay.
///
/// # Errors
/// A refusal if the draft is missing, its revision differs from `seen`, the message is too large,
/// or the account is full.
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

/// Sends a draft in the form that `parcel` has. The same batch removes it from the drafts, so that
/// repeated requests send it only once.
///
/// # Errors
/// A refusal if the draft is missing, its revision differs from `seen`, or an account is full.
pub fn send(
    context: &Context<'_>,
    (unid, seen): (Unid, Option<u64>),
    parcel: &RoutedMessage,
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

/// Returns a draft.
///
/// # Errors
/// A refusal if the message is missing or no draft.
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

/// Returns a draft, of the given revision if there is one.
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
