//! The entry: an event and what the owner of the calendar has to do with it; its stored form.

use groupware_store::ReadError;
use serde::{Deserialize, Serialize};

use crate::{CalendarError, Event, limits};

/// Version of the stored form. A reader refuses what it doesn't know.
const FORMAT: u8 = 1;

/// What the owner of the calendar has to do with an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It is the owner's own.
    #[serde(rename = "o")]
    Own,
    /// The owner comes.
    #[serde(rename = "a")]
    Accepted,
    /// The owner may come.
    #[serde(rename = "t")]
    Tentative,
    /// The organizer has called it off after the owner said yes or perhaps.
    #[serde(rename = "c")]
    Cancelled,
    /// The owner is invited and has not answered: a ghost in the event list, a notice in the
    /// list of invitations.
    #[serde(rename = "i")]
    Invited {
        /// Names the notice in this mailbox.
        #[serde(rename = "n")]
        notice: String,
        /// When it came in, seconds since 1970.
        #[serde(rename = "r")]
        received: i64,
    },
}

/// One record of a calendar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What the owner has to do with it.
    #[serde(rename = "s")]
    pub state: State,
    /// The event as this calendar knows it.
    #[serde(rename = "e")]
    pub event: Event,
}

impl Entry {
    /// The stored form: a version byte, then JSON with short names.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1024);
        bytes.push(FORMAT);
        serde_json::to_writer(&mut bytes, self).expect("an entry always serialises to memory");
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`CalendarError::Unreadable`] if it is of another version or damaged.
    pub(crate) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, CalendarError> {
        let corrupt = |cause: String| CalendarError::from(ReadError::corrupt(key, cause));
        match bytes.split_first() {
            Some((&FORMAT, json)) => {
                serde_json::from_slice(json).map_err(|error| corrupt(error.to_string()))
            }
            Some((other, _)) => Err(corrupt(format!("format {other}, expected {FORMAT}"))),
            None => Err(corrupt("empty".to_owned())),
        }
    }

    /// Refuses an event that is larger than one may be, or whose stored form could not be read
    /// again. Called where a client's text comes in; an answer, which adds some bytes, is never
    /// refused for size.
    pub(crate) fn check_storable(&self) -> Result<(), CalendarError> {
        let bytes = self.encode();
        if bytes.len() > limits::EVENT_BYTES {
            return Err(CalendarError::bad_request(format!(
                "The event is larger than {} KiB.",
                limits::EVENT_BYTES / 1024
            )));
        }
        match Self::decode(b"", &bytes) {
            Ok(_) => Ok(()),
            Err(_) => Err(CalendarError::bad_request("The event can't be stored.")),
        }
    }

    /// The notice's name, if this is an unanswered invitation.
    pub fn notice(&self) -> Option<&str> {
        match &self.state {
            State::Invited { notice, .. } => Some(notice),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_and_damage_are_told_apart_from_absence() {
        for bytes in [&b""[..], b"\x02{}", b"\x01{", b"\x01{}"] {
            let error = Entry::decode(b"c/e/x", bytes).unwrap_err();
            assert!(
                matches!(error, CalendarError::Unreadable(ReadError::Corrupt { .. })),
                "{error}"
            );
        }
    }

    #[test]
    fn what_could_not_be_read_again_is_not_stored() {
        let mut new = crate::parse_json_events(br#"{"start":{"date":"2026-01-05"}}"#).unwrap();
        let mut entry = Entry {
            state: State::Own,
            event: Event {
                uid: "UID".into(),
                sequence: 0,
                created: 0,
                modified: 0,
                organizer: crate::Organizer {
                    user: "ann".into(),
                    email: "ann@localhost".into(),
                    display_name: None,
                },
                attendees: Vec::new(),
                details: new.remove(0).details,
            },
        };
        let nested = |levels| (0..levels).fold(1.into(), |inner, _| serde_json::json!([inner]));
        for (levels, status) in [(16, None), (123, None), (126, Some(400))] {
            entry.event.details.alarm = Some(nested(levels));
            let found = entry.check_storable().err().map(|error| error.status());
            assert_eq!(found, status, "{levels}");
        }
    }
}
