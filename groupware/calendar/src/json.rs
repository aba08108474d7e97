//! Parses events from clients' JSON: wire types, and their conversion to a [`NewEvent`]. Ignores unknown properties, as
//! Domino does; rejects those that it can't store correctly (recurrence).

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use groupware_text::shortened;

use crate::{
    CalendarError, Class, Details, Moment, Reason, Role, Status, Transparency, UserType,
    bounded::Bounded, limits, source, time,
};

/// An event as described by a client, without an owner.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// The UID, if the client sends one.
    pub uid: Option<String>,
    /// The version, if the client sends one.
    pub sequence: Option<u32>,
    /// The organizer's address, if the client sends one. It must be the calendar's owner.
    pub organizer: Option<String>,
    /// The organizer's display name.
    pub organizer_name: Option<String>,
    /// The attendees to invite.
    pub attendees: Vec<NewAttendee>,
    /// The description of the event.
    pub details: Details,
    /// True if it was sent as iCalendar, completely: `source` then has the alarms.
    pub is_icalendar: bool,
}

/// An attendee to invite, as named by the client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewAttendee {
    /// An address or a bare user name, without `mailto:`.
    pub address: String,
    /// The display name.
    pub display_name: Option<String>,
    /// The attendee's role.
    pub role: Role,
    /// The kind of attendee.
    pub user_type: UserType,
    /// True if a reply is requested.
    pub rsvp: bool,
    /// The address of the invited group.
    pub member: Option<String>,
    /// The address that acts for the attendee.
    pub sent_by: Option<String>,
    /// The URI of a directory entry.
    pub dir: Option<String>,
}

/// Parses `{"events":[…]}` or a bare event.
///
/// # Errors
/// 400 with a sentence that describes the problem.
pub fn parse_json_events(body: &[u8]) -> Result<Vec<NewEvent>, CalendarError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(CalendarError::bad_request("Empty request body."));
    }
    if body.len() > limits::BODY_BYTES {
        return Err(CalendarError::bad_request("The request body is too large."));
    }
    let envelope: Envelope<'_> = parse(body)?;
    let events = match envelope.events {
        Some(events) => events
            .into_iter()
            .map(|event| parse::<WireEvent>(event.get().as_bytes())?.into_new())
            .collect::<Result<Vec<_>, _>>()?,
        None => vec![parse::<WireEvent>(body)?.into_new()?],
    };
    Ok(events)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    events: Option<Vec<&'a RawValue>>,
}

