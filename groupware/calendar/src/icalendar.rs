//! Parses and writes iCalendar (RFC 5545) with calcard. Rejects what can't be stored correctly: recurrence, and the
//! replies and cancellations of other calendars. Lines without a member in the event are stored unchanged.

use std::collections::BTreeSet;

use calcard::{
    Entry as Parsed, Parser,
    common::PartialDateTime,
    icalendar::{
        ICalendar, ICalendarComponent, ICalendarComponentType as Component, ICalendarEntry,
        ICalendarMethod, ICalendarParameter, ICalendarParameterName as Parameter,
        ICalendarProperty as Property, ICalendarValue, ICalendarValueType, Uri,
    },
};
use groupware_recurrence::{FileZones, readable};
use groupware_text::shortened;
use serde_json::{Value, json};

use crate::{
    Attendee, CalendarError, Class, Details, Entry, Event, Moment, NewAttendee, NewEvent, Reason,
    Role, State, Status, Transparency, UserType,
    json::{bare_address, check_uid, end_of, recurrence_refused, word},
    limits, source, time,
    values::{duration, integer, parameter, text},
    zones,
};

/// The PRODID of written iCalendar texts.
const PRODUCT: &str = "-//Plimsoll//Groupware Calendar//EN";

/// Parses the events of an iCalendar object.
///
/// # Errors
/// 400 with a sentence that describes the problem.
pub fn parse_icalendar(body: &[u8]) -> Result<Vec<NewEvent>, CalendarError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(CalendarError::bad_request("Empty request body."));
    }
    if body.len() > limits::BODY_BYTES {
        return Err(CalendarError::bad_request("The request body is too large."));
    }
    let text = std::str::from_utf8(body).map_err(|_| invalid("it is not UTF-8"))?;
    let calendar = match Parser::new(&readable(text)).entry() {
        Parsed::ICalendar(calendar) => calendar,
        Parsed::UnterminatedComponent(name) => {
            return Err(invalid(&format!("{} has no end", shortened(&name))));
        }
        Parsed::InvalidLine(line) => return Err(invalid(&shortened(&line))),
        _ => return Err(invalid("it has no VCALENDAR")),
    };
    refuse_method(&calendar)?;
    let known = FileZones::of(&calendar);
    let mut unknown = source::unknown_lines(text).into_iter();
    calendar
        .components
        .iter()
        .filter(|component| component.component_type == Component::VEvent)
        .map(|component| {
            let mut event = read_event(component, &known)?;
            event.details.source = unknown.next().unwrap_or_default();
            Ok(event)
        })
        .collect()
}

fn invalid(cause: &str) -> CalendarError {
    CalendarError::refused(
        Reason::InvalidICalendar,
        format!("Invalid iCalendar: {cause}."),
    )
}

/// Rejects replies and cancellations, which are not events to store.
pub(crate) fn refuse_method(calendar: &ICalendar) -> Result<(), CalendarError> {
    let method = calendar
        .components
        .first()
        .and_then(|root| text(root, &Property::Method));
    match method {
        None => Ok(()),
        Some(method)
            if method.eq_ignore_ascii_case("PUBLISH") || method.eq_ignore_ascii_case("REQUEST") =>
        {
            Ok(())
        }
        Some(method) => Err(invalid(&format!(
            "METHOD {} can't be stored",
            shortened(method)
        ))),
    }
}

fn read_event(
    component: &ICalendarComponent,
    zones: &FileZones<'_>,
) -> Result<NewEvent, CalendarError> {
    refuse_recurrence(component)?;
    let start = moment(component, &Property::Dtstart, zones)?
        .ok_or_else(|| invalid("an event has no DTSTART"))?;
    let end = moment(component, &Property::Dtend, zones)?;
    let lasts = duration(component).map_err(invalid)?;
    let end = end_of(&start, end, lasts)?;
    let organizer = component.property(&Property::Organizer);
    let owned = |property| text(component, &property).map(str::to_owned);
    Ok(NewEvent {
        uid: owned(Property::Uid).map(check_uid).transpose()?,
        sequence: integer(component, &Property::Sequence),
        organizer: organizer
            .and_then(ICalendarEntry::calendar_address)
            .map(bare_address),
        organizer_name: organizer.and_then(|entry| parameter(entry, &Parameter::Cn)),
        attendees: component
            .properties(&Property::Attendee)
            .map(read_attendee)
            .collect::<Result<_, _>>()?,
        details: Details {
            summary: owned(Property::Summary),
            location: owned(Property::Location),
            description: owned(Property::Description),
            start,
            end,
            class: word(owned(Property::Class), "CLASS", Class::parse)?,
            transparency: word(owned(Property::Transp), "TRANSP", Transparency::parse)?,
            status: word(owned(Property::Status), "STATUS", Status::parse)?,
            priority: integer(component, &Property::Priority)
                .and_then(|number| u8::try_from(number).ok())
                .filter(|number| *number <= 9),
            categories: component
                .properties(&Property::Categories)
                .flat_map(|entry| &entry.values)
                .filter_map(|value| value.as_text().map(str::to_owned))
                .collect(),
            url: owned(Property::Url),
            extra: extra(component),
            alarm: None,
            source: Vec::new(),
        },
        is_icalendar: true,
    })
}

