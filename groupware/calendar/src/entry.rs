//! The entry: an event and its owner's relation to it; its stored form.

mod read;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use groupware_store::ReadError;
use groupware_text::lean::{Lean, NoShortForm};
use serde::{Deserialize, Serialize};

use self::read::Rest;
use crate::{
    Answer, CalendarError, Event, keys, limits,
    object::Imported,
    written::{push_text, push_value},
};

/// The version of the stored form. Readers reject unknown versions.
const FORMAT: u8 = 2;
/// The previous version, which is still readable: the JSON of the whole entry.
const WHOLE: u8 = 1;
/// The separator of state and event, which contain no such byte.
const BORDER: u8 = 0;

/// Texts that recur in the JSON of events.
static EVENTS: Lean = Lean::new(&[
    r#"{"id":""#,
    r#"","cr":"#,
    r#","mo":"#,
    r#","or":{"u":""#,
    r#"","m":""#,
    r#"","n":""#,
    r#""},"at":[{"u":""#,
    r#""},{"u":""#,
    r#"","q":true},{"u":""#,
    r#"","a":"accepted","q":true},{"u":""#,
    r#"","a":"declined","q":true},{"u":""#,
    r#"","a":"tentative","q":true},{"u":""#,
    r#"","q":true}],"in":{"sm":""#,
    r#"","a":"accepted","q":true}],"in":{"sm":""#,
    r#"","a":"declined","q":true}],"in":{"sm":""#,
    r#""}],"in":{"sm":""#,
    r#""},"in":{"sm":""#,
    r#"","lo":""#,
    r#"","st":{"utc":""#,
    r#""},"en":{"utc":""#,
    r#""}}}"#,
    r#"","a":"delegated","q":true"#,
    r#"","dt":""#,
    r#"","df":""#,
    r#"","a":""#,
    r#"","q":true"#,
    r#"},{"u":""#,
    r#"}],"in":{"sm":""#,
]);
/// The usual maximum length of a stored event.
const USUAL_BYTES: usize = 384;
/// The usual maximum length of its JSON.
const USUAL_JSON_BYTES: usize = 1024;

/// The owner's relation to an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The owner's own event.
    #[serde(rename = "o")]
    Own,
    /// The owner has accepted.
    #[serde(rename = "a")]
    Accepted,
    /// The owner has accepted tentatively.
    #[serde(rename = "t")]
    Tentative,
    /// The organizer has cancelled it after the owner accepted, maybe tentatively.
    #[serde(rename = "c")]
    Cancelled,
    /// The owner is invited and has not replied: a ghost in the event list, a notice in the list of invitations.
    #[serde(rename = "i")]
    Invited {
        /// The identifier of the notice in this account.
        #[serde(rename = "n")]
        notice: String,
        /// When it was received, in seconds since 1970.
        #[serde(rename = "r")]
        received: i64,
    },
    /// It was imported, and is stored unchanged.
    #[serde(rename = "f")]
    Imported(Box<Imported>),
}

/// One record of a calendar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The owner's relation to the event.
    #[serde(rename = "s")]
    pub state: State,
    /// The event as this calendar knows it. Equal copies of a meeting, as most are, share it.
    #[serde(rename = "e")]
    pub event: Arc<Event>,
}

/// Encodes an event for storage; equal events have the same stored form in all calendars.
pub(crate) fn encode_event(event: &Event) -> Vec<u8> {
    let domain = event.organizer.email.rfind('@');
    let domain = domain.map_or("", |at| &event.organizer.email[at..]);
    let (domain, length) = match u8::try_from(domain.len()) {
        Ok(length) => (domain, length),
        Err(_) => ("", 0),
    };
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    bytes.push(length);
    bytes.extend_from_slice(domain.as_bytes());
    let mut json = Vec::with_capacity(USUAL_JSON_BYTES);
    write::push_event(&mut json, event);
    EVENTS.shorten(&mut bytes, &json, domain.as_bytes());
    bytes
}

impl State {
    /// Encodes an entry: a version byte, the state as JSON, and the event with short names and with recurring texts as
    /// bytes.
    pub(crate) fn encode_with(&self, event: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(event.len() + 80);
        bytes.push(FORMAT);
        self.push_json(&mut bytes);
        bytes.push(BORDER);
        bytes.extend_from_slice(event);
        bytes
    }

