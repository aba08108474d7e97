//! Writes events and notices as Domino's JSON. Only this module knows that format.
//!
//! List lines are rendered when an entry is written and stored in a compact form, so that reading a list is one range
//! scan.

use groupware_text::lean::{Lean, NoShortForm, OWN};
use serde_json::value::RawValue;

use crate::{
    Attendee, Event, Moment, Status, Transparency, UserType,
    entry::{Entry, State},
    keys, limits, time,
    written::{Object, push_all, push_text},
    zones,
};

/// Texts that recur in the lines of lists.
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
/// The usual maximum length of a stored line.
const USUAL_BYTES: usize = 192;
/// The usual maximum length of a restored line.
const USUAL_JSON_BYTES: usize = 768;
/// The usual maximum length of a whole event.
const USUAL_DOCUMENT_BYTES: usize = 2048;

/// How much of an event to write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// A list line: no description, and long texts are truncated.
    Line,
    /// All of it.
    Whole,
}

/// Appends a property of Domino's own: `{"data":"3"}`.
fn push_data(to: &mut Vec<u8>, data: &str) {
    let mut object = Object::begin(to);
    object.text("\"data\":", data);
    object.end();
}

/// Appends `{"date":…,"time":…,"utc":true}`, or `tzid` in place of `utc`; a day has neither time nor zone.
fn push_moment(to: &mut Vec<u8>, moment: &Moment) {
    let (date, clock) = match moment {
        Moment::Day(date) => (*date, None),
        Moment::Utc(t) | Moment::Floating(t) | Moment::Zoned { local: t, .. } => {
            (t.date(), Some(t.time()))
        }
    };
    let mut object = Object::begin(to);
    match date.year() {
        0..=9999 => object.word("\"date\":", &time::date_bytes(date)),
        year => {
            let date = format!("{year:04}-{:02}-{:02}", date.month(), date.day());
            object.text("\"date\":", &date);
        }
    }
    if let Some(clock) = clock {
        object.word("\"time\":", &time::clock_bytes(clock));
    }
    if matches!(moment, Moment::Utc(_)) {
        object.member("\"utc\":true");
    }
    object.any_text("\"tzid\":", moment.tzid());
    object.end();
}

/// Appends the members that a list line and a whole event share, in the order of the wire.
fn push_head(object: &mut Object<'_>, entry: &Entry, href: Option<&str>, extent: Extent) {
    let Event { uid, details, .. } = &*entry.event;
    let is_line = extent == Extent::Line;
    let clip = |text| if is_line { clipped(text) } else { text };
    object.any_text("\"href\":", href);
    object.text("\"id\":", uid);
    object.any_text("\"summary\":", details.summary.as_deref().map(clip));
    object.any_text("\"location\":", details.location.as_deref().map(clip));
    let description = details.description.as_deref().filter(|_| !is_line);
    object.any_text("\"description\":", description);
    push_moment(object.member("\"start\":"), &details.start);
    push_moment(object.member("\"end\":"), &details.end);
    let (transparency, status) = match entry.state {
        State::Cancelled => (Transparency::Transparent, Status::Cancelled),
        _ => (details.transparency, details.status),
    };
    object.word("\"class\":", details.class.as_str().as_bytes());
    object.word("\"transparency\":", transparency.as_str().as_bytes());
    object.word("\"status\":", status.as_str().as_bytes());
    object.value("\"sequence\":", &entry.event.sequence);
    let modified = time::extended(entry.event.modified);
    object.word("\"last-modified\":", modified.as_bytes());
    if let Some(priority) = details.priority {
        object.value("\"priority\":", &priority);
    }
    let labels = match is_line {
        true => clipped_list(&details.categories),
        false => &details.categories,
    };
    if !labels.is_empty() {
        let to = object.member("\"categories\":");
        push_all(to, labels, |to, label| push_text(to, label));
    }
    let url = details.url.as_deref();
    let fits = |url: &&str| !is_line || url.len() <= limits::LINE_TEXT_BYTES;
    object.any_text("\"url\":", url.filter(fits));
}

/// Appends the instance of a series, the kind of appointment, and the owner.
fn push_lotus(object: &mut Object<'_>, event: &Event) {
    push_data(
        object.member("\"x-lotus-appttype\":"),
        appointment_type(event),
    );
    push_data(
        object.member("\"x-lotus-organizer\":"),
        &event.organizer.email,
    );
}

/// The text, truncated to the limit of a line.
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

/// The first labels that fit in a line.
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

