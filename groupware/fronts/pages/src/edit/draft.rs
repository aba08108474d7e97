//! The contents of an event's form, and their conversion to an event and back.

use groupware_calendar::{
    Attendee, CalendarError, Entry, Imported, NewAttendee, NewEvent, parse_json_events,
};
use groupware_service::Service;
use jiff::civil::{Date, DateTime, Time};
use serde_json::{Value, json};

use super::people;
use crate::field::Wrong;
use crate::form::Fields;
use crate::visitor::SignedIn;
use crate::zone::{self, Zone};

/// The texts of the fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Draft {
    pub(crate) title: String,
    pub(crate) all_day: bool,
    pub(crate) start_day: String,
    pub(crate) start_time: String,
    pub(crate) end_day: String,
    pub(crate) end_time: String,
    pub(crate) place: String,
    pub(crate) people: String,
    pub(crate) about: String,
    /// The version that is being changed.
    pub(crate) sequence: Option<u32>,
    /// The fingerprint of the imported event that was shown, which may change while its version stays.
    pub(crate) seen: Option<u64>,
}

impl Draft {
    /// One hour on the requested day, or from the next full hour.
    pub(crate) fn new(visitor: &SignedIn, day: Option<Date>) -> Self {
        let now = visitor.zone.clock(visitor.now);
        let hour = i32::from(now.hour()) + 1;
        let start = match day {
            Some(day) if day != visitor.today => day.at(9, 0, 0, 0),
            _ => {
                let midnight = now.date().to_datetime(Time::midnight());
                midnight.saturating_add(jiff::Span::new().hours(hour))
            }
        };
        let end = start.saturating_add(jiff::Span::new().hours(1));
        Self {
            start_day: zone::plain_day(start.date()),
            start_time: zone::time(start),
            end_day: zone::plain_day(end.date()),
            end_time: zone::time(end),
            ..Self::default()
        }
    }

    /// The submitted form.
    pub(crate) fn sent(fields: &Fields) -> Self {
        let text = |name| fields.trimmed(name).to_owned();
        Self {
            title: text("title"),
            all_day: fields.has("all_day"),
            start_day: text("start_day"),
            start_time: text("start_time"),
            end_day: text("end_day"),
            end_time: text("end_time"),
            place: text("place"),
            people: text("people"),
            about: fields.trimmed("about").replace("\r\n", "\n"),
            sequence: fields.get("sequence").parse().ok(),
            seen: fields.get("seen").parse().ok(),
        }
    }

    /// The form of an event, in its owner's zone.
    pub(crate) fn of(entry: &Entry, zone: &Zone) -> Self {
        let event = &entry.event;
        let details = &event.details;
        let all_day = details.start.is_day();
        let start = zone.of_moment(&details.start);
        let mut end = zone.of_moment(&details.end).max(start);
        if all_day && end > start {
            end = zone::days_after(end.date(), -1).to_datetime(Time::midnight());
        }
        let time = |clock| match all_day {
            true => String::new(),
            false => zone::time(clock),
        };
        let others = event
            .attendees
            .iter()
            .filter(|person| person.user.as_ref() != Some(&event.organizer.user));
        let people: Vec<_> = others.map(people::written).collect();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            title: text(&details.summary),
            all_day,
            start_day: zone::plain_day(start.date()),
            start_time: time(start),
            end_day: zone::plain_day(end.date()),
            end_time: time(end),
            place: text(&details.location),
            people: people.join(", "),
            about: text(&details.description).replace("\r\n", "\n"),
            sequence: Some(event.sequence),
            seen: entry.imported().map(Imported::fingerprint),
        }
    }

    /// Returns the event that the form describes; `None` if a field can't be parsed.
    pub(crate) fn read(
        &self,
        service: &Service,
        zone: &Zone,
        wrong: &mut Wrong,
    ) -> Option<Result<NewEvent, CalendarError>> {
        if self.title.is_empty() {
            wrong.add("title", "Give it a title.");
        }
        let span = self.span(wrong);
        let people = people::read(service, &self.people, wrong);
        let (start, end) = span?;
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let event = json!({
            "summary": self.title,
            "location": text(&self.place),
            "description": text(&self.about),
            "start": self.moment(start, zone),
            "end": self.moment(end, zone),
            "sequence": self.sequence,
            "attendees": people,
        });
        let parsed = parse_json_events(event.to_string().as_bytes());
        Some(parsed.and_then(|mut events| {
            events
                .pop()
                .ok_or_else(|| CalendarError::bad_request("There is no event."))
        }))
    }

    /// Start and end in local time; the end of an all-day event is the day after the last.
    fn span(&self, wrong: &mut Wrong) -> Option<(DateTime, DateTime)> {
        let mut day = |field, text: &str| {
            let day = zone::parse_day(text);
            if day.is_none() {
                wrong.add(field, "Enter a day, such as 2026-01-31.");
            }
            day
        };
        let start_day = day("start_day", &self.start_day);
        let end_day = match self.end_day.is_empty() {
            true => start_day,
            false => day("end_day", &self.end_day),
        };
        if self.all_day {
            let (start, end) = (start_day?, end_day?);
            if end < start {
                wrong.add("end_day", "It ends before it starts.");
                return None;
            }
            let midnight = |day: Date| day.to_datetime(Time::midnight());
            return Some((midnight(start), midnight(zone::days_after(end, 1))));
        }
        let mut time = |field, text: &str| {
            let time = zone::parse_time(text);
            if time.is_none() {
                wrong.add(field, "Enter a time, such as 14:30, or choose all day.");
            }
            time
        };
        let start_time = time("start_time", &self.start_time);
        let end_time = time("end_time", &self.end_time);
        let start = start_day?.to_datetime(start_time?);
        let end = end_day?.to_datetime(end_time?);
        if end < start {
            wrong.add("end_time", "It ends before it starts.");
            return None;
        }
        Some((start, end))
    }

    fn moment(&self, clock: DateTime, zone: &Zone) -> Value {
        let date = zone::plain_day(clock.date());
        let time = format!("{}:00", zone::time(clock));
        match (self.all_day, zone.name()) {
            (true, _) => json!({ "date": date }),
            (false, "UTC") => json!({ "date": date, "time": time, "utc": true }),
            (false, name) => json!({ "date": date, "time": time, "tzid": name }),
        }
    }

    fn has_times_of(&self, other: &Self) -> bool {
        let times = |draft: &Self| {
            let all = (
                draft.all_day,
                draft.start_day.clone(),
                draft.end_day.clone(),
            );
            let clocks =
                (!draft.all_day).then(|| (draft.start_time.clone(), draft.end_time.clone()));
            (all, clocks)
        };
        times(self) == times(other)
    }
}

