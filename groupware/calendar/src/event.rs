//! The event: what a calendar entry says, whoever's calendar it lies in.
//!
//! Knows neither the wire formats nor the store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::source;
use groupware_recurrence::Moment;

/// An enumeration that is a lower-case word on the wire and in the store, and an upper-case one
/// in iCalendar.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// The word on the wire, lower case.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word as it is written.
            pub(crate) fn of_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }

            /// Reads the word in any case.
            pub fn parse(text: &str) -> Option<Self> {
                $(if text.eq_ignore_ascii_case($word) { return Some(Self::$variant); })+
                None
            }
        }
    };
}

words! {
    /// Who may see the entry (iCalendar CLASS).
    Class {
        /// Everybody who may see the calendar.
        #[default] Public = "public",
        /// The owner alone.
        Private = "private",
        /// The owner; others see that the time is taken.
        Confidential = "confidential",
    }
}

words! {
    /// Whether the entry takes up its time (iCalendar TRANSP).
    Transparency {
        /// Busy.
        #[default] Opaque = "opaque",
        /// Free.
        Transparent = "transparent",
    }
}

words! {
    /// How firm the entry is (iCalendar STATUS).
    Status {
        /// It takes place.
        #[default] Confirmed = "confirmed",
        /// It may take place.
        Tentative = "tentative",
        /// Its organizer has called it off.
        Cancelled = "cancelled",
    }
}

words! {
    /// What is asked of an attendee (iCalendar ROLE).
    Role {
        /// Leads the meeting.
        Chair = "chair",
        /// Is needed.
        #[default] ReqParticipant = "req-participant",
        /// May come.
        OptParticipant = "opt-participant",
        /// Is told only.
        NonParticipant = "non-participant",
    }
}

words! {
    /// What an attendee has answered (iCalendar PARTSTAT).
    Answer {
        /// Nothing yet.
        #[default] NeedsAction = "needs-action",
        /// Comes.
        Accepted = "accepted",
        /// Does not come.
        Declined = "declined",
        /// May come.
        Tentative = "tentative",
        /// Sends somebody else.
        Delegated = "delegated",
    }
}

words! {
    /// What kind of attendee (iCalendar CUTYPE).
    UserType {
        /// A person.
        #[default] Individual = "individual",
        /// A group of people.
        Group = "group",
        /// A thing, such as a projector.
        Resource = "resource",
        /// A room.
        Room = "room",
        /// Not known.
        Unknown = "unknown",
    }
}

/// The owner of the calendar that the event comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Organizer {
    /// The local user.
    #[serde(rename = "u")]
    pub user: String,
    /// The address that is shown.
    #[serde(rename = "m")]
    pub email: String,
    /// A name for people.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}

/// Somebody who is invited.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attendee {
    /// The local user, if the address is one of ours. Others are kept on the event but get no
    /// invitation: this server sends no mail.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The address, without `mailto:`.
    #[serde(rename = "m")]
    pub email: String,
    /// A name for people.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What is asked of them.
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub role: Role,
    /// What kind of attendee.
    #[serde(rename = "k", default, skip_serializing_if = "is_default")]
    pub user_type: UserType,
    /// What they have answered.
    #[serde(rename = "a", default, skip_serializing_if = "is_default")]
    pub status: Answer,
    /// Whether an answer is wanted.
    #[serde(rename = "q", default, skip_serializing_if = "is_default")]
    pub rsvp: bool,
    /// The address they have sent instead.
    #[serde(rename = "dt", default, skip_serializing_if = "Option::is_none")]
    pub delegated_to: Option<String>,
    /// The address they come for.
    #[serde(rename = "df", default, skip_serializing_if = "Option::is_none")]
    pub delegated_from: Option<String>,
    /// The group they are invited through.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Who acts for them.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<String>,
    /// Where more is known about them.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
}

impl Attendee {
    /// Whether both are the same person: the same local user, or the same address.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.user, &other.user) {
            (Some(a), Some(b)) => a == b,
            (None, None) => self.email.eq_ignore_ascii_case(&other.email),
            _ => false,
        }
    }
}

