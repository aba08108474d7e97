//! Writes events and notices in Domino's JSON: here is all that knows its form.
//!
//! List lines are rendered when an entry is written, so that reading a list is one range scan; they are stored
//! in a short form.

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{
    Answer, Attendee, Event, Moment, Role, Status, Transparency, UserType,
    entry::{Entry, State},
    event::is_default,
    keys,
    lean::{Lean, NoShortForm, OWN},
    limits, time,
    zones::{self, Zone},
};

/// What recurs in the lines of lists.
static LINES: Lean = Lean::new(&[
    r#","summary":""#,
    r#"","location":""#,
    r#"","start":{"date":""#,
    r#"","time":""#,
    r#"","utc":true},"end":{"date":""#,
    concat!(
        r#"","utc":true},"class":"public","transparency":"opaque","status":"confirmed""#,
        r#","sequence":0,"last-modified":""#
    ),
    r#"","utc":true},"class":""#,
    r#""},"end":{"date":""#,
    r#""},"class":""#,
    r#"","transparency":""#,
    r#"","status":""#,
    r#"","sequence":"#,
    r#","last-modified":""#,
    r#"","x-lotus-appttype":{"data":"3"},"x-lotus-organizer":{"data":""#,
    r#"","x-lotus-appttype":{"data":""#,
    r#""},"x-lotus-organizer":{"data":""#,
    r#""},"x-lotus-noticetype":{"data":"I"}}"#,
    r#"","tzid":""#,
    r#"{"summary":""#,
    r#","start":{"date":""#,
]);
/// Few lines are longer when they are stored.
const USUAL_BYTES: usize = 192;

/// A property of Domino's own: `{"data":"3"}`.
#[derive(Serialize)]
struct Data<'a> {
    data: &'a str,
}

/// `{"date":…,"time":…,"utc":true}`, or `tzid` in place of `utc`; a day has neither time nor zone.
#[derive(Serialize)]
struct WireMoment<'a> {
    date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    utc: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tzid: Option<&'a str>,
}

impl<'a> WireMoment<'a> {
    fn new(moment: &'a Moment) -> Self {
        let (date, clock) = match moment {
            Moment::Day(date) => (*date, None),
            Moment::Utc(t) | Moment::Floating(t) | Moment::Zoned { local: t, .. } => {
                (t.date(), Some(t.time()))
            }
        };
        Self {
            date: format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day()),
            time: clock.map(|t| format!("{:02}:{:02}:{:02}", t.hour(), t.minute(), t.second())),
            utc: matches!(moment, Moment::Utc(_)).then_some(true),
            tzid: moment.tzid(),
        }
    }
}

/// What a list line and a whole event have in common, in the order of the wire.
#[derive(Serialize)]
struct Head<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    href: Option<String>,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    start: WireMoment<'a>,
    end: WireMoment<'a>,
    class: &'a str,
    transparency: &'a str,
    status: &'a str,
    sequence: u32,
    #[serde(rename = "last-modified")]
    last_modified: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
}

impl<'a> Head<'a> {
    /// As a list line has it: no description, and no text of a length that many lines could not
    /// have.
    fn for_line(entry: &'a Entry, href: String) -> Self {
        let whole = Self::new(entry, Some(href));
        Self {
            summary: whole.summary.map(clipped),
            location: whole.location.map(clipped),
            description: None,
            categories: clipped_list(&entry.event.details.categories),
            url: whole.url.filter(|url| url.len() <= limits::LINE_TEXT_BYTES),
            ..whole
        }
    }

    fn new(entry: &'a Entry, href: Option<String>) -> Self {
        let Event { uid, details, .. } = &entry.event;
        let cancelled = entry.state == State::Cancelled;
        Self {
            href,
            id: uid,
            summary: details.summary.as_deref(),
            location: details.location.as_deref(),
            description: details.description.as_deref(),
            start: WireMoment::new(&details.start),
            end: WireMoment::new(&details.end),
            class: details.class.as_str(),
            transparency: match cancelled {
                true => Transparency::Transparent.as_str(),
                false => details.transparency.as_str(),
            },
            status: match cancelled {
                true => Status::Cancelled.as_str(),
                false => details.status.as_str(),
            },
            sequence: entry.event.sequence,
            last_modified: time::extended(entry.event.modified),
            priority: details.priority,
            categories: &details.categories,
            url: details.url.as_deref(),
        }
    }
}