fn refuse_recurrence(component: &ICalendarComponent) -> Result<(), CalendarError> {
    let recurring = component.entries.iter().find(|entry| {
        matches!(
            entry.name,
            Property::Rrule
                | Property::Rdate
                | Property::Exdate
                | Property::Exrule
                | Property::RecurrenceId
        )
    });
    match recurring {
        Some(entry) => Err(recurrence_refused(entry.name.as_str())),
        None => Ok(()),
    }
}

fn read_attendee(entry: &ICalendarEntry) -> Result<NewAttendee, CalendarError> {
    let address = entry
        .calendar_address()
        .map(bare_address)
        .filter(|address| !address.is_empty() && !address.contains(char::is_control))
        .ok_or_else(|| invalid("an ATTENDEE has no address"))?;
    let named = |name| parameter(entry, &name);
    Ok(NewAttendee {
        address,
        display_name: named(Parameter::Cn),
        role: word(named(Parameter::Role), "ROLE", Role::parse)?,
        user_type: named(Parameter::Cutype)
            .and_then(|text| UserType::parse(&text))
            .unwrap_or_default(),
        rsvp: named(Parameter::Rsvp).is_some_and(|text| text.eq_ignore_ascii_case("TRUE")),
        member: named(Parameter::Member).map(|address| bare_address(&address)),
        sent_by: named(Parameter::SentBy).map(|address| bare_address(&address)),
        dir: named(Parameter::Dir),
    })
}

fn moment(
    component: &ICalendarComponent,
    property: &Property,
    zones: &FileZones<'_>,
) -> Result<Option<Moment>, CalendarError> {
    let Some(entry) = component.property(property) else {
        return Ok(None);
    };
    let wrong = || invalid(&format!("{} is no date", property.as_str()));
    let value = entry
        .values
        .first()
        .and_then(ICalendarValue::as_partial_date_time)
        .ok_or_else(wrong)?;
    let moment = zones.moment(value, entry.tz_id()).ok_or_else(wrong)??;
    Ok(Some(zones.shown(moment)))
}

/// The `X-` properties with a text value, except those that the server computes.
pub(crate) fn extra(component: &ICalendarComponent) -> Vec<(String, Value)> {
    component
        .entries
        .iter()
        .filter_map(|entry| match &entry.name {
            Property::Other(name) => {
                let name = name.to_ascii_lowercase();
                let data = entry.values.first()?.as_text()?;
                let kept = name.starts_with("x-") && !source::is_computed(&name);
                kept.then(|| (name, json!({ "data": data })))
            }
            _ => None,
        })
        .collect()
}

/// Writes an unanswered invitation as a REQUEST.
pub(crate) fn write_notice(entry: &Entry) -> String {
    write([entry], Some(ICalendarMethod::Request))
}

/// Writes an object with these entries only.
pub(crate) fn write<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    method: Option<ICalendarMethod>,
) -> String {
    let mut calendar = ICalendar {
        components: vec![root(method)],
    };
    let (mut zones, mut events) = (BTreeSet::new(), String::new());
    for entry in entries {
        add_zones(&mut calendar, &mut zones, &entry.event.details);
        events.push_str(&event_lines(entry));
    }
    const END: &str = "END:VCALENDAR\r\n";
    let mut text = calendar.to_string();
    let head = text.strip_suffix(END).map_or(text.len(), str::len);
    text.insert_str(head, &events);
    text
}

/// The lines of an entry's event, including those without a member.
pub(crate) fn event_lines(entry: &Entry) -> String {
    let component = ICalendar {
        components: vec![event_component(entry)],
    };
    let lines = component.to_string();
    match &entry.event.details.source[..] {
        [] => lines,
        unknown => source::merged(&lines, unknown),
    }
}

/// The root component of an object.
pub(crate) fn root(method: Option<ICalendarMethod>) -> ICalendarComponent {
    let mut root = ICalendarComponent::new(Component::VCalendar);
    root.add_property(Property::Prodid, PRODUCT);
    root.add_property(Property::Version, "2.0");
    if let Some(method) = method {
        root.add_property(Property::Method, method);
    }
    root
}

/// Adds the time zones of an event that are not described yet.
fn add_zones(calendar: &mut ICalendar, known: &mut BTreeSet<String>, details: &Details) {
    for moment in [&details.start, &details.end] {
        if let Some(tzid) = moment.tzid()
            && known.insert(tzid.to_owned())
        {
            zones::add(calendar, tzid, moment.instant());
        }
    }
}

