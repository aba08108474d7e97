//! Imports objects: their entries on a calendar, and the choice between two versions.

mod parts;

use std::borrow::Cow;

use groupware_proto_ical::Object;

use self::parts::{APART, together};
use crate::mailbox::HeldEntry;
use crate::object::Imported;
use crate::{CalendarError, Context, Decision, Entry, limits, mailbox};

/// A parsed object, ready for a calendar.
#[derive(Debug, Clone)]
pub struct Ready {
    uid: String,
    entry: Entry,
    /// True if it has single instances without their series.
    is_part: bool,
    /// A note on content that is shown differently from the object.
    note: Option<String>,
}

impl Ready {
    /// The note on content that is shown differently from the object, if any.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The kind in a word: `event`, `task`, `journal`, or `other`. Only events are in lists of events.
    pub fn kind(&self) -> &'static str {
        let imported = self.entry.imported();
        imported.map_or("event", |imported| imported.kind())
    }
}

/// The outcome of an object's import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was added to the calendar.
    New,
    /// It replaced an older version.
    Newer,
    /// The calendar already had this version or a newer one.
    There,
    /// An event of this UID was created on this server and stays unchanged.
    Own,
    /// The existing object stays: an instance is no version of its series. The text gives the reason and a remedy.
    Refused(&'static str),
}

/// The reason why an instance alone does not replace its series.
const PART: &str =
    "the series is there; this is one instance of it: import a file with the whole series";
/// The reason why a series does not replace an instance alone.
const WHOLE: &str = "one instance of it is there without its series: delete that from the calendar, and import \
                     this once more";

/// Parses an object for the calendar of the owner with this address.
///
/// # Errors
/// A description of the problem and its remedy.
pub fn ready(object: &Object<'_>, owner: &str, now: i64) -> Result<Ready, String> {
    let size = object.written_bytes();
    if size > limits::OBJECT_BYTES {
        return Err(format!(
            "it has {} KiB, and {} KiB are the most that is kept: take attachments out of it",
            size / 1024,
            limits::OBJECT_BYTES / 1024
        ));
    }
    let mut bytes = Vec::with_capacity(size);
    object.write(&mut bytes);
    let text = String::from_utf8(bytes)
        .map_err(|_| "it is not UTF-8: convert the file, as iconv does".to_owned())?;
    if text.contains('\0') {
        return Err("it has a NUL character in it, which no text has".to_owned());
    }
    read(&text, &object.uid, owner, now)
}

/// Parses the text of an object.
fn read(text: &str, uid: &str, owner: &str, now: i64) -> Result<Ready, String> {
    let imported = Imported::read(text, owner, now)?;
    let (is_part, note) = (imported.is_part(), imported.note());
    let entry = imported.entry(uid, None);
    let is_shown = |entry: &Entry| entry.imported().is_some_and(Imported::is_shown);
    let entry = entry.filter(is_shown).ok_or("it can't be shown")?;
    Ok(Ready {
        uid: uid.to_owned(),
        entry,
        is_part,
        note,
    })
}

/// Adds objects to the owner's calendar in one batch: the first ones, as many as the batch can hold and at least one.
/// Returns their outcomes. No attendee is invited or notified. Of two versions of an object, the higher SEQUENCE wins,
/// then the later DTSTAMP; of single instances, this applies to each one.
///
/// # Errors
/// The store's errors.
pub fn import(
    context: &Context<'_>,
    objects: &[Ready],
) -> Result<(Decision, Vec<Outcome>), CalendarError> {
    let objects = || objects.iter().take(limits::BATCH_OBJECTS);
    let uids: Vec<String> = objects().map(|ready| ready.uid.clone()).collect();
    mailbox::prefetch_all(context.snapshot, context.mailbox, &uids)?;
    let mut changes = mailbox::Changes::default();
    let mut outcomes = Vec::with_capacity(uids.len());
    for ready in objects() {
        if changes.is_full() {
            break;
        }
        let held = mailbox::load(context.snapshot, context.mailbox, &ready.uid)?;
        let (outcome, put) = decide(context, ready, held.as_ref());
        if let Some(entry) = put {
            changes.replace(context.mailbox, &ready.uid, held.as_ref(), Some(&entry));
        }
        outcomes.push(outcome);
    }
    let decision = Decision {
        batch: changes.into_batch(),
        entry: None,
    };
    Ok((decision, outcomes))
}

/// Decides on an object, given the entry `held`, and adds the change.
fn decide<'a>(
    context: &Context<'_>,
    ready: &'a Ready,
    held: Option<&HeldEntry>,
) -> (Outcome, Option<Cow<'a, Entry>>) {
    let put = Some(Cow::Borrowed(&ready.entry));
    let Some(held) = held else {
        return (Outcome::New, put);
    };
    let Some((old, new)) = held.entry.imported().zip(ready.entry.imported()) else {
        return (Outcome::Own, None);
    };
    let is_same = old.original() == new.original();
    if !is_same && old.is_part() != ready.is_part {
        let why = if ready.is_part { PART } else { WHOLE };
        return (Outcome::Refused(why), None);
    }
    let anew = || old.listed_anew(&ready.uid, &new.owner, context.now);
    if !is_same && ready.is_part {
        let both = together((old.original(), new.original()), &ready.uid);
        return match both {
            Err(why) => (Outcome::Refused(why), None),
            Ok(both) if both.trim_end() == old.original().trim_end() => {
                (Outcome::There, anew().map(Cow::Owned))
            }
            Ok(both) => match read(&both, &ready.uid, &new.owner, context.now) {
                Ok(both) => (Outcome::Newer, Some(Cow::Owned(both.entry))),
                Err(_) => (Outcome::Refused(APART), None),
            },
        };
    }
    if new.version() > old.version() {
        return (Outcome::Newer, put);
    }
    (Outcome::There, anew().map(Cow::Owned))
}