/// What a client says about an event: everything but who it is from and which version it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// One line that says what it is.
    #[serde(rename = "sm", default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Where.
    #[serde(rename = "lo", default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Text.
    #[serde(rename = "de", default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The first moment.
    #[serde(rename = "st")]
    pub start: Moment,
    /// The first moment after it.
    #[serde(rename = "en")]
    pub end: Moment,
    /// Who may see it.
    #[serde(rename = "cl", default, skip_serializing_if = "is_default")]
    pub class: Class,
    /// Whether it takes up its time.
    #[serde(rename = "tr", default, skip_serializing_if = "is_default")]
    pub transparency: Transparency,
    /// How firm it is.
    #[serde(rename = "ss", default, skip_serializing_if = "is_default")]
    pub status: Status,
    /// iCalendar PRIORITY, 0 to 9.
    #[serde(rename = "pr", default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Labels.
    #[serde(rename = "ca", default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// A link.
    #[serde(rename = "ur", default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Properties of other makers, `x-…` in lower case, each an object with `data`.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, Value)>,
    /// Alarms as the client sent them; they stay on the owner's copy.
    #[serde(rename = "al", default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<Value>,
    /// Lines of iCalendar that came with it and that it has no members for, such as attachments and alarms; those of
    /// alarms stay on the owner's copy.
    #[serde(rename = "sr", default, skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<String>,
}

impl Details {
    /// Whether people who agreed to `self` must be asked again about `other`.
    pub(crate) fn differs_in_time_or_place(&self, other: &Self) -> bool {
        self.start != other.start || self.end != other.end || self.location != other.location
    }
}

/// One event, as it lies in one calendar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Names the event in every calendar (iCalendar UID).
    #[serde(rename = "id")]
    pub uid: String,
    /// Version, raised by the organizer's changes (iCalendar SEQUENCE).
    #[serde(rename = "sq", default, skip_serializing_if = "is_default")]
    pub sequence: u32,
    /// When it was made, seconds since 1970.
    #[serde(rename = "cr")]
    pub created: i64,
    /// When its details last changed, seconds since 1970. Answers don't count.
    #[serde(rename = "mo")]
    pub modified: i64,
    /// Whose calendar it comes from.
    #[serde(rename = "or")]
    pub organizer: Organizer,
    /// Who is invited; empty for an appointment.
    #[serde(rename = "at", default, skip_serializing_if = "Vec::is_empty")]
    pub attendees: Vec<Attendee>,
    /// What it says.
    #[serde(rename = "in")]
    pub details: Details,
}

impl Event {
    /// Whether somebody is invited.
    pub fn is_meeting(&self) -> bool {
        !self.attendees.is_empty()
    }

    /// The attendee that is the local user `user`.
    pub fn attendee(&self, user: &str) -> Option<&Attendee> {
        self.attendees
            .iter()
            .find(|attendee| attendee.user.as_deref() == Some(user))
    }

    /// The attendee that is the local user `user`, to be changed.
    pub(crate) fn attendee_mut(&mut self, user: &str) -> Option<&mut Attendee> {
        self.attendees
            .iter_mut()
            .find(|attendee| attendee.user.as_deref() == Some(user))
    }

    /// The local users that are invited: every attendee of ours but the organizer.
    pub fn invited_users(&self) -> impl Iterator<Item = &str> {
        self.attendees
            .iter()
            .filter_map(|attendee| attendee.user.as_deref())
            .filter(|user| *user != self.organizer.user)
    }

    /// The copy that goes to an attendee: the same event without the organizer's alarms.
    pub(crate) fn for_attendee(self: &Arc<Self>) -> Arc<Self> {
        let mut copy = Arc::clone(self);
        if copy.details.alarm.is_some() || !copy.details.source.is_empty() {
            let details = &mut Arc::make_mut(&mut copy).details;
            details.alarm = None;
            details.source = source::without_alarms(&details.source);
        }
        copy
    }
}

/// Whether a value need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case() {
        assert_eq!(Answer::parse("NEEDS-ACTION"), Some(Answer::NeedsAction));
        assert_eq!(Role::parse("Req-Participant"), Some(Role::ReqParticipant));
        assert_eq!(Class::parse("secret"), None);
    }

    #[test]
    fn the_same_person_by_user_or_by_address() {
        let local = |user: &str| Attendee {
            user: Some(user.into()),
            email: format!("{user}@localhost"),
            ..Attendee::default()
        };
        let far = |email: &str| Attendee {
            email: email.into(),
            ..Attendee::default()
        };
        assert!(local("ann").is_same(&local("ann")));
        assert!(!local("ann").is_same(&local("bob")));
        assert!(far("X@example.org").is_same(&far("x@example.org")));
        assert!(!far("ann@localhost").is_same(&local("ann")));
    }
}
