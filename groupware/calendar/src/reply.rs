//! Attendees' replies received by mail (RFC 5546 §3.2.3), and how the organizer records them.

use std::sync::Arc;

use calcard::icalendar::ICalendarProperty as Property;

use crate::imported::view::{self, Series};
use crate::itip::{absent, announced, entry_of, is_own, refused, with_answer};
use crate::json::is_name;
use crate::mailbox::{self, Changes};
use crate::{Answer, Attendee, CalendarError, Context, Decision, Entry};
use groupware_recurrence::values::text;

/// An attendee's reply.
#[derive(Debug, Clone)]
pub struct Reply {
    entry: Entry,
    attendee: Attendee,
    comment: Option<String>,
    /// True if it is about one instance of a series.
    is_part: bool,
}

impl Reply {
    /// Parses an object with the method REPLY: one attendee with a status.
    pub(crate) fn read(uid: &str, object: &str, owner: &str, now: i64) -> Option<Self> {
        let calendar = view::parse(object).ok()?;
        let series = Series::of(&calendar);
        let entry = announced((uid, object), &series, (owner, now))?;
        let [component] = &series.components[..] else {
            return None;
        };
        let mut all = component.properties(&Property::Attendee);
        let mut attendee = view::attendee(all.next()?).filter(|_| all.next().is_none())?;
        if attendee.status == Answer::NeedsAction || !is_name(&attendee.email) {
            return None;
        }
        let is_delegated = attendee.status == Answer::Delegated;
        let to = attendee.delegated_to.take();
        attendee.delegated_to = to.filter(|to| is_delegated && is_name(to));
        Some(Self {
            entry,
            comment: text(component, &Property::Comment).map(str::to_owned),
            is_part: series.is_part(),
            attendee,
        })
    }

    /// The event as the message describes it.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The replying attendee, with the reply.
    pub fn attendee(&self) -> &Attendee {
        &self.attendee
    }

    /// The attendee's comment.
    pub fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// Returns true if it replies to an earlier version of the event than the organizer's.
    pub fn is_outdated(&self, held: &Entry) -> bool {
        self.entry.event.sequence < held.event.sequence
    }

    /// The attendee as currently recorded in the organizer's event.
    ///
    /// # Errors
    /// 400 with the reason if the reply can't be recorded.
    pub fn recorded<'e>(&self, held: Option<&'e Entry>) -> Result<&'e Attendee, CalendarError> {
        let held = held.ok_or_else(absent)?;
        if !is_own(held) {
            return Err(refused(
                "Somebody else organizes this event: answers are recorded by its organizer.",
            ));
        }
        if self.is_part {
            return Err(refused(
                "An answer to one event of a series can't be recorded here.",
            ));
        }
        let known = held.event.attendees.iter().find(|it| self.is_of(it));
        let known = known.ok_or_else(|| refused("You haven't invited this address."))?;
        match known.user {
            None => Ok(known),
            Some(_) => Err(refused(
                "The attendee is a user of this server, and answers in the calendar here.",
            )),
        }
    }

    fn is_of(&self, attendee: &Attendee) -> bool {
        attendee.email.eq_ignore_ascii_case(&self.attendee.email)
    }

    /// The organizer's event with the reply in it.
    fn recorded_in(&self, held: &Entry, now: i64) -> Result<Entry, CalendarError> {
        let answer = self.attendee.status;
        if let Some(there) = held.imported() {
            let word = answer.as_str().to_ascii_uppercase();
            let said = (&*self.attendee.email, &*word);
            let text = with_answer(there.original(), Some(said));
            return entry_of(&text, &self.entry.event.uid, (&there.owner, now));
        }
        let mut entry = held.clone();
        let mut all = Arc::make_mut(&mut entry.event).attendees.iter_mut();
        if let Some(attendee) = all.find(|it| self.is_of(it)) {
            attendee.status = answer;
            attendee.delegated_to = self.attendee.delegated_to.clone();
        }
        entry.check_storable()?;
        Ok(entry)
    }
}

/// Records an attendee's reply in the owner's event.
///
/// # Errors
/// 400 if it can't be recorded; the store's errors.
pub fn record_reply(context: &Context<'_>, reply: &Reply) -> Result<Decision, CalendarError> {
    let uid = &*reply.entry.event.uid;
    let held = mailbox::load(context.snapshot, context.mailbox, uid)?.ok_or_else(absent)?;
    reply.recorded(Some(&held.entry))?;
    let entry = reply.recorded_in(&held.entry, context.now)?;
    let mut changes = Changes::default();
    changes.replace(context.mailbox, uid, Some(&held), Some(&entry));
    Ok(Decision {
        batch: changes.into_batch(),
        entry: Some(entry),
    })
}
