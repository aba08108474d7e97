//! Objects that are brought from elsewhere: what they come to on a calendar, and which of two versions stays.

use groupware_proto_ical::Object;

use crate::object::Imported;
use crate::{CalendarError, Context, Decision, Entry, limits, mailbox};

/// An object that was read, to be put on a calendar.
#[derive(Debug, Clone)]
pub struct Ready {
    uid: String,
    entry: Entry,
    bytes: usize,
    /// Whether instances of it before the horizon are in no list.
    pub is_cut: bool,
}

impl Ready {
    /// What it takes in a batch, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is on the calendar now.
    New,
    /// It is there in place of an older version.
    Newer,
    /// It was there already, in this version or a newer one.
    There,
    /// An event of this UID was made on this server, and stays as it is.
    Own,
}

/// Reads an object for the calendar of whoever has this address.
///
/// # Errors
/// What is wrong with it, and what to do about it.
pub fn ready(object: &Object<'_>, owner: &str, now: i64) -> Result<Ready, String> {
    let mut bytes = Vec::new();
    object.write(&mut bytes);
    if bytes.len() > limits::OBJECT_BYTES {
        return Err(format!(
            "it has {} KiB, and {} KiB are the most that is kept: take attachments out of it",
            bytes.len() / 1024,
            limits::OBJECT_BYTES / 1024
        ));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| "it is not UTF-8: convert the file, as iconv does".to_owned())?;
    if text.contains('\0') {
        return Err("it has a NUL character in it, which no text has".to_owned());
    }
    let imported = Imported::read(&text, owner, now)?;
    let (is_cut, lines) = (
        imported.is_cut(),
        imported.derived_keys(&object.uid).count(),
    );
    let entry = imported.entry(&object.uid, None);
    let entry = entry.ok().flatten().ok_or("it can't be shown")?;
    Ok(Ready {
        uid: object.uid.clone(),
        entry,
        bytes: text.len() + lines * LINE_BYTES,
        is_cut,
    })
}

/// What a line of the event list takes with its key, about.
const LINE_BYTES: usize = 512;

/// Puts objects on the owner's calendar, in one batch. Nobody is invited by that, nor told. Of an object that is
/// there, the version with the higher SEQUENCE stays, or else the one with the later DTSTAMP.
///
/// # Errors
/// The store's.
pub fn import(
    context: &Context<'_>,
    objects: &[Ready],
) -> Result<(Decision, Vec<Outcome>), CalendarError> {
    let uids: Vec<String> = objects.iter().map(|ready| ready.uid.clone()).collect();
    mailbox::prefetch_all(context.snapshot, context.mailbox, &uids)?;
    let mut changes = mailbox::Changes::default();
    let mut outcomes = Vec::with_capacity(objects.len());
    for Ready { uid, entry, .. } in objects {
        let held = mailbox::load(context.snapshot, context.mailbox, uid)?;
        let new = entry.imported();
        let old = held.as_ref().and_then(|held| held.entry.imported());
        let (outcome, is_put) = match (&held, old.zip(new)) {
            (None, _) => (Outcome::New, true),
            (Some(_), None) => (Outcome::Own, false),
            (Some(_), Some((old, new))) if new.version() > old.version() => (Outcome::Newer, true),
            (Some(_), Some((old, new))) => {
                let is_same = old.original() == new.original();
                let is_old = old.is_to_be_listed_anew(context.now);
                (Outcome::There, is_same && is_old)
            }
        };
        if is_put {
            changes.replace(context.mailbox, uid, held.as_ref(), Some(entry));
        }
        outcomes.push(outcome);
    }
    let decision = Decision {
        batch: changes.into_batch(),
        entry: None,
    };
    Ok((decision, outcomes))
}
