//! iTIP messages (RFC 5546) that come in a mail (iMIP, RFC 6047). Nothing changes by itself: the recipient decides.

use calcard::icalendar::{ICalendar, ICalendarProperty as Property};
use groupware_proto_ical::{Lines, Object, Property as Line, fold, split};

use crate::imported::view::{self, About, Series};
use crate::json::bare_address;
use crate::object::{Imported, Kind};
use crate::{CalendarError, Cancellation, Entry, MailInvitation, Reason, Reply, State, limits};
use groupware_recurrence::values::text;

/// An iTIP message about one event.
#[derive(Debug, Clone)]
pub enum MailMessage {
    /// REQUEST or PUBLISH: an event for the recipient's calendar.
    Invitation(MailInvitation),
    /// CANCEL: the organizer has called the event off, or some instances of it.
    Cancellation(Cancellation),
    /// REPLY: an attendee has answered.
    Reply(Reply),
}

impl MailMessage {
    /// Reads a part of a mail that is a calendar, for the user of an address; `None` if it isn't a message about one
    /// event, or has another method.
    pub fn read(part: &str, owner: &str, now: i64) -> Option<Self> {
        let (objects, _) = split(part.as_bytes()).ok()?;
        let [object] = &objects[..] else {
            return None;
        };
        let text = whole(object)?;
        let calendar = view::parse(&text).ok()?;
        match method(&calendar).as_deref() {
            Some("CANCEL") => {
                Cancellation::read(&object.uid, &text, owner, now).map(Self::Cancellation)
            }
            Some("REPLY") => Reply::read(&object.uid, &text, owner, now).map(Self::Reply),
            method @ (None | Some("PUBLISH" | "REQUEST")) => {
                let is_request = method == Some("REQUEST");
                let sent = (object.uid.clone(), text, is_request);
                MailInvitation::read(sent, owner, now).map(Self::Invitation)
            }
            Some(_) => None,
        }
    }

    /// What names the event.
    pub fn uid(&self) -> &str {
        match self {
            Self::Invitation(it) => it.uid(),
            Self::Cancellation(it) => it.uid(),
            Self::Reply(it) => it.uid(),
        }
    }

    /// Whom the message is from: the organizer, or the attendee who answers.
    pub fn sender(&self) -> &str {
        match self {
            Self::Invitation(it) => &it.entry().event.organizer.email,
            Self::Cancellation(it) => &it.entry().event.organizer.email,
            Self::Reply(it) => &it.attendee().email,
        }
    }
}

/// The method of a calendar, in upper case.
fn method(calendar: &ICalendar) -> Option<String> {
    let root = calendar.components.first()?;
    text(root, &Property::Method).map(str::to_ascii_uppercase)
}

/// The event of a message that need not say when that is: the entry has no date then. `None` if it is no event.
pub(crate) fn announced(
    (uid, text): (&str, &str),
    (calendar, series): (&ICalendar, &Series<'_>),
    (owner, now): (&str, i64),
) -> Option<Entry> {
    if series.kind != Kind::Event || calendar.components.is_empty() {
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
    let mut imported = Imported::new(&text, Kind::Event);
    owner.clone_into(&mut imported.owner);
    let state = State::Imported(Box::new(imported));
    Some(Entry {
        state,
        event: event.into(),
    })
}

/// Whether the owner of the calendar organizes an event of it.
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

/// An object with its calendar's lines; `None` if it is too large.
pub(crate) fn whole(object: &Object<'_>) -> Option<String> {
    if object.written_bytes() > limits::OBJECT_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(object.written_bytes());
    object.write(&mut bytes);
    String::from_utf8(bytes).ok()
}

/// Two objects of one UID as one, with the calendar's lines of the first.
pub(crate) fn joined(first: &str, second: &str) -> Option<String> {
    let both = format!("{first}\r\n{second}");
    let (objects, faults) = split(both.as_bytes()).ok()?;
    match &objects[..] {
        [object] if faults.is_empty() => whole(object),
        _ => None,
    }
}

pub(crate) fn apart() -> CalendarError {
    refused("This can't be put beside what is on the calendar of the same event.")
}

pub(crate) fn refused(message: &'static str) -> CalendarError {
    CalendarError::refused(Reason::ActionNotSupported, message)
}

/// The object without the method of its mail, and with this answer of an address where an attendee has the address.
pub(crate) fn with_answer(object: &str, answer: Option<(&str, &str)>) -> String {
    let mut written = Vec::with_capacity(object.len() + 64);
    let mut level = 0_usize;
    for line in Lines::new(object.as_bytes()) {
        let text = line.unfolded();
        let property = Line::read(&text);
        if property.is("BEGIN") {
            level += 1;
        } else if property.is("END") {
            level = level.saturating_sub(1);
        }
        if level == 1 && property.is("METHOD") {
            continue;
        }
        let is_of = |address: &str| {
            let value = String::from_utf8_lossy(property.value);
            bare_address(value.trim()).eq_ignore_ascii_case(address)
        };
        let answer = answer.filter(|_| level == 2 && property.is("ATTENDEE"));
        let Some((_, answer)) = answer.filter(|(address, _)| is_of(address)) else {
            written.extend_from_slice(line.bytes);
            continue;
        };
        let mut anew = property.name.to_vec();
        let is_kept = |name: &[u8]| !name.eq_ignore_ascii_case(b"PARTSTAT");
        for (_, parameter) in property.parameters().filter(|(name, _)| is_kept(name)) {
            anew.push(b';');
            anew.extend_from_slice(parameter);
        }
        anew.extend_from_slice(format!(";PARTSTAT={answer}:").as_bytes());
        anew.extend_from_slice(property.value);
        fold(&anew, b"\r\n", &mut written);
    }
    String::from_utf8_lossy(&written).into_owned()
}