/// Renders the entry's stored line in the event list. The line of an unanswered invitation, a ghost, has
/// `"x-lotus-noticetype":{"data":"I"}`.
pub(crate) fn event_line(mailbox: &str, entry: &Entry) -> Vec<u8> {
    let event = &entry.event;
    let name = entry.name();
    let href = keys::event_path(mailbox, &name);
    let mut own = Vec::with_capacity(USUAL_BYTES);
    EventLines::of(mailbox).open(&mut own, &name);
    let mut line = Vec::with_capacity(USUAL_JSON_BYTES);
    let mut object = Object::begin(&mut line);
    push_head(&mut object, entry, Some(&href), Extent::Line);
    object.any_text("\"recurrenceId\":", entry.recurrence_id().as_deref());
    push_lotus(&mut object, event);
    if entry.notice().is_some() {
        push_data(object.member("\"x-lotus-noticetype\":"), "I");
    }
    object.end();
    let mut short = Vec::with_capacity(USUAL_BYTES);
    LINES.shorten(&mut short, &line, &own);
    short
}

/// Returns true if a stored line of an event list doesn't contain the account's name. It does if its path has an
/// unusual spelling, as with quotation marks in the event's identifier.
pub(crate) fn is_line_of_any_mailbox(stored: &[u8]) -> bool {
    stored.first() == Some(&OWN)
}

/// Restores the lines of an account's event list from their stored form.
pub(crate) struct EventLines {
    /// The common beginning of all lines.
    opening: String,
}

