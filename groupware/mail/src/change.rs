//! What the owner does to messages: marks them, moves them, throws them away.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::mailbox::{self, Changes, Stored};
use crate::{Context, Decision, Entry, Folder, MailError, Unid, folders, limits};

/// What messages are to be marked with. What isn't said stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marking {
    /// The owner has read it.
    pub read: Option<bool>,
    /// The owner has answered it.
    pub answered: Option<bool>,
    /// It is marked as important.
    pub flagged: Option<bool>,
    /// The owner has passed it on.
    pub forwarded: Option<bool>,
    /// Its keywords, all of them.
    pub keywords: Option<Vec<String>>,
}

impl Marking {
    /// The entry of a message that is marked so.
    fn of(&self, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        let marks = &mut entry.marks;
        for (mark, asked) in [
            (&mut entry.read, self.read),
            (&mut marks.answered, self.answered),
            (&mut marks.flagged, self.flagged),
            (&mut marks.forwarded, self.forwarded),
        ] {
            *mark = asked.unwrap_or(*mark);
        }
        entry
    }
}

/// Marks messages. Those that are so already stay as they are.
///
/// # Errors
/// A refusal if one is not there, or they are too many; the store's.
pub fn mark_as(
    context: &Context<'_>,
    unids: &[Unid],
    marking: &Marking,
) -> Result<Decision, MailError> {
    change(context, unids, |changes, mailbox, held| {
        let entry = marking.of(&held.entry);
        let has_others = match &marking.keywords {
            Some(words) => changes.set_keywords(mailbox, held.unid, words)?,
            None => false,
        };
        // With other keywords, too: the entry says when the message was changed last.
        if has_others || entry != held.entry {
            changes.replace(mailbox, held, held.folder, &entry);
        }
        Ok(())
    })
}

/// Has what is decided mark a message, too, unless it is gone meanwhile or is a draft, which may be what is sent.
///
/// # Errors
/// The store's.
pub fn and_mark(
    context: &Context<'_>,
    mut decision: Decision,
    (unid, marking): (Unid, &Marking),
) -> Result<Decision, MailError> {
    match mailbox::find(context.snapshot, context.mailbox, unid)? {
        None => return Ok(decision),
        Some(held) if held.folder == Folder::Drafts => return Ok(decision),
        Some(_) => {}
    }
    let mut marked = mark_as(context, &[unid], marking)?.batch;
    decision.batch.asserts.append(&mut marked.asserts);
    decision.batch.ops.append(&mut marked.ops);
    Ok(decision)
}

/// Marks messages read or unread.
///
/// # Errors
/// As [`mark_as`].
pub fn mark(context: &Context<'_>, unids: &[Unid], read: bool) -> Result<Decision, MailError> {
    let marking = Marking {
        read: Some(read),
        ..Marking::default()
    };
    mark_as(context, unids, &marking)
}

/// Moves messages into a folder.
///
/// # Errors
/// A refusal if one of them or the folder is not there, or they are too many; drafts can only be
/// thrown away, and nothing becomes a draft by being moved.
pub fn move_to(
    context: &Context<'_>,
    unids: &[Unid],
    folder: Folder,
) -> Result<Decision, MailError> {
    let mut decision = change(context, unids, |changes, mailbox, held| {
        check_move(held.folder, folder)?;
        if held.folder != folder {
            changes.replace(mailbox, held, folder, &held.entry);
        }
        Ok(())
    })?;
    // The folder must still be there when the messages come.
    folders::assert_there(context, &mut decision.batch, folder)?;
    Ok(decision)
}

fn check_move(from: Folder, to: Folder) -> Result<(), MailError> {
    let is_draft = from == Folder::Drafts && !matches!(to, Folder::Trash | Folder::Drafts);
    if is_draft || (to == Folder::Drafts && from != Folder::Drafts) {
        let message = "Drafts stay in the drafts folder until they are sent or thrown away.";
        return Err(MailError::refused(crate::Reason::Conflict, message));
    }
    Ok(())
}