fn event_component(entry: &Entry) -> ICalendarComponent {
    let Event { details, .. } = &*entry.event;
    let mut component = ICalendarComponent::new(Component::VEvent);
    component.add_uid(&entry.event.uid);
    component.add_dtstamp(PartialDateTime::from_utc_timestamp(entry.event.modified));
    add_moment(&mut component, Property::Dtstart, &details.start);
    add_moment(&mut component, Property::Dtend, &details.end);
    let texts = [
        (Property::Summary, &details.summary),
        (Property::Location, &details.location),
        (Property::Description, &details.description),
    ];
    for (property, text) in texts {
        if let Some(text) = text {
            component.add_property(property, text.as_str());
        }
    }
    let cancelled = entry.state == State::Cancelled;
    let (status, transparency) = match cancelled {
        true => (Status::Cancelled, Transparency::Transparent),
        false => (details.status, details.transparency),
    };
    let upper = |word: &str| word.to_ascii_uppercase();
    component.add_property(Property::Class, upper(details.class.as_str()));
    component.add_property(Property::Transp, upper(transparency.as_str()));
    component.add_property(Property::Status, upper(status.as_str()));
    component.add_sequence(i64::from(entry.event.sequence));
    if let Some(priority) = details.priority {
        component.add_property(Property::Priority, i64::from(priority));
    }
    if !details.categories.is_empty() {
        let labels = details.categories.iter().map(|label| label.as_str().into());
        let entry = ICalendarEntry::new(Property::Categories).with_values(labels.collect());
        component.entries.push(entry);
    }
    if let Some(url) = &details.url {
        component.add_property(Property::Url, Uri::Location(url.clone()));
    }
    add_people(&mut component, &entry.event);
    add_extra(&mut component, details);
    component
}

fn add_moment(component: &mut ICalendarComponent, property: Property, moment: &Moment) {
    match moment {
        Moment::Day(date) => {
            let mut value = time::partial(date.to_datetime(jiff::civil::Time::midnight()));
            (value.hour, value.minute, value.second) = (None, None, None);
            let date = ICalendarParameter::value(ICalendarValueType::Date);
            component.add_property_with_params(property, [date], value);
        }
        Moment::Utc(_) => {
            let value = PartialDateTime::from_utc_timestamp(moment.instant());
            component.add_property(property, value);
        }
        Moment::Floating(local) => component.add_property(property, time::partial(*local)),
        Moment::Zoned { local, tzid, .. } => {
            let zone = ICalendarParameter::tzid(tzid.clone());
            component.add_property_with_params(property, [zone], time::partial(*local));
        }
    }
}

fn add_people(component: &mut ICalendarComponent, event: &Event) {
    if !event.is_meeting() {
        return;
    }
    let name = event.organizer.display_name.clone();
    component.add_property_with_params(
        Property::Organizer,
        name.map(ICalendarParameter::cn),
        mailto(&event.organizer.email),
    );
    for attendee in &event.attendees {
        component.add_property_with_params(
            Property::Attendee,
            attendee_parameters(attendee),
            mailto(&attendee.email),
        );
    }
}

fn attendee_parameters(attendee: &Attendee) -> Vec<ICalendarParameter> {
    let upper = |word: &str| word.to_ascii_uppercase();
    let mut parameters = vec![
        ICalendarParameter::role(upper(attendee.role.as_str())),
        ICalendarParameter::partstat(upper(attendee.status.as_str())),
        ICalendarParameter::cutype(upper(attendee.user_type.as_str())),
    ];
    if attendee.rsvp {
        parameters.push(ICalendarParameter::rsvp(true));
    }
    let name = attendee.display_name.clone();
    parameters.extend(name.map(ICalendarParameter::cn));
    let to = attendee.delegated_to.as_deref().map(mailto);
    parameters.extend(to.map(ICalendarParameter::delegated_to));
    let from = attendee.delegated_from.as_deref().map(mailto);
    parameters.extend(from.map(ICalendarParameter::delegated_from));
    let can_write = |text: &&str| !text.contains(|it: char| it.is_control() || it == '"');
    let member = attendee.member.as_deref().filter(can_write).map(mailto);
    parameters.extend(member.map(ICalendarParameter::member));
    let sent_by = attendee.sent_by.as_deref().filter(can_write).map(mailto);
    parameters.extend(sent_by.map(ICalendarParameter::sent_by));
    let dir = attendee.dir.as_deref().filter(can_write);
    let dir = dir.map(|dir| Uri::Location(dir.to_owned()));
    parameters.extend(dir.map(ICalendarParameter::dir));
    parameters
}

fn mailto(address: &str) -> Uri {
    Uri::Location(format!("mailto:{address}"))
}

fn add_extra(component: &mut ICalendarComponent, details: &Details) {
    for (name, value) in &details.extra {
        if let Some(data) = value.get("data").and_then(Value::as_str) {
            let name = Property::Other(name.to_ascii_uppercase());
            component.add_property(name, data);
        }
    }
}
