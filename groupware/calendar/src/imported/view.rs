//! The view of an imported object, as far as this calendar understands it. An object is shown in part rather than
//! rejected, because it is stored completely anyway.

use std::collections::BTreeMap;

use calcard::common::PartialDateTime;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType as Component, ICalendarEntry,
    ICalendarParameterName as Parameter, ICalendarProperty as Property,
};
use calcard::{Entry as Parsed, Parser};
use jiff::civil::{DateTime, Time};

use crate::icalendar::extra;
use crate::json::bare_address;
use crate::object::{Kind, Occurrence};
use crate::{
    Answer, Attendee, Class, Details, Event, Moment, Organizer, Role, Status, Transparency,
    UserType, limits, time,
};
use groupware_recurrence::FileZones;
use groupware_recurrence::readable;
use groupware_recurrence::values::{duration, integer, parameter, text};

/// Parses an object.
///
/// # Errors
/// A description of the problem.
pub(crate) fn parse(original: &str) -> Result<ICalendar, String> {
    match Parser::new(&readable(original)).entry() {
        Parsed::ICalendar(calendar) => Ok(calendar),
        Parsed::UnterminatedComponent(name) => Err(format!("{name} has no end")),
        Parsed::InvalidLine(line) => {
            let line = groupware_text::shortened(&line).into_owned();
            Err(format!("this line is none of iCalendar: {line}"))
        }
        _ => Err("it has no VCALENDAR".to_owned()),
    }
}

/// The components of an object.
pub(crate) struct Series<'a> {
    pub(crate) kind: Kind,
    pub(super) zones: FileZones<'a>,
    /// All relevant components, of one kind.
    pub(crate) components: Vec<&'a ICalendarComponent>,
    /// The component with the properties common to all instances, and the first start.
    pub(super) master: Option<(&'a ICalendarComponent, Option<Moment>)>,
    /// The components of single instances, by their recurrence moments.
    pub(super) overrides: BTreeMap<i64, &'a ICalendarComponent>,
    /// The components of an instance and all later ones (RFC 5545 §3.2.13).
    pub(super) ranges: BTreeMap<i64, &'a ICalendarComponent>,
}

/// The components of an object except its time zones, with their numbers in `edited`.
pub(crate) fn numbered(calendar: &ICalendar) -> impl Iterator<Item = (usize, &ICalendarComponent)> {
    let root = calendar.components.first();
    let ids = root.into_iter().flat_map(|root| &root.component_ids);
    let all = ids.filter_map(|id| calendar.components.get(*id as usize));
    let all = all.filter(|it| it.component_type != Component::VTimezone);
    all.enumerate()
}

/// The start and end of an event.
pub(crate) type Times = (Moment, Moment);

impl<'a> Series<'a> {
    /// Classifies the components.
    pub(crate) fn of(calendar: &'a ICalendar) -> Self {
        let of = |kind: Component| {
            let all = calendar.components.iter();
            all.filter(|it| it.component_type == kind)
                .collect::<Vec<_>>()
        };
        let known = [
            (Kind::Event, Component::VEvent),
            (Kind::Task, Component::VTodo),
            (Kind::Journal, Component::VJournal),
        ];
        let found = known.into_iter().map(|(kind, of_kind)| (kind, of(of_kind)));
        let mut found = found.filter(|(_, components)| !components.is_empty());
        let (kind, components) = found.next().unwrap_or_else(|| {
            let other = calendar.components.iter().skip(1);
            let is_other = |it: &&ICalendarComponent| {
                !matches!(
                    it.component_type,
                    Component::VTimezone | Component::Standard | Component::Daylight
                )
            };
            (Kind::Other, other.filter(is_other).take(1).collect())
        });
        let mut series = Self {
            kind,
            zones: FileZones::of(calendar),
            components,
            master: None,
            overrides: BTreeMap::new(),
            ranges: BTreeMap::new(),
        };
        let master = series.newest(series.masters());
        series.master = master.map(|it| (it, series.moment(it, &Property::Dtstart)));
        series.sort_overrides();
        series
    }