impl EventLines {
    pub(crate) fn of(mailbox: &str) -> Self {
        let paths = keys::event_path(mailbox, "");
        let opening = [r#"{"href":""#, &paths].concat();
        Self { opening }
    }

    /// Appends a line to a response.
    pub(crate) fn push(
        &self,
        to: &mut Vec<u8>,
        name: &str,
        stored: &[u8],
    ) -> Result<(), NoShortForm> {
        LINES.restore(to, stored, &|to| self.open(to, name))
    }

    /// Appends the beginning of a line, with the event's or instance's name from the key.
    fn open(&self, to: &mut Vec<u8>, name: &str) {
        to.extend_from_slice(self.opening.as_bytes());
        if keys::is_plain(name) {
            // The usual case.
            to.extend_from_slice(name.as_bytes());
            to.extend_from_slice(br#"","id":""#);
            to.extend_from_slice(name.as_bytes());
            to.push(b'"');
            return;
        }
        let (uid, instance) = keys::parts(name);
        to.extend_from_slice(keys::segment(uid).as_bytes());
        if let Some(id) = instance {
            to.push(b'/');
            to.extend_from_slice(id.as_bytes());
        }
        to.extend_from_slice(br#"","id":""#);
        to.extend_from_slice(uid.as_bytes());
        to.push(b'"');
    }
}

/// Domino's codes: 0 appointment, 2 all-day event, 3 meeting.
fn appointment_type(event: &Event) -> &'static str {
    if event.is_meeting() {
        "3"
    } else if event.details.start.is_day() {
        "2"
    } else {
        "0"
    }
}

/// Appends an attendee.
fn push_attendee(to: &mut Vec<u8>, attendee: &Attendee) {
    let mut object = Object::begin(to);
    object.word("\"role\":", attendee.role.as_str().as_bytes());
    if attendee.user_type != UserType::Individual {
        object.word("\"userType\":", attendee.user_type.as_str().as_bytes());
    }
    object.any_text("\"member\":", attendee.member.as_deref());
    object.word("\"status\":", attendee.status.as_str().as_bytes());
    if attendee.rsvp {
        object.member("\"rsvp\":true");
    }
    object.any_text("\"delegatedTo\":", attendee.delegated_to.as_deref());
    object.any_text("\"delegatedFrom\":", attendee.delegated_from.as_deref());
    object.any_text("\"displayName\":", attendee.display_name.as_deref());
    object.any_text("\"sentBy\":", attendee.sent_by.as_deref());
    object.any_text("\"dir\":", attendee.dir.as_deref());
    object.text("\"email\":", &attendee.email);
    object.end();
}

/// Appends a whole event.
fn push_event(to: &mut Vec<u8>, entry: &Entry, href: Option<&str>) {
    let event = &entry.event;
    let mut object = Object::begin(to);
    push_head(&mut object, entry, href, Extent::Whole);
    object.any_text("\"recurrenceId\":", entry.recurrence_id().as_deref());
    if event.is_meeting() {
        let organizer = &event.organizer;
        let mut inner = Object::begin(object.member("\"organizer\":"));
        inner.any_text("\"displayName\":", organizer.display_name.as_deref());
        inner.text("\"email\":", &organizer.email);
        inner.end();
        push_all(
            object.member("\"attendees\":"),
            &event.attendees,
            push_attendee,
        );
    }
    if let Some(alarm) = &event.details.alarm {
        object.value("\"alarm\":", alarm);
    }
    push_lotus(&mut object, event);
    for (name, value) in &event.details.extra {
        object.named(name, value);
    }
    object.end();
}

/// Appends the zones of an event, if it names any, and the event.
fn push_zones_and_event(object: &mut Object<'_>, entry: &Entry, href: Option<&str>) {
    let zones = zones::of(&entry.event.details);
    if !zones.is_empty() {
        object.value("\"timezones\":", &zones);
    }
    let to = object.member("\"events\":");
    push_all(to, [entry], |to, entry| push_event(to, entry, href));
}

/// A whole event: `{"timezones":[…],"events":[{…}]}`; without zones, no `timezones`.
pub fn event_document(mailbox: &str, entry: &Entry) -> Vec<u8> {
    let href = keys::event_path(mailbox, &entry.name());
    let mut document = Vec::with_capacity(USUAL_DOCUMENT_BYTES);
    let mut object = Object::begin(&mut document);
    push_zones_and_event(&mut object, entry, Some(&href));
    object.end();
    document
}

/// A whole notice: `{"href","scheduleMethod","timezones","events":[{…}]}`; the event inside has no href.
pub fn notice_document(mailbox: &str, id: &str, entry: &Entry) -> Vec<u8> {
    let mut document = Vec::with_capacity(USUAL_DOCUMENT_BYTES);
    let mut object = Object::begin(&mut document);
    object.text("\"href\":", &keys::notice_path(mailbox, id));
    object.text("\"scheduleMethod\":", REQUEST);
    push_zones_and_event(&mut object, entry, None);
    object.end();
    document
}

/// The method of all our notices: they are invitations.
const REQUEST: &str = "request";

/// The bytes of an event's start, by which the notice list is filtered.
const NOTICE_START_BYTES: usize = 16;
/// The byte before the event's identifier in a stored line: no other part of a line begins with it.
const OF_EVENT: u8 = 0;

/// Renders an invitation's stored line in the notice list: the event's start; the event's identifier, if no other
/// record has it; the JSON.
pub(crate) fn notice_line(mailbox: &str, id: &str, event: &Event, says_event: bool) -> Vec<u8> {
    let mut short = Vec::with_capacity(USUAL_BYTES);
    short.extend_from_slice(&time::compact_bytes(event.details.start.instant()));
    if let Ok(length) = u8::try_from(event.uid.len())
        && says_event
    {
        short.extend([OF_EVENT, length]);
        short.extend_from_slice(event.uid.as_bytes());
    }
    let mut own = Vec::with_capacity(USUAL_BYTES);
    NoticeLines::of(mailbox).close(&mut own, id);
    LINES.shorten(&mut short, &notice_summary(mailbox, id, event), &own);
    short
}

/// Returns true if a stored line of a notice list doesn't contain the account's name.
pub(crate) fn is_notice_line_of_any_mailbox(stored: &[u8]) -> bool {
    stored.last() == Some(&OWN)
}

/// The parts of a stored line of the notice list.
pub(crate) struct NoticeLine<'a> {
    /// The start of the event.
    pub(crate) start: &'a [u8],
    /// The event's identifier, if the line has it.
    pub(crate) uid: Option<&'a [u8]>,
    /// The JSON in its compact form.
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

/// Restores the lines of an account's notice list from their stored form.
pub(crate) struct NoticeLines {
    /// The beginning of the path of a notice, and the text before it.
    path: String,
}

impl NoticeLines {
    pub(crate) fn of(mailbox: &str) -> Self {
        let paths = keys::notice_path(mailbox, "");
        let path = [r#"","scheduleMethod":""#, REQUEST, r#"","href":""#, &paths].concat();
        Self { path }
    }

    /// Restores a line from its compact form.
    pub(crate) fn whole(&self, id: &str, stored: &[u8]) -> Result<Vec<u8>, NoShortForm> {
        let mut line = Vec::with_capacity(2 * USUAL_BYTES);
        LINES.restore(&mut line, stored, &|to| self.close(to, id))?;
        Ok(line)
    }

    /// Appends the end of a line, with the notice's identifier from the key.
    fn close(&self, to: &mut Vec<u8>, id: &str) {
        to.extend_from_slice(self.path.as_bytes());
        to.extend_from_slice(keys::segment(id).as_bytes());
        to.extend_from_slice(br#""}"#);
    }
}

/// `{"summary","scheduleMethod","href"}`.
pub(crate) fn notice_summary(mailbox: &str, id: &str, event: &Event) -> Vec<u8> {
    let summary = event.details.summary.as_deref().unwrap_or_default();
    let mut line = Vec::with_capacity(USUAL_JSON_BYTES);
    let mut object = Object::begin(&mut line);
    object.text("\"summary\":", clipped(summary));
    object.text("\"scheduleMethod\":", REQUEST);
    object.text("\"href\":", &keys::notice_path(mailbox, id));
    object.end();
    line
}

/// Keeps only some members of a rendered line, and always `href`.
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

/// The members of an object in order, with their values unparsed.
struct Members<'a>(Vec<(&'a str, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> serde::de::Visitor<'de> for MembersVisitor {
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
        deserializer.deserialize_map(MembersVisitor)
    }
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