/// Copies properties that the form doesn't show into the new version: labels, alarms, links,
/// attendees' parameters; also the times in their own zone and the exact texts, if the form returns
/// them unchanged.
pub(crate) fn keep_the_rest(old: &Entry, shown: &Draft, sent: &Draft, new: &mut NewEvent) {
    let event = &old.event;
    let mut details = event.details.clone();
    let (given, was) = (&new.details, &event.details);
    details.summary = kept_if_untouched(&given.summary, &was.summary, in_one_line);
    details.location = kept_if_untouched(&given.location, &was.location, in_one_line);
    details.description = kept_if_untouched(&given.description, &was.description, in_lines);
    if !sent.has_times_of(shown) {
        details.start = given.start.in_terms_of(&was.start);
        details.end = given.end.in_terms_of(&was.end);
    }
    new.details = details;
    new.organizer_name.clone_from(&event.organizer.display_name);
    for person in &mut new.attendees {
        let known = event
            .attendees
            .iter()
            .find(|known| known.email.eq_ignore_ascii_case(&person.address));
        if let Some(known) = known {
            *person = invited_as(known);
        }
    }
    // The form lists the other attendees only.
    let organizer = event.attendee(&event.organizer.user);
    if let (Some(organizer), false) = (organizer, new.attendees.is_empty()) {
        new.attendees.insert(0, invited_as(organizer));
    }
}

/// Keeps the old text if the form returned it unchanged. The two look the same, such as no place
/// and an empty one, but the calendar would invite all attendees again, or rewrite imported text.
fn kept_if_untouched(
    new: &Option<String>,
    old: &Option<String>,
    back: fn(&str) -> String,
) -> Option<String> {
    let back = |text: &Option<String>| back(text.as_deref().unwrap_or_default());
    match back(new) == back(old) {
        true => old.clone(),
        false => new.clone(),
    }
}

/// A text as returned from a field of one line: browsers remove line ends.
fn in_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], "").trim().to_owned()
}

/// A text as returned from a field of many lines, with uniform line ends.
fn in_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.replace('\r', "\n").trim().to_owned()
}

fn invited_as(known: &Attendee) -> NewAttendee {
    NewAttendee {
        address: known.email.clone(),
        display_name: known.display_name.clone(),
        role: known.role,
        user_type: known.user_type,
        rsvp: known.rsvp,
        member: known.member.clone(),
        sent_by: known.sent_by.clone(),
        dir: known.dir.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_comes_back_from_its_form_as_it_was_shown_is_the_old_one() {
        let some = |text: &str| Some(text.to_owned());
        let of_one: fn(&str) -> String = in_one_line;
        let of_many: fn(&str) -> String = in_lines;
        for (old, sent, back, is_old) in [
            (some("Hello\n"), some("Hello"), of_many, true),
            (some(" a\r\nb\rc "), some("a\nb\nc"), of_many, true),
            (some("a\nb"), some("a b"), of_many, false),
            (some("a\nb"), some("ab"), of_many, false),
            (some("a\n"), None, of_many, false),
            (some(" \n"), None, of_many, true),
            (some("Quay\nSouth "), some("QuaySouth"), of_one, true),
            (some("Quay"), some("quay"), of_one, false),
            (some(""), None, of_one, true),
            (None, None, of_one, true),
            (None, some("Quay"), of_one, false),
        ] {
            let expected = if is_old { &old } else { &sent };
            let kept = kept_if_untouched(&sent, &old, back);
            assert_eq!(&kept, expected, "{old:?} {sent:?}");
        }
    }
}
