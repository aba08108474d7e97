//! Shared parts of decisions about iTIP messages (RFC 5546).

use groupware_proto_ical::message::{self, Answer};

use crate::imported::view::{About, Series};
use crate::json::bare_address;
use crate::object::{Imported, Kind};
use crate::{CalendarError, Entry, Reason, State, limits};

/// The event of a message. If the message has no times, the entry has none. `None` if the object is not an event.
pub(crate) fn announced(
    (uid, text): (&str, &str),
    series: &Series<'_>,
    (owner, now): (&str, i64),
) -> Option<Entry> {
    if series.kind != Kind::Event {
        return None;
    }
    let text = with_answer(text, None);
    if let Ok(imported) = Imported::read(&text, owner, now)
        && let Some(entry) = imported.entry(uid, None)
    {
        return Some(entry);
    }
    let stamp = series.version().1;
    let of = About { uid, owner, stamp };
    let event = series.undated(of)?;
    let imported = Imported {
        owner: owner.to_owned(),
        ..Imported::new(&text, Kind::Event)
    };
    let state = State::Imported(Box::new(imported));
    Some(Entry {
        state,
        event: event.into(),
    })
}

/// Returns true if the calendar's owner organizes the event.
pub(crate) fn is_own(held: &Entry) -> bool {
    match &held.state {
        State::Own => true,
        State::Imported(there) => {
            let organizer = &held.event.organizer.email;
            organizer.eq_ignore_ascii_case(&there.owner)
        }
        State::Accepted | State::Tentative | State::Cancelled | State::Invited { .. } => false,
    }
}

/// The entry of a changed object, if it can still be stored.
pub(crate) fn entry_of(
    text: &str,
    uid: &str,
    (owner, now): (&str, i64),
) -> Result<Entry, CalendarError> {
    let read = (text.len() <= limits::OBJECT_BYTES).then(|| Imported::read(text, owner, now).ok());
    let entry = read.flatten().and_then(|it| it.entry(uid, None));
    entry.ok_or_else(apart)
}

pub(crate) fn absent() -> CalendarError {
    refused("This event isn't in your calendar.")
}

pub(crate) fn apart() -> CalendarError {
    refused("This can't be put beside what is on the calendar of the same event.")
}

pub(crate) fn refused(message: &'static str) -> CalendarError {
    CalendarError::refused(Reason::ActionNotSupported, message)
}

/// The object without the mail's method, and with this reply for the attendee of an address.
pub(crate) fn with_answer(object: &str, answer: Option<(&str, &str)>) -> String {
    let Some((address, word)) = answer else {
        return message::answered(object, None);
    };
    let is_of = |value: &str| bare_address(value).eq_ignore_ascii_case(address);
    let is_of = &is_of;
    message::answered(object, Some(Answer { is_of, word }))
}