/// Adds messages to a folder, and takes others out of it, as Domino's folder operations do:
/// what is taken out lies in the archive afterwards. Others than those in the folder stay.
///
/// # Errors
/// As [`move_to`].
pub fn add_and_remove(
    context: &Context<'_>,
    folder: Folder,
    add: &[Unid],
    remove: &[Unid],
) -> Result<Decision, MailError> {
    check_number(add.len() + remove.len())?;
    let mailbox: Arc<str> = context.mailbox.into();
    let mut changes = Changes::new(context.snapshot, context.now_us);
    // A message that is named twice is moved, and counted, once.
    let mut seen = BTreeSet::new();
    let added = add.iter().filter(|unid| !remove.contains(unid));
    for unid in added.filter(|unid| seen.insert(**unid)) {
        let held = mailbox::require(context.snapshot, context.mailbox, *unid)?;
        check_move(held.folder, folder)?;
        if held.folder != folder {
            changes.replace(&mailbox, &held, folder, &held.entry);
        }
    }
    for unid in remove.iter().filter(|unid| seen.insert(**unid)) {
        let held = mailbox::require(context.snapshot, context.mailbox, *unid)?;
        if held.folder == folder && folder != Folder::Archive {
            check_move(folder, Folder::Archive)?;
            changes.replace(&mailbox, &held, Folder::Archive, &held.entry);
        }
    }
    let mut batch = changes.into_batch()?;
    folders::assert_there(context, &mut batch, folder)?;
    Ok(Decision {
        batch,
        ..Decision::default()
    })
}

/// Throws messages into the trash, and those that lie in it away for good; all of them for good
/// if `permanently`.
///
/// # Errors
/// A refusal if one is not there, or they are too many; the store's.
pub fn delete(
    context: &Context<'_>,
    unids: &[Unid],
    permanently: bool,
) -> Result<Decision, MailError> {
    change(context, unids, |changes, mailbox, held| {
        if permanently || held.folder == Folder::Trash {
            changes.remove(mailbox, held);
        } else {
            changes.replace(mailbox, held, Folder::Trash, &held.entry);
        }
        Ok(())
    })
}

/// Removes all messages of a folder for good, some at a time: there may be [`more`](Decision::more).
///
/// # Errors
/// The store's.
pub fn empty(context: &Context<'_>, folder: Folder) -> Result<Decision, MailError> {
    let limit = limits::SWEPT_AT_ONCE;
    let mut found = mailbox::newest(context.snapshot, context.mailbox, folder, limit)?;
    let all = found.len();
    let mut bytes = 0_u64;
    let fits = |held: &&Stored| {
        bytes = bytes.saturating_add(held.entry.size);
        bytes <= limits::SWEPT_BYTES
    };
    // However large one is, it goes.
    let fitting = found.iter().take_while(fits).count().max(1);
    found.truncate(fitting);
    let mailbox: Arc<str> = context.mailbox.into();
    let mut changes = Changes::new(context.snapshot, context.now_us);
    for held in &found {
        changes.remove(&mailbox, held);
    }
    Ok(Decision {
        batch: changes.into_batch()?,
        made: None,
        more: all == limit || found.len() < all,
    })
}

fn change(
    context: &Context<'_>,
    unids: &[Unid],
    mut one: impl FnMut(&mut Changes<'_>, &Arc<str>, &Stored) -> Result<(), MailError>,
) -> Result<Decision, MailError> {
    check_number(unids.len())?;
    let mailbox: Arc<str> = context.mailbox.into();
    let mut changes = Changes::new(context.snapshot, context.now_us);
    let mut seen = BTreeSet::new();
    for unid in unids.iter().filter(|unid| seen.insert(**unid)) {
        let held = mailbox::require(context.snapshot, context.mailbox, *unid)?;
        one(&mut changes, &mailbox, &held)?;
    }
    Ok(Decision {
        batch: changes.into_batch()?,
        ..Decision::default()
    })
}

fn check_number(messages: usize) -> Result<(), MailError> {
    match messages <= limits::AT_ONCE {
        true => Ok(()),
        false => Err(MailError::bad_request(format!(
            "At most {} messages at once.",
            limits::AT_ONCE
        ))),
    }
}
