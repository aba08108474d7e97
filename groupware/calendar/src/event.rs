//! The event: the content of a calendar entry, in any calendar.
//!
//! Knows neither the wire formats nor the store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::source;
use groupware_recurrence::Moment;

/// Declares an enumeration that is a lower-case word on the wire and in the store, and an upper-case one in iCalendar.
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

            /// Parses the exact word.
            pub(crate) fn of_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }

            /// Parses the word, ignoring case.
            pub fn parse(text: &str) -> Option<Self> {
                $(if text.eq_ignore_ascii_case($word) { return Some(Self::$variant); })+
                None
            }
        }
    };
}

words! {
    /// The visibility of the entry (iCalendar CLASS).
    Class {
        /// Visible to every reader of the calendar.
        #[default] Public = "public",
        /// Visible to the owner only.
        Private = "private",
        /// Visible to the owner; others see only that the time is busy.
        Confidential = "confidential",
    }
}

words! {
    /// The free/busy effect of the entry (iCalendar TRANSP).
    Transparency {
        /// Busy.
        #[default] Opaque = "opaque",
        /// Free.
        Transparent = "transparent",
    }
}

words! {
    /// The status of the entry (iCalendar STATUS).
    Status {
        /// Confirmed.
        #[default] Confirmed = "confirmed",
        /// Tentative.
        Tentative = "tentative",
        /// Cancelled by its organizer.
        Cancelled = "cancelled",
    }
}

words! {
    /// The role of an attendee (iCalendar ROLE).
    Role {
        /// The chair of the meeting.
        Chair = "chair",
        /// Attendance is required.
        #[default] ReqParticipant = "req-participant",
        /// Attendance is optional.
        OptParticipant = "opt-participant",
        /// Informed only.
        NonParticipant = "non-participant",
    }
}

words! {
    /// The reply of an attendee (iCalendar PARTSTAT).
    Answer {
        /// No reply yet.
        #[default] NeedsAction = "needs-action",
        /// Accepted.
        Accepted = "accepted",
        /// Declined.
        Declined = "declined",
        /// Accepted tentatively.
        Tentative = "tentative",
        /// Delegated to another attendee.
        Delegated = "delegated",
    }
}

words! {
    /// The kind of attendee (iCalendar CUTYPE).
    UserType {
        /// A person.
        #[default] Individual = "individual",
        /// A group of people.
        Group = "group",
        /// A thing, such as a projector.
        Resource = "resource",
        /// A room.
        Room = "room",
        /// Unknown.
        Unknown = "unknown",
    }
}

/// The owner of the event's original calendar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Organizer {
    /// The local user.
    #[serde(rename = "u")]
    pub user: String,
    /// The address to show.
    #[serde(rename = "m")]
    pub email: String,
    /// The display name.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}

/// An invited attendee.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attendee {
    /// The local user, if the address belongs to one. Other attendees are stored with the event but get no invitation:
    /// this server sends no mail.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The address, without `mailto:`.
    #[serde(rename = "m")]
    pub email: String,
    /// The display name.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The attendee's role.
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub role: Role,
    /// The kind of attendee.
    #[serde(rename = "k", default, skip_serializing_if = "is_default")]
    pub user_type: UserType,
    /// The attendee's reply.
    #[serde(rename = "a", default, skip_serializing_if = "is_default")]
    pub status: Answer,
    /// True if a reply is requested.
    #[serde(rename = "q", default, skip_serializing_if = "is_default")]
    pub rsvp: bool,
    /// The address of the delegate.
    #[serde(rename = "dt", default, skip_serializing_if = "Option::is_none")]
    pub delegated_to: Option<String>,
    /// The address that delegated to this attendee.
    #[serde(rename = "df", default, skip_serializing_if = "Option::is_none")]
    pub delegated_from: Option<String>,
    /// The address of the invited group.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The address that acts for the attendee.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<String>,
    /// The URI of a directory entry.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
}

impl Attendee {
    /// Returns true if both are the same person: the same local user, or the same address.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.user, &other.user) {
            (Some(a), Some(b)) => a == b,
            (None, None) => self.email.eq_ignore_ascii_case(&other.email),
            _ => false,
        }
    }
}

/// A client's description of an event: everything but its organizer, attendees, and version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// A one-line title.
    #[serde(rename = "sm", default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The location.
    #[serde(rename = "lo", default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The description.
    #[serde(rename = "de", default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The start, inclusive.
    #[serde(rename = "st")]
    pub start: Moment,
    /// The end, exclusive.
    #[serde(rename = "en")]
    pub end: Moment,
    /// The visibility.
    #[serde(rename = "cl", default, skip_serializing_if = "is_default")]
    pub class: Class,
    /// The free/busy effect.
    #[serde(rename = "tr", default, skip_serializing_if = "is_default")]
    pub transparency: Transparency,
    /// The status.
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
    /// Properties of other vendors, `x-…` in lower case, each an object with `data`.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, Value)>,
    /// Alarms as sent by the client; only the owner's copy has them.
    #[serde(rename = "al", default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<Value>,
    /// iCalendar lines of the event without a member here, such as attachments and alarms; only the owner's copy has
    /// those of alarms.
    #[serde(rename = "sr", default, skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<String>,
}

impl Details {
    /// Returns true if attendees who accepted `self` must be asked again about `other`.
    pub(crate) fn differs_in_time_or_place(&self, other: &Self) -> bool {
        self.start != other.start || self.end != other.end || self.location != other.location
    }
}

/// One event, as stored in one calendar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The identifier of the event in every calendar (iCalendar UID).
    #[serde(rename = "id")]
    pub uid: String,
    /// The version, incremented by the organizer's changes (iCalendar SEQUENCE).
    #[serde(rename = "sq", default, skip_serializing_if = "is_default")]
    pub sequence: u32,
    /// When it was created, in seconds since 1970.
    #[serde(rename = "cr")]
    pub created: i64,
    /// When its details last changed, in seconds since 1970. Replies don't count.
    #[serde(rename = "mo")]
    pub modified: i64,
    /// The organizer.
    #[serde(rename = "or")]
    pub organizer: Organizer,
    /// The attendees; empty for an appointment.
    #[serde(rename = "at", default, skip_serializing_if = "Vec::is_empty")]
    pub attendees: Vec<Attendee>,
    /// The description of the event.
    #[serde(rename = "in")]
    pub details: Details,
}

impl Event {
    /// Returns true if there are attendees.
    pub fn is_meeting(&self) -> bool {
        !self.attendees.is_empty()
    }

    /// The attendee that is the local user `user`.
    pub fn attendee(&self, user: &str) -> Option<&Attendee> {
        self.attendees
            .iter()
            .find(|attendee| attendee.user.as_deref() == Some(user))
    }

    /// The attendee that is the local user `user`, mutable.
    pub(crate) fn attendee_mut(&mut self, user: &str) -> Option<&mut Attendee> {
        self.attendees
            .iter_mut()
            .find(|attendee| attendee.user.as_deref() == Some(user))
    }

    /// The invited local users: every local attendee except the organizer.
    pub fn invited_users(&self) -> impl Iterator<Item = &str> {
        self.attendees
            .iter()
            .filter_map(|attendee| attendee.user.as_deref())
            .filter(|user| *user != self.organizer.user)
    }

    /// The copy for an attendee: the same event without the organizer's alarms.
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

/// Returns true if a value is the default and can be omitted.
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