    /// Of several versions, the one with the higher SEQUENCE, then the later stamp, then the last.
    fn newest(
        &self,
        all: impl Iterator<Item = &'a ICalendarComponent>,
    ) -> Option<&'a ICalendarComponent> {
        all.max_by_key(|component| self.version_of(component))
    }

    fn sort_overrides(&mut self) {
        for component in &self.components {
            let Some(id) = self.instance(component) else {
                continue;
            };
            let id_entry = component.property(&Property::RecurrenceId);
            let is_range = id_entry.is_some_and(|it| it.parameter(&Parameter::Range).is_some());
            let known = match is_range {
                true => self.ranges.get(&id),
                false => self.overrides.get(&id),
            };
            let version = self.version_of(component);
            if known.is_some_and(|known| self.version_of(known) > version) {
                continue;
            }
            match is_range {
                true => self.ranges.insert(id, component),
                false => self.overrides.insert(id, component),
            };
        }
    }

    /// The reason why this can't be stored as an object, if any.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.kind != Kind::Event {
            let mut all = self.components.iter();
            let is_busy = all.any(|it| it.component_type == Component::VFreebusy);
            return is_busy.then(|| "free and busy times are no event, and not kept".to_owned());
        }
        for component in &self.components {
            for property in [Property::Dtstart, Property::RecurrenceId] {
                if component.has_property(&property) && self.moment(component, &property).is_none()
                {
                    return Some(format!(
                        "its {} is no date of the years 1 to 9999: correct it",
                        property.as_str()
                    ));
                }
            }
            if self.times(component).is_none() {
                return Some("it has no DTSTART: add the date on which it begins".to_owned());
            }
        }
        None
    }

    /// All versions of the component common to all instances.
    pub(super) fn masters(&self) -> impl Iterator<Item = &'a ICalendarComponent> {
        let all = self.components.iter().copied();
        all.filter(|component| !component.has_property(&Property::RecurrenceId))
    }

    /// The component common to all instances, or the first one.
    pub(crate) fn main(&self) -> Option<&'a ICalendarComponent> {
        let first = || self.components.first().copied();
        self.master.as_ref().map(|(it, _)| *it).or_else(first)
    }

    /// Returns true if it has only single instances, without the common component.
    pub(crate) fn is_part(&self) -> bool {
        self.master.is_none() && !self.components.is_empty()
    }

    /// An unknown time zone of its start or end.
    pub(crate) fn unknown_zone(&self) -> Option<&'a str> {
        let of = [Property::Dtstart, Property::Dtend, Property::Due];
        let mut all = self.components.iter().flat_map(|component| {
            let entries = of.iter().filter_map(|it| component.property(it));
            entries.collect::<Vec<_>>()
        });
        all.find_map(|entry| {
            let value = entry.values.first()?.as_partial_date_time()?;
            let moment = self.zones.moment(value, entry.tz_id())?;
            entry.tz_id().filter(|_| moment.is_err())
        })
    }

    /// Returns true if there may be several instances.
    pub(crate) fn recurs(&self) -> bool {
        let of = [Property::Rrule, Property::Rdate, Property::RecurrenceId];
        let mut all = self.components.iter();
        all.any(|component| of.iter().any(|property| component.has_property(property)))
    }

    /// The highest SEQUENCE, and the latest DTSTAMP or LAST-MODIFIED.
    pub(crate) fn version(&self) -> (i64, i64) {
        let all = self.components.iter().map(|it| self.version_of(it));
        all.fold((0, 0), |(sequence, stamp), of| {
            (of.0.max(sequence), of.1.max(stamp))
        })
    }

    /// As [`Self::version`], for one component.
    pub(crate) fn version_of(&self, component: &ICalendarComponent) -> (i64, i64) {
        let sequence = integer(component, &Property::Sequence);
        let stamps = [Property::Dtstamp, Property::LastModified];
        let stamps = stamps.iter().filter_map(|it| self.moment(component, it));
        let stamp = stamps.map(|moment| moment.instant()).max();
        (i64::from(sequence.unwrap_or(0)), stamp.unwrap_or(0))
    }

    /// The recurrence moment of a component that is an instance of a series.
    pub(crate) fn instance(&self, component: &ICalendarComponent) -> Option<i64> {
        let id = self.moment(component, &Property::RecurrenceId)?;
        Some(self.as_in_series(id).instant())
    }

    /// Converts a moment that names an instance to the form of the series: to its day if the series has no times, to
    /// its time if the name is a day, to its zone if the name has none.
    pub(crate) fn as_in_series(&self, named: Moment) -> Moment {
        let start = self.master.as_ref().and_then(|(_, start)| start.as_ref());
        let clock = match (start, &named) {
            (None, _) | (Some(Moment::Day(_)), Moment::Day(_)) => return named,
            (Some(Moment::Day(_)), _) => local(&named),
            (Some(start), Moment::Day(date)) => date.to_datetime(local(start).time()),
            (Some(Moment::Floating(_)), _) | (Some(_), Moment::Floating(_)) => local(&named),
            (Some(_), Moment::Utc(_) | Moment::Zoned { .. }) => return named,
        };
        let moment = start.and_then(|start| self.zones.with_local(start, clock));
        moment.unwrap_or(named)
    }

    /// The moment of a value; by the wall clock if its zone is unknown.
    pub(super) fn value(&self, entry: &ICalendarEntry, value: &PartialDateTime) -> Option<Moment> {
        let known = self.zones.moment(value, entry.tz_id())?;
        known
            .or_else(|error| self.zones.moment(value, None).unwrap_or(Err(error)))
            .ok()
    }

    pub(crate) fn moment(
        &self,
        component: &ICalendarComponent,
        property: &Property,
    ) -> Option<Moment> {
        let entry = component.property(property)?;
        self.value(entry, entry.values.first()?.as_partial_date_time()?)
    }

    /// The start and end of a component.
    pub(crate) fn times(&self, component: &ICalendarComponent) -> Option<Times> {
        let start = self
            .moment(component, &Property::Dtstart)
            .or_else(|| self.due(component))
            .or_else(|| self.moment(component, &Property::RecurrenceId))?;
        let end = self.said_end(component, &start);
        let end = end.or_else(|| self.lasting(component, &start));
        Some((start.clone(), end.unwrap_or(start)))
    }

    fn due(&self, component: &ICalendarComponent) -> Option<Moment> {
        let is_task = self.kind == Kind::Task;
        is_task.then(|| self.moment(component, &Property::Due))?
    }

    /// The explicit end of a component, if it is valid.
    pub(super) fn said_end(
        &self,
        component: &ICalendarComponent,
        start: &Moment,
    ) -> Option<Moment> {
        let end = self.moment(component, &Property::Dtend);
        let end = end.or_else(|| self.due(component));
        end.filter(|end| end.is_day() == start.is_day() && end.instant() >= start.instant())
    }

    /// The end of a component with this start, by its duration.
    fn lasting(&self, component: &ICalendarComponent, start: &Moment) -> Option<Moment> {
        self.zones.plus(start, self.lasts(component, start))
    }

    /// The duration of a component; the default of RFC 5545 §3.6.1 if it has none.
    pub(super) fn lasts(&self, component: &ICalendarComponent, start: &Moment) -> jiff::Span {
        let usual = jiff::Span::new().days(i64::from(start.is_day()));
        let lasts = duration(component).ok().flatten();
        // Also the default if the end is past the calendar's range.
        let lasts = lasts.filter(|lasts| self.zones.plus(start, *lasts).is_some());
        lasts.unwrap_or(usual)
    }

    /// The component of an instance: its own, or that of an instance and all later ones.
    pub(crate) fn component_of(&self, id: i64) -> Option<&'a ICalendarComponent> {
        let own = self.overrides.get(&id).copied();
        let from = || self.ranges.range(..=id).next_back();
        own.or_else(|| from().map(|(_, component)| *component))
            .or_else(|| self.main())
    }

    /// The event of instance `id` or, without one, of the common component. `None` if there are no such times.
    pub(crate) fn event(&self, of: About<'_>, times: Option<Occurrence>) -> Option<Event> {
        let main = self.main()?;
        let Some(span) = times else {
            return match (self.times(main), self.kind) {
                (Some(times), _) => Some(self.read(of, main, times)),
                // An event requires a start.
                (None, Kind::Event) => None,
                (None, _) => self.undated(of),
            };
        };
        let component = self.component_of(span.id)?;
        let (start, end) = self.times(component)?;
        let times = (
            self.zones.at(&start, span.start)?,
            self.zones.at(&end, span.end)?,
        );
        Some(self.read(of, component, times))
    }

    /// The event of a component without times, as in some messages about events.
    pub(crate) fn undated(&self, of: About<'_>) -> Option<Event> {
        let stamp = Moment::Utc(time::utc(of.stamp));
        Some(self.read(of, self.main()?, (stamp.clone(), stamp)))
    }

    fn read(&self, of: About<'_>, component: &ICalendarComponent, times: Times) -> Event {
        let owned = |property| text(component, &property).map(str::to_owned);
        let organizer = component.property(&Property::Organizer);
        let address = organizer.and_then(ICalendarEntry::calendar_address);
        let created = self.moment(component, &Property::Created);
        Event {
            uid: of.uid.to_owned(),
            sequence: integer(component, &Property::Sequence).unwrap_or(0),
            created: created.map_or(of.stamp, |moment| moment.instant()),
            modified: of.stamp,
            organizer: Organizer {
                // No local user: the organizer does not see changes made here.
                user: String::new(),
                email: address.map_or_else(|| of.owner.to_owned(), bare_address),
                display_name: organizer.and_then(|entry| parameter(entry, &Parameter::Cn)),
            },
            attendees: component
                .properties(&Property::Attendee)
                .filter_map(attendee)
                .take(limits::ATTENDEES)
                .collect(),
            details: Details {
                summary: owned(Property::Summary),
                location: owned(Property::Location),
                description: owned(Property::Description),
                start: self.zones.shown(times.0),
                end: self.zones.shown(times.1),
                class: word(owned(Property::Class), Class::parse),
                transparency: word(owned(Property::Transp), Transparency::parse),
                status: word(owned(Property::Status), Status::parse),
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
        }
    }
}

