//! iTIP messages (RFC 5546) received by mail (iMIP, RFC 6047). None is applied automatically: the recipient decides.

use calcard::icalendar::{ICalendar, ICalendarProperty as Property};
use groupware_proto_ical::message::whole;
use groupware_proto_ical::split;

use crate::imported::view;
use crate::{Cancellation, Entry, MailInvitation, Reply, limits};
use groupware_recurrence::values::text;

/// An iTIP message about one event.
#[derive(Debug, Clone)]
pub enum MailMessage {
    /// REQUEST or PUBLISH: an event for the recipient's calendar.
    Invitation(MailInvitation),
    /// CANCEL: the organizer has cancelled the event, or some instances of it.
    Cancellation(Cancellation),
    /// REPLY: an attendee has replied.
    Reply(Reply),
}

impl MailMessage {
    /// Parses a calendar part of a mail, for the user with this address; `None` if it isn't a message about one event,
    /// or has another method.
    pub fn read(part: &str, owner: &str, now: i64) -> Option<Self> {
        let (objects, _) = split(part.as_bytes()).ok()?;
        let [object] = &objects[..] else {
            return None;
        };
        let text = whole(object, limits::OBJECT_BYTES)?;
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

    /// The event as the message describes it.
    pub fn entry(&self) -> &Entry {
        match self {
            Self::Invitation(it) => it.entry(),
            Self::Cancellation(it) => it.entry(),
            Self::Reply(it) => it.entry(),
        }
    }

    /// The sender of the message: the organizer, or the replying attendee.
    pub fn sender(&self) -> &str {
        match self {
            Self::Invitation(_) | Self::Cancellation(_) => &self.entry().event.organizer.email,
            Self::Reply(it) => &it.attendee().email,
        }
    }
}

/// The method of a calendar, in upper case.
fn method(calendar: &ICalendar) -> Option<String> {
    let root = calendar.components.first()?;
    text(root, &Property::Method).map(str::to_ascii_uppercase)
}