/// The text, or as much of it as a line may have.
fn clipped(text: &str) -> &str {
    match text.len() {
        0..=limits::LINE_TEXT_BYTES => text,
        _ => {
            let fits = |at: &usize| text.is_char_boundary(*at);
            let end = (0..=limits::LINE_TEXT_BYTES).rev().find(fits);
            &text[..end.unwrap_or(0)]
        }
    }
}

/// The labels, or the first of them that a line may have.
fn clipped_list(labels: &[String]) -> &[String] {
    /// Quotation marks and comma.
    const AROUND: usize = 3;
    let mut room = limits::LINE_TEXT_BYTES;
    let fitting = labels
        .iter()
        .take_while(|label| match room.checked_sub(label.len() + AROUND) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        })
        .count();
    &labels[..fitting]
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(rename = "recurrenceId", skip_serializing_if = "Option::is_none")]
    recurrence_id: Option<String>,
    #[serde(rename = "x-lotus-appttype")]
    appointment_type: Data<'a>,
    #[serde(rename = "x-lotus-organizer")]
    organizer: Data<'a>,
    #[serde(rename = "x-lotus-noticetype", skip_serializing_if = "Option::is_none")]
    notice_type: Option<Data<'a>>,
}

/// The entry's line in the event list, as it is stored. An unanswered invitation is a ghost: its line says
/// `"x-lotus-noticetype":{"data":"I"}`.
pub(crate) fn event_line(mailbox: &str, entry: &Entry) -> Vec<u8> {
    let event = &entry.event;
    let name = entry.name();
    let href = keys::event_path(mailbox, &name);
    let own = EventLines::of(mailbox).opening(&name);
    let line = to_json(&Line {
        head: Head::for_line(entry, href),
        recurrence_id: entry.recurrence_id(),
        appointment_type: Data {
            data: appointment_type(event),
        },
        organizer: Data {
            data: &event.organizer.email,
        },
        notice_type: entry.notice().map(|_| Data { data: "I" }),
    });
    let mut short = Vec::with_capacity(USUAL_BYTES);
    LINES.shorten(&mut short, &line, &own);
    short
}

/// Whether a stored line of an event list has nothing of the mailbox that it lies in: it does where its path isn't
/// written as expected, as with quotation marks in the event's identifier.
pub(crate) fn is_line_of_any_mailbox(stored: &[u8]) -> bool {
    stored.first() == Some(&OWN)
}

/// The lines of a mailbox's event list, from their stored form.
pub(crate) struct EventLines {
    /// How all begin.
    opening: String,
}

impl EventLines {
    pub(crate) fn of(mailbox: &str) -> Self {
        let paths = keys::event_path(mailbox, "");
        let opening = format!(r#"{{"href":"{paths}"#);
        Self { opening }
    }

    /// Adds a line to an answer.
    pub(crate) fn push(
        &self,
        to: &mut Vec<u8>,
        name: &str,
        stored: &[u8],
    ) -> Result<(), NoShortForm> {
        LINES.restore(to, stored, &|to| {
            to.extend_from_slice(self.opening(name).as_bytes());
        })
    }

    /// How the line of an event, or of an instance of one, begins, whose name its key says.
    fn opening(&self, name: &str) -> String {
        let (uid, instance) = keys::parts(name);
        let (segment, slash) = (keys::segment(uid), instance.map_or("", |_| "/"));
        let id = instance.unwrap_or_default();
        [
            &*self.opening,
            &*segment,
            slash,
            id,
            r#"","id":""#,
            uid,
            r#"""#,
        ]
        .concat()
    }
}

/// Domino's numbers: 0 appointment, 2 all-day event, 3 meeting.
fn appointment_type(event: &Event) -> &'static str {
    if event.is_meeting() {
        "3"
    } else if event.details.start.is_day() {
        "2"
    } else {
        "0"
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(rename = "recurrenceId", skip_serializing_if = "Option::is_none")]
    recurrence_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    organizer: Option<WireOrganizer<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attendees: Vec<WireAttendee<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alarm: Option<&'a Value>,
    #[serde(rename = "x-lotus-appttype")]
    appointment_type: Data<'a>,
    #[serde(rename = "x-lotus-organizer")]
    lotus_organizer: Data<'a>,
    #[serde(flatten)]
    extra: Extra<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireOrganizer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<&'a str>,
    email: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireAttendee<'a> {
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'a str>,
    status: &'a str,
    #[serde(skip_serializing_if = "is_default")]
    rsvp: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegated_to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegated_from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<&'a str>,
    email: &'a str,
}