/// The owner of an object, and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) uid: &'a str,
    /// The address of the calendar's owner, the organizer by default.
    pub(crate) owner: &'a str,
    pub(crate) stamp: i64,
}

/// An event with only a name and, if known, its times.
pub(crate) fn name_alone(of: About<'_>, span: Option<Occurrence>) -> Event {
    let (start, end) = span.map_or((of.stamp, of.stamp), |span| (span.start, span.end));
    Event {
        uid: of.uid.to_owned(),
        sequence: 0,
        created: of.stamp,
        modified: of.stamp,
        organizer: Organizer {
            user: String::new(),
            email: of.owner.to_owned(),
            display_name: None,
        },
        attendees: Vec::new(),
        details: Details {
            summary: Some(of.uid.to_owned()),
            location: None,
            description: None,
            start: Moment::Utc(time::utc(start)),
            end: Moment::Utc(time::utc(end)),
            class: Class::default(),
            transparency: Transparency::default(),
            status: Status::default(),
            priority: None,
            categories: Vec::new(),
            url: None,
            extra: Vec::new(),
            alarm: None,
            source: Vec::new(),
        },
    }
}

fn word<T: Default>(text: Option<String>, parse: impl Fn(&str) -> Option<T>) -> T {
    text.and_then(|text| parse(&text)).unwrap_or_default()
}

