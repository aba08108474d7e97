//! Writes the stored JSON of an event, the same as its `Serialize`.

use jiff::civil::DateTime;

use crate::event::is_default;
use crate::time;
use crate::written::{Object, push_all, push_text, push_value};
use crate::{Attendee, Details, Event, Moment, Organizer};

/// Appends an event.
pub(super) fn push_event(to: &mut Vec<u8>, event: &Event) {
    let Event {
        uid,
        sequence,
        created,
        modified,
        organizer,
        attendees,
        details,
    } = event;
    let mut object = Object::begin(to);
    object.text("\"id\":", uid);
    if !is_default(sequence) {
        object.value("\"sq\":", sequence);
    }
    object.value("\"cr\":", created);
    object.value("\"mo\":", modified);
    push_organizer(object.member("\"or\":"), organizer);
    if !attendees.is_empty() {
        push_all(object.member("\"at\":"), attendees, push_attendee);
    }
    push_details(object.member("\"in\":"), details);
    object.end();
}

fn push_organizer(to: &mut Vec<u8>, organizer: &Organizer) {
    let mut object = Object::begin(to);
    object.text("\"u\":", &organizer.user);
    object.text("\"m\":", &organizer.email);
    object.any_text("\"n\":", organizer.display_name.as_deref());
    object.end();
}

fn push_attendee(to: &mut Vec<u8>, attendee: &Attendee) {
    let Attendee {
        user,
        email,
        display_name,
        role,
        user_type,
        status,
        rsvp,
        delegated_to,
        delegated_from,
        member,
        sent_by,
        dir,
    } = attendee;
    let mut object = Object::begin(to);
    object.any_text("\"u\":", user.as_deref());
    object.text("\"m\":", email);
    object.any_text("\"n\":", display_name.as_deref());
    if !is_default(role) {
        object.word("\"r\":", role.as_str().as_bytes());
    }
    if !is_default(user_type) {
        object.word("\"k\":", user_type.as_str().as_bytes());
    }
    if !is_default(status) {
        object.word("\"a\":", status.as_str().as_bytes());
    }
    if *rsvp {
        object.member("\"q\":true");
    }
    object.any_text("\"dt\":", delegated_to.as_deref());
    object.any_text("\"df\":", delegated_from.as_deref());
    object.any_text("\"g\":", member.as_deref());
    object.any_text("\"s\":", sent_by.as_deref());
    object.any_text("\"d\":", dir.as_deref());
    object.end();
}

fn push_details(to: &mut Vec<u8>, details: &Details) {
    let Details {
        summary,
        location,
        description,
        start,
        end,
        class,
        transparency,
        status,
        priority,
        categories,
        url,
        extra,
        alarm,
        source,
    } = details;
    let mut object = Object::begin(to);
    object.any_text("\"sm\":", summary.as_deref());
    object.any_text("\"lo\":", location.as_deref());
    object.any_text("\"de\":", description.as_deref());
    push_moment(object.member("\"st\":"), start);
    push_moment(object.member("\"en\":"), end);
    if !is_default(class) {
        object.word("\"cl\":", class.as_str().as_bytes());
    }
    if !is_default(transparency) {
        object.word("\"tr\":", transparency.as_str().as_bytes());
    }
    if !is_default(status) {
        object.word("\"ss\":", status.as_str().as_bytes());
    }
    if let Some(priority) = priority {
        object.value("\"pr\":", priority);
    }
    if !categories.is_empty() {
        let to = object.member("\"ca\":");
        push_all(to, categories, |to, label| push_text(to, label));
    }
    object.any_text("\"ur\":", url.as_deref());
    if !extra.is_empty() {
        object.value("\"x\":", extra);
    }
    if let Some(alarm) = alarm {
        object.value("\"al\":", alarm);
    }
    if !source.is_empty() {
        object.value("\"sr\":", source);
    }
    object.end();
}

fn push_moment(to: &mut Vec<u8>, moment: &Moment) {
    let (opening, time) = match moment {
        Moment::Utc(time) => (&br#"{"utc":""#[..], time),
        Moment::Floating(time) => (&br#"{"floating":""#[..], time),
        Moment::Day(_) | Moment::Zoned { .. } => return push_value(to, moment),
    };
    if !is_usual(*time) {
        return push_value(to, moment);
    }
    to.extend_from_slice(opening);
    time::push_wall_clock(to, *time);
    to.extend_from_slice(br#""}"#);
}

/// Returns true if the year has four digits and there is no fractional second.
fn is_usual(time: DateTime) -> bool {
    (0..=9999).contains(&time.year()) && time.subsec_nanosecond() == 0
}