impl<'a> WireAttendee<'a> {
    fn new(attendee: &'a Attendee) -> Self {
        let role: Role = attendee.role;
        let status: Answer = attendee.status;
        Self {
            role: role.as_str(),
            user_type: (attendee.user_type != UserType::Individual)
                .then(|| attendee.user_type.as_str()),
            member: attendee.member.as_deref(),
            status: status.as_str(),
            rsvp: attendee.rsvp,
            delegated_to: attendee.delegated_to.as_deref(),
            delegated_from: attendee.delegated_from.as_deref(),
            display_name: attendee.display_name.as_deref(),
            sent_by: attendee.sent_by.as_deref(),
            dir: attendee.dir.as_deref(),
            email: &attendee.email,
        }
    }
}

/// The properties of other makers, as the members of an object.
struct Extra<'a>(&'a [(String, Value)]);

impl Serialize for Extra<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'a> Whole<'a> {
    fn new(entry: &'a Entry, href: Option<String>) -> Self {
        let event = &entry.event;
        Self {
            head: Head::new(entry, href),
            recurrence_id: entry.recurrence_id(),
            organizer: event.is_meeting().then(|| WireOrganizer {
                display_name: event.organizer.display_name.as_deref(),
                email: &event.organizer.email,
            }),
            attendees: event.attendees.iter().map(WireAttendee::new).collect(),
            alarm: event.details.alarm.as_ref(),
            appointment_type: Data {
                data: appointment_type(event),
            },
            lotus_organizer: Data {
                data: &event.organizer.email,
            },
            extra: Extra(&event.details.extra),
        }
    }
}

#[derive(Serialize)]
struct EventDocument<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    timezones: Vec<Zone>,
    events: [Whole<'a>; 1],
}