    /// Appends the same JSON as its `Serialize`.
    fn push_json(&self, to: &mut Vec<u8>) {
        match self {
            Self::Own => to.extend_from_slice(b"\"o\""),
            Self::Accepted => to.extend_from_slice(b"\"a\""),
            Self::Tentative => to.extend_from_slice(b"\"t\""),
            Self::Cancelled => to.extend_from_slice(b"\"c\""),
            Self::Invited { notice, received } => {
                to.extend_from_slice(br#"{"i":{"n":"#);
                push_text(to, notice);
                to.extend_from_slice(br#","r":"#);
                push_value(to, received);
                to.extend_from_slice(b"}}");
            }
            Self::Imported(_) => push_value(to, self),
        }
    }
}

/// Restores the JSON of an entry from its stored form.
///
/// # Errors
/// [`CalendarError::Unreadable`] if the version is unknown or the data is damaged.
pub(crate) fn json<'a>(key: &[u8], bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, CalendarError> {
    let corrupt = |cause: String| CalendarError::from(ReadError::corrupt(key, cause));
    match bytes.split_first() {
        Some((&FORMAT, parts)) => match restored(parts) {
            Ok(json) => Ok(Cow::Owned(json)),
            Err(error) => Err(corrupt(error.to_string())),
        },
        Some((&WHOLE, json)) => Ok(Cow::Borrowed(json)),
        Some((other, _)) => Err(corrupt(format!("format {other}, expected {FORMAT}"))),
        None => Err(corrupt("empty".to_owned())),
    }
}

fn restored(parts: &[u8]) -> Result<Vec<u8>, NoShortForm> {
    let border = parts.iter().position(|byte| *byte == BORDER);
    let (state, event) = parts.split_at(border.ok_or(NoShortForm)?);
    let (length, event) = event[1..].split_first().ok_or(NoShortForm)?;
    let (domain, event) = event
        .split_at_checked(usize::from(*length))
        .ok_or(NoShortForm)?;
    let mut json = Vec::with_capacity(USUAL_JSON_BYTES);
    json.extend_from_slice(br#"{"s":"#);
    json.extend_from_slice(state);
    json.extend_from_slice(br#","e":"#);
    EVENTS.restore(&mut json, event, &|to| to.extend_from_slice(domain))?;
    json.push(b'}');
    Ok(json)
}

/// Parses the JSON of an entry; `None` if it differs from the form that we write.
fn as_written(json: &str) -> Option<Entry> {
    let mut rest = Rest(json);
    rest.pass(r#"{"s":"#)?;
    let state = state(&mut rest)?;
    rest.pass(r#","e":"#)?;
    let event = Arc::new(read::event(&mut rest)?);
    rest.pass("}")?;
    rest.0.is_empty().then_some(Entry { state, event })
}

fn state(rest: &mut Rest<'_>) -> Option<State> {
    if rest.passes(r#"{"i":{"n":""#) {
        let notice = rest.owned()?;
        rest.pass(r#","r":"#)?;
        let received = rest.number()?;
        rest.pass("}}")?;
        return Some(State::Invited { notice, received });
    }
    rest.pass("\"")?;
    Some(match &*rest.text()? {
        "o" => State::Own,
        "a" => State::Accepted,
        "t" => State::Tentative,
        "c" => State::Cancelled,
        _ => return None,
    })
}

impl Entry {
    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`CalendarError::Unreadable`] if the version is unknown or the data is damaged.
    pub(crate) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, CalendarError> {
        Self::from_json(key, &json(key, bytes)?)
    }

    /// Parses the JSON of an entry.
    ///
    /// # Errors
    /// [`CalendarError::Unreadable`] if it is damaged.
    pub(crate) fn from_json(key: &[u8], json: &[u8]) -> Result<Self, CalendarError> {
        let as_written = std::str::from_utf8(json).ok().and_then(as_written);
        match as_written {
            Some(entry) => Ok(entry),
            None => serde_json::from_slice(json)
                .map_err(|error| ReadError::corrupt(key, error.to_string()).into()),
        }
    }

    /// Rejects an event that is too large, or whose stored form could not be read again. Called for a client's text; a
    /// reply, which adds a few bytes, is never rejected for its size.
    pub(crate) fn check_storable(&self) -> Result<(), CalendarError> {
        let mut json = Vec::with_capacity(USUAL_JSON_BYTES);
        self.push_json(&mut json);
        if json.len() >= limits::EVENT_BYTES {
            return Err(CalendarError::bad_request(format!(
                "The event is larger than {} KiB.",
                limits::EVENT_BYTES / 1024
            )));
        }
        // Properties of other vendors may be nested too deeply to be read again.
        let details = &self.event.details;
        let is_flat = details.extra.is_empty() && details.alarm.is_none();
        if is_flat || Self::from_json(b"", &json).is_ok() {
            return Ok(());
        }
        Err(CalendarError::bad_request("The event can't be stored."))
    }

    /// Appends the same JSON as its `Serialize`.
    fn push_json(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(br#"{"s":"#);
        self.state.push_json(to);
        to.extend_from_slice(br#","e":"#);
        write::push_event(to, &self.event);
        to.push(b'}');
    }

    /// The notice's identifier, if this is an unanswered invitation.
    pub fn notice(&self) -> Option<&str> {
        match &self.state {
            State::Invited { notice, .. } => Some(notice),
            _ => None,
        }
    }

    /// The imported object that this entry is a view of, if it is one.
    pub fn imported(&self) -> Option<&Imported> {
        match &self.state {
            State::Imported(imported) => Some(imported),
            _ => None,
        }
    }

    /// The owner's reply to an external invitation, as far as the object's lines contain it.
    pub fn own_answer(&self) -> Option<Answer> {
        let owner = &self.imported()?.owner;
        let mut all = self.event.attendees.iter();
        let own = all.find(|attendee| attendee.email.eq_ignore_ascii_case(owner));
        own.map(|attendee| attendee.status)
    }

    /// The identifier of this instance of a recurring event: `20260105T090000Z`.
    pub fn recurrence_id(&self) -> Option<String> {
        self.imported()?.shows.map(crate::time::compact)
    }

    /// The entry's name for lookups: its UID, and the instance if it is one.
    pub fn name(&self) -> Cow<'_, str> {
        let uid = &self.event.uid;
        match self.recurrence_id() {
            Some(id) => Cow::Owned(keys::instance_name(uid, &id)),
            None => Cow::Borrowed(uid),
        }
    }
}

#[cfg(test)]
mod tests;
