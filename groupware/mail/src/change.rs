//! Changes that the owner makes to messages: sets flags, moves, and deletes them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::mailbox::{self, Changes, Stored};
use crate::{Context, Decision, Entry, Folder, MailError, Unid, folders, limits};

/// The flags and keywords to set on messages. An absent member leaves its value unchanged.
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
    /// Returns the entry of a message with these flags set.
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

/// Sets flags on messages. Messages that have them already stay unchanged.
///
/// # Errors
/// A refusal if a message is missing or the list is too long; errors of the store.
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
        // With other keywords, too: the entry's revision records when the message was last changed.
        if has_others || entry != held.entry {
            changes.replace(mailbox, held, held.folder, &entry);
        }
        Ok(())
    })
}

/// Sets flags for one message in a decision, too. Skips a missing message and a draft, such as the sent one.
///
/// # Errors
/// Errors of the store.
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
/// A refusal if a message or the folder is missing, or the list is too long. Drafts can only be
/// deleted, and no message can be moved into the drafts.
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
    // The folder must still exist when the batch is committed.
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

/// Adds messages to a folder and removes others from it, as Domino's folder operations do. Removed
/// messages move to the archive. Messages to remove that lie in another folder stay there.
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
    // A message that is named twice is moved and counted once.
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

/// Moves messages to the trash, and deletes those already in the trash for good; with
/// `permanently`, deletes all of them for good.
///
/// # Errors
/// A refusal if a message is missing or the list is too long; errors of the store.
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

/// Deletes all messages of a folder for good, a batch at a time: there may be [`more`](Decision::more).
///
/// # Errors
/// Errors of the store.
pub fn empty(context: &Context<'_>, folder: Folder) -> Result<Decision, MailError> {
    let limit = limits::SWEPT_AT_ONCE;
    let mut found = mailbox::newest(context.snapshot, context.mailbox, folder, limit)?;
    let all = found.len();
    let mut bytes = 0_u64;
    let fits = |held: &&Stored| {
        bytes = bytes.saturating_add(held.entry.size);
        bytes <= limits::SWEPT_BYTES
    };
    // The first message is removed whatever its size.
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