/// A whole event: `{"timezones":[…],"events":[{…}]}`; without zones, no `timezones`.
pub fn event_document(mailbox: &str, entry: &Entry) -> Vec<u8> {
    let href = keys::event_path(mailbox, &entry.name());
    to_json(&EventDocument {
        timezones: zones::of(&entry.event.details),
        events: [Whole::new(entry, Some(href))],
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NoticeDocument<'a> {
    href: String,
    schedule_method: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    timezones: Vec<Zone>,
    events: [Whole<'a>; 1],
}

/// A whole notice: `{"href","scheduleMethod","timezones","events":[{…}]}`; the event inside has no href.
pub fn notice_document(mailbox: &str, id: &str, entry: &Entry) -> Vec<u8> {
    to_json(&NoticeDocument {
        href: keys::notice_path(mailbox, id),
        schedule_method: REQUEST,
        timezones: zones::of(&entry.event.details),
        events: [Whole::new(entry, None)],
    })
}

/// What every notice of ours is: an invitation.
const REQUEST: &str = "request";

/// Bytes of an event's start, by which the notice list is filtered.
const NOTICE_START_BYTES: usize = 16;
/// Comes before the event that a stored line says it is of: no line begins so.
const OF_EVENT: u8 = 0;

/// An invitation's line in the notice list, as it is stored: the event's start; which event it is, where nothing
/// else says that; the JSON.
pub(crate) fn notice_line(mailbox: &str, id: &str, event: &Event, says_event: bool) -> Vec<u8> {
    let mut short = Vec::with_capacity(USUAL_BYTES);
    short.extend_from_slice(time::compact(event.details.start.instant()).as_bytes());
    if let Ok(length) = u8::try_from(event.uid.len())
        && says_event
    {
        short.extend([OF_EVENT, length]);
        short.extend_from_slice(event.uid.as_bytes());
    }
    let own = closing(mailbox, id);
    LINES.shorten(&mut short, &notice_summary(mailbox, id, event), &own);
    short
}

/// Whether a stored line of a notice list has nothing of the mailbox that it lies in.
pub(crate) fn is_notice_line_of_any_mailbox(stored: &[u8]) -> bool {
    stored.last() == Some(&OWN)
}

/// The parts of a line of the notice list, as it is stored.
pub(crate) struct NoticeLine<'a> {
    /// When the event starts.
    pub(crate) start: &'a [u8],
    /// Which event it is, if it says that.
    pub(crate) uid: Option<&'a [u8]>,
    /// The JSON in its short form.
    pub(crate) json: &'a [u8],
}

impl<'a> NoticeLine<'a> {
    pub(crate) fn of(stored: &'a [u8]) -> Self {
        let (start, json) = stored.split_at(NOTICE_START_BYTES.min(stored.len()));
        if let [OF_EVENT, length, rest @ ..] = json
            && let Some((uid, json)) = rest.split_at_checked(usize::from(*length))
        {
            let uid = Some(uid);
            return Self { start, uid, json };
        }
        let uid = None;
        Self { start, uid, json }
    }
}

/// A line of the notice list, from its short form.
pub(crate) fn whole_notice_line(
    mailbox: &str,
    id: &str,
    stored: &[u8],
) -> Result<Vec<u8>, NoShortForm> {
    let mut line = Vec::with_capacity(2 * USUAL_BYTES);
    LINES.restore(&mut line, stored, &|to| {
        to.extend_from_slice(closing(mailbox, id).as_bytes());
    })?;
    Ok(line)
}

/// How the line of a notice ends, whose path its key says.
fn closing(mailbox: &str, id: &str) -> String {
    let href = keys::notice_path(mailbox, id);
    format!(r#"","scheduleMethod":"{REQUEST}","href":"{href}"}}"#)
}

/// `{"summary","scheduleMethod","href"}`.
pub(crate) fn notice_summary(mailbox: &str, id: &str, event: &Event) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Summary<'a> {
        summary: &'a str,
        schedule_method: &'a str,
        href: String,
    }
    to_json(&Summary {
        summary: clipped(event.details.summary.as_deref().unwrap_or_default()),
        schedule_method: REQUEST,
        href: keys::notice_path(mailbox, id),
    })
}

/// Keeps only some members of a rendered line; `href` always stays.
pub(crate) fn pick_fields(line: &[u8], fields: &[&str]) -> Result<Vec<u8>, serde_json::Error> {
    let members: Members<'_> = serde_json::from_slice(line)?;
    let mut out = vec![b'{'];
    for (name, value) in &members.0 {
        if *name == "href" || fields.contains(name) {
            if out.len() > 1 {
                out.push(b',');
            }
            serde_json::to_writer(&mut out, name)?;
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    out.push(b'}');
    Ok(out)
}

/// The members of an object in their order, values untouched.
struct Members<'a>(Vec<(&'a str, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(768);
    serde_json::to_writer(&mut bytes, value).expect("wire types always serialise to memory");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_character() {
        assert_eq!(clipped("short"), "short");
        let text = format!("x{}", "é".repeat(600));
        assert_eq!(clipped(&text), &text[..1023]);
        let labels: Vec<_> = ["a", "b", &"c".repeat(1016), "d"].map(str::to_owned).into();
        assert_eq!(clipped_list(&labels), &labels[..2]);
        assert_eq!(clipped_list(&labels[1..]), &labels[1..3]);
        assert_eq!(clipped_list(&labels[2..]), &labels[2..]);
    }

    #[test]
    fn fields_are_picked_in_the_lines_order() {
        let line = br#"{"href":"/e","id":"1","start":{"date":"2026-01-05"},"class":"public"}"#;
        let picked = pick_fields(line, &["class", "start"]).unwrap();
        assert_eq!(
            String::from_utf8(picked).unwrap(),
            r#"{"href":"/e","start":{"date":"2026-01-05"},"class":"public"}"#
        );
    }
}