/// Parses an attendee property.
pub(crate) fn attendee(entry: &ICalendarEntry) -> Option<Attendee> {
    let address = entry.calendar_address().map(bare_address);
    let email = address.filter(|it| !it.is_empty() && !it.contains(char::is_control))?;
    let named = |name| parameter(entry, &name);
    let address = |name| named(name).map(|text| bare_address(&text));
    Some(Attendee {
        user: None,
        email,
        display_name: named(Parameter::Cn),
        role: word(named(Parameter::Role), Role::parse),
        user_type: word(named(Parameter::Cutype), UserType::parse),
        status: word(named(Parameter::Partstat), Answer::parse),
        rsvp: named(Parameter::Rsvp).is_some_and(|text| text.eq_ignore_ascii_case("TRUE")),
        delegated_to: address(Parameter::DelegatedTo),
        delegated_from: address(Parameter::DelegatedFrom),
        member: address(Parameter::Member),
        sent_by: address(Parameter::SentBy),
        dir: named(Parameter::Dir),
    })
}

/// The wall clock of a moment in its own zone.
pub(crate) fn local(moment: &Moment) -> DateTime {
    match moment {
        Moment::Day(date) => date.to_datetime(Time::midnight()),
        Moment::Utc(at) | Moment::Floating(at) | Moment::Zoned { local: at, .. } => *at,
    }
}