fn parse<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, CalendarError> {
    serde_json::from_slice(json)
        .map_err(|error| CalendarError::bad_request(format!("Error parsing JSON: {error}.")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent {
    id: Option<String>,
    summary: Option<String>,
    location: Option<String>,
    description: Option<String>,
    start: Option<WireMoment>,
    end: Option<WireMoment>,
    duration: Option<String>,
    class: Option<String>,
    transparency: Option<String>,
    status: Option<String>,
    sequence: Option<u32>,
    priority: Option<u8>,
    categories: Option<Categories>,
    url: Option<String>,
    organizer: Option<WireOrganizer>,
    #[serde(default)]
    attendees: Option<Vec<WireAttendee>>,
    alarm: Option<Bounded>,
    recurrence_rule: Option<IgnoredAny>,
    recurrence_dates: Option<IgnoredAny>,
    except_dates: Option<IgnoredAny>,
    recurrence_id: Option<IgnoredAny>,
    #[serde(flatten)]
    extra: Extra,
}

/// The `x-…` members by their names in lower case; others are skipped unparsed.
struct Extra(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Extra;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Extra, A::Error> {
                let mut extra = BTreeMap::new();
                while let Some(name) = members.next_key::<String>()? {
                    let name = name.to_ascii_lowercase();
                    if name.starts_with("x-") {
                        let Bounded(value) = members.next_value()?;
                        extra.insert(name, value);
                    } else {
                        members.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Extra(extra))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[derive(Deserialize)]
struct WireMoment {
    date: String,
    time: Option<String>,
    utc: Option<bool>,
    tzid: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOrganizer {
    email: Option<String>,
    display_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAttendee {
    email: Option<String>,
    display_name: Option<String>,
    role: Option<String>,
    user_type: Option<String>,
    rsvp: Option<bool>,
    member: Option<String>,
    sent_by: Option<String>,
    dir: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Categories {
    List(Vec<String>),
    Line(String),
}

impl WireEvent {
    fn into_new(self) -> Result<NewEvent, CalendarError> {
        self.refuse_recurrence()?;
        let start = self
            .start
            .ok_or_else(|| CalendarError::bad_request("The event has no start."))?
            .into_moment()?;
        let end = self.end.map(WireMoment::into_moment).transpose()?;
        let end = end_of(&start, end, self.duration.as_deref().map(span).transpose()?)?;
        if self.priority.is_some_and(|priority| priority > 9) {
            return Err(CalendarError::bad_request("Priority must be 0 to 9."));
        }
        let organizer = self.organizer.unwrap_or(WireOrganizer {
            email: None,
            display_name: None,
        });
        let attendees = self.attendees.unwrap_or_default();
        Ok(NewEvent {
            uid: self.id.map(check_uid).transpose()?,
            sequence: self.sequence,
            organizer: organizer.email.map(|email| bare_address(&email)),
            organizer_name: line("displayName", organizer.display_name)?,
            attendees: attendees
                .into_iter()
                .map(WireAttendee::into_new)
                .collect::<Result<_, _>>()?,
            details: Details {
                summary: self.summary,
                location: self.location,
                description: self.description,
                start,
                end,
                class: word(self.class, "class", Class::parse)?,
                transparency: word(self.transparency, "transparency", Transparency::parse)?,
                status: word(self.status, "status", Status::parse)?,
                priority: self.priority,
                categories: self
                    .categories
                    .map(Categories::into_list)
                    .unwrap_or_default(),
                url: self.url.map(|url| single_line("url", url)).transpose()?,
                extra: extra(self.extra)?,
                alarm: self.alarm.map(|Bounded(value)| value),
                source: Vec::new(),
            },
            is_icalendar: false,
        })
    }

    fn refuse_recurrence(&self) -> Result<(), CalendarError> {
        let parts = [
            ("recurrenceRule", &self.recurrence_rule),
            ("recurrenceDates", &self.recurrence_dates),
            ("exceptDates", &self.except_dates),
            ("recurrenceId", &self.recurrence_id),
        ];
        match parts.iter().find(|(_, value)| value.is_some()) {
            Some((name, _)) => Err(recurrence_refused(name)),
            None => Ok(()),
        }
    }
}

/// The refusal of a recurring event.
pub(crate) fn recurrence_refused(property: &str) -> CalendarError {
    CalendarError::bad_request(format!(
        "Recurring events are not supported: remove {property}."
    ))
}

impl WireMoment {
    fn into_moment(self) -> Result<Moment, CalendarError> {
        let date = time::parse_date(&self.date).ok_or_else(|| wrong("date", &self.date))?;
        let utc = self.utc.unwrap_or(false);
        let Some(text) = self.time else {
            return Ok(Moment::Day(date));
        };
        let clock = time::parse_time(&text).ok_or_else(|| wrong("time", &text))?;
        let local = date.to_datetime(clock);
        match (utc, self.tzid) {
            (true, Some(_)) => Err(CalendarError::bad_request(
                "A time has either utc or tzid, not both.",
            )),
            (true, None) => Ok(Moment::Utc(local)),
            (false, Some(tzid)) => Ok(Moment::zoned(local, &tzid)?),
            (false, None) => Ok(Moment::Floating(local)),
        }
    }
}

impl WireAttendee {
    fn into_new(self) -> Result<NewAttendee, CalendarError> {
        let address = self
            .email
            .as_deref()
            .or(self.display_name.as_deref())
            .map(bare_address)
            .filter(|address| !address.is_empty())
            .ok_or_else(|| CalendarError::bad_request("An attendee has no email."))?;
        Ok(NewAttendee {
            address: single_line("email", address)?,
            display_name: line("displayName", self.display_name)?,
            role: word(self.role, "role", Role::parse)?,
            user_type: word(self.user_type, "userType", UserType::parse)?,
            rsvp: self.rsvp.unwrap_or(false),
            member: line("member", self.member)?,
            sent_by: line("sentBy", self.sent_by)?,
            dir: line("dir", self.dir)?,
        })
    }
}

impl Categories {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::List(list) => list,
            Self::Line(line) => line
                .split(',')
                .map(|label| label.trim().to_owned())
                .filter(|label| !label.is_empty())
                .collect(),
        }
    }
}

/// Parses a duration such as `PT1H`.
fn span(text: &str) -> Result<jiff::Span, CalendarError> {
    text.parse::<jiff::Span>()
        .ok()
        .filter(|span| !span.is_negative())
        .ok_or_else(|| wrong("duration", text))
}

/// The end of an event by the client's end or duration. Without either, an all-day event lasts one day and a timed one
/// has no duration: RFC 5545 §3.6.1.
pub(crate) fn end_of(
    start: &Moment,
    end: Option<Moment>,
    duration: Option<jiff::Span>,
) -> Result<Moment, CalendarError> {
    let end = match (end, duration) {
        (Some(end), _) => end,
        (None, Some(span)) => later(start, span)?,
        (None, None) => later(start, jiff::Span::new().days(i64::from(start.is_day())))?,
    };
    check_end(start, end)
}

fn later(start: &Moment, span: jiff::Span) -> Result<Moment, CalendarError> {
    start
        .plus(span)
        .ok_or_else(|| CalendarError::bad_request("The event ends after the last year."))
}

/// Rejects an end before the start, or of another kind (day and time).
fn check_end(start: &Moment, end: Moment) -> Result<Moment, CalendarError> {
    if start.is_day() != end.is_day() {
        return Err(CalendarError::bad_request(
            "Start and end must both have a time or both have none.",
        ));
    }
    if end.instant() < start.instant() {
        return Err(CalendarError::bad_request(
            "The event ends before it starts.",
        ));
    }
    Ok(end)
}

/// Returns true if a text can be an address or an identifier.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= limits::UID_BYTES && !text.contains(char::is_control)
}

/// Rejects a UID that is empty, too long, or has control characters.
pub(crate) fn check_uid(uid: String) -> Result<String, CalendarError> {
    if !is_name(&uid) {
        return Err(CalendarError::refused(
            Reason::BadIdentifier,
            "An identifier has 1 to 255 bytes and no control characters.",
        ));
    }
    Ok(uid)
}

/// Rejects control characters where a value is a single line in iCalendar, too.
pub(crate) fn single_line(name: &str, text: String) -> Result<String, CalendarError> {
    if text.contains(char::is_control) {
        return Err(wrong(name, &text.replace(char::is_control, " ")));
    }
    Ok(text)
}

fn line(name: &str, text: Option<String>) -> Result<Option<String>, CalendarError> {
    text.map(|text| single_line(name, text)).transpose()
}

/// An address without `mailto:` and surrounding spaces.
pub(crate) fn bare_address(text: &str) -> String {
    let text = text.trim();
    match text.split_at_checked("mailto:".len()) {
        Some((scheme, address)) if scheme.eq_ignore_ascii_case("mailto:") => {
            address.trim().to_owned()
        }
        _ => text.to_owned(),
    }
}

/// Parses an enumerated value; absent means the default.
pub(crate) fn word<T: Default>(
    text: Option<impl AsRef<str>>,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, CalendarError> {
    match text {
        None => Ok(T::default()),
        Some(text) => parse(text.as_ref()).ok_or_else(|| wrong(name, text.as_ref())),
    }
}

fn wrong(name: &str, text: &str) -> CalendarError {
    CalendarError::bad_request(format!("Invalid {name}: {}", shortened(text)))
}

/// Keeps the `x-…` properties: objects with `data`, without computed ones.
fn extra(Extra(members): Extra) -> Result<Vec<(String, Value)>, CalendarError> {
    let mut kept = Vec::new();
    for (name, value) in members {
        if source::is_computed(&name) {
            continue;
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !name.bytes().all(plain) {
            return Err(wrong("property name", &name));
        }
        if value.get("data").is_none() {
            return Err(CalendarError::bad_request(format!(
                "{} must be an object with data.",
                shortened(&name)
            )));
        }
        kept.push((name, value));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> NewEvent {
        parse_json_events(json.as_bytes()).unwrap().remove(0)
    }

    fn refusal(json: &str) -> String {
        let error = parse_json_events(json.as_bytes()).unwrap_err();
        assert_eq!(error.status(), 400);
        error.to_string()
    }

    const START: &str = r#""start":{"date":"2026-01-05","time":"09:00:00","utc":true}"#;

    #[test]
    fn an_envelope_and_a_bare_event_read_alike() {
        let bare = format!(r#"{{"summary":"x",{START}}}"#);
        let envelope = format!(r#"{{"timezones":[],"events":[{bare}]}}"#);
        assert_eq!(parsed(&bare), parsed(&envelope));
    }

    #[test]
    fn the_end_follows_from_duration_or_kind() {
        let end = |json: &str| parsed(json).details.end.instant();
        let nine = time::parse_extended("2026-01-05T09:00:00Z").unwrap();
        assert_eq!(end(&format!("{{{START}}}")), nine);
        assert_eq!(
            end(&format!(r#"{{{START},"duration":"PT1H30M"}}"#)),
            nine + 5400
        );
        assert_eq!(end(r#"{"start":{"date":"2026-01-05"}}"#), nine + 15 * 3600);
    }

    #[test]
    fn addresses_lose_their_scheme() {
        for text in ["mailto:ann@x", "MAILTO: ann@x", " ann@x "] {
            assert_eq!(bare_address(text), "ann@x", "{text}");
        }
        assert_eq!(bare_address("ann"), "ann");
    }

    #[test]
    fn wrong_events_are_refused_in_words() {
        let cases = [
            (String::new(), "Empty request body."),
            ("[".into(), "Error parsing JSON"),
            ("7".into(), "Error parsing JSON"),
            ("{}".into(), "The event has no start."),
            (
                r#"{"start":{"date":"2026-02-30"}}"#.into(),
                "Invalid date: 2026-02-30",
            ),
            (
                r#"{"start":{"date":"2026-02-03","time":"9:00"}}"#.into(),
                "Invalid time: 9:00",
            ),
            (
                r#"{"start":{"date":"2026-02-03","time":"09:00:00","utc":true,"tzid":"UTC"}}"#
                    .into(),
                "A time has either utc or tzid, not both.",
            ),
            (
                r#"{"start":{"date":"2026-02-03","time":"09:00:00","tzid":"Atlantis"}}"#.into(),
                "Unknown time zone: Atlantis",
            ),
            (
                format!(r#"{{{START},"end":{{"date":"2026-01-06"}}}}"#),
                "Start and end must both",
            ),
            (
                format!(
                    r#"{{{START},"end":{{"date":"2026-01-04","time":"09:00:00","utc":true}}}}"#
                ),
                "The event ends before it starts.",
            ),
            (
                format!(r#"{{{START},"duration":"-PT1H"}}"#),
                "Invalid duration",
            ),
            (
                format!(r#"{{{START},"class":"secret"}}"#),
                "Invalid class: secret",
            ),
            (
                format!(r#"{{{START},"priority":10}}"#),
                "Priority must be 0 to 9.",
            ),
            (
                format!(r#"{{{START},"recurrenceRule":"FREQ=DAILY"}}"#),
                "Recurring events are not",
            ),
            (
                format!(r#"{{{START},"attendees":[{{}}]}}"#),
                "An attendee has no email.",
            ),
            (
                format!(r#"{{{START},"x-mine":"text"}}"#),
                "x-mine must be an object with data.",
            ),
            (
                format!(r#"{{{START},"x-a\nb":{{"data":1}}}}"#),
                "Invalid property name: x-a",
            ),
            (format!(r#"{{{START},"url":"http://x\ny"}}"#), "Invalid url"),
            (
                format!(r#"{{{START},"attendees":[{{"email":"a\r\nb"}}]}}"#),
                "Invalid email",
            ),
        ];
        for (json, words) in cases {
            let message = refusal(&json);
            assert!(message.starts_with(words), "{json}: {message}");
        }
    }

    #[test]
    fn a_bad_identifier_has_its_own_error() {
        let error = parse_json_events(format!(r#"{{"id":"",{START}}}"#).as_bytes()).unwrap_err();
        assert_eq!(error.cserror(), Some(1025));
    }

    #[test]
    fn foreign_properties_are_kept_and_computed_ones_are_not() {
        let event = parsed(&format!(
            r#"{{{START},"X-Mine":{{"data":"1"}},"x-lotus-appttype":{{"data":"9"}},"more":1}}"#
        ));
        let names: Vec<_> = event
            .details
            .extra
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["x-mine"]);
    }
}
