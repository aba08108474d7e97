//! What an object that was kept as it came says, as far as this calendar understands it. Nothing is refused here
//! that can be shown in part: the object itself is kept whatever is made of it.

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
use crate::object::{Kind, Span};
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
/// What is wrong with it.
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
    /// All components that count, of one kind.
    pub(crate) components: Vec<&'a ICalendarComponent>,
    /// The component that says what all instances have in common, and when the first one begins.
    pub(super) master: Option<(&'a ICalendarComponent, Option<Moment>)>,
    /// The components that stand for one instance each, by the moment that they stand for.
    pub(super) overrides: BTreeMap<i64, &'a ICalendarComponent>,
    /// Those that stand for an instance and all later ones (RFC 5545 §3.2.13).
    pub(super) ranges: BTreeMap<i64, &'a ICalendarComponent>,
}

/// The components of an object but its time zones, with the numbers that `edited` knows them by.
pub(crate) fn numbered(calendar: &ICalendar) -> impl Iterator<Item = (usize, &ICalendarComponent)> {
    let root = calendar.components.first();
    let ids = root.into_iter().flat_map(|root| &root.component_ids);
    let all = ids.filter_map(|id| calendar.components.get(*id as usize));
    let all = all.filter(|it| it.component_type != Component::VTimezone);
    all.enumerate()
}

/// When an event begins and ends.
pub(crate) type Times = (Moment, Moment);

impl<'a> Series<'a> {
    /// Sorts out the components.
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

    /// Of several versions, the one with the higher SEQUENCE, or else the later stamp, or else the last.
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

    /// What can't be kept as an object, if there is something.
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

    /// The versions of what all instances have in common.
    pub(super) fn masters(&self) -> impl Iterator<Item = &'a ICalendarComponent> {
        let all = self.components.iter().copied();
        all.filter(|component| !component.has_property(&Property::RecurrenceId))
    }

    /// The component that says what all instances have in common, or the first one.
    pub(crate) fn main(&self) -> Option<&'a ICalendarComponent> {
        let first = || self.components.first().copied();
        self.master.as_ref().map(|(it, _)| *it).or_else(first)
    }

    /// Whether it has instances alone, and nothing that says what they have in common.
    pub(crate) fn is_part(&self) -> bool {
        self.master.is_none() && !self.components.is_empty()
    }

    /// A time zone in which it begins or ends, and which nobody knows.
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

    /// Whether there may be several instances.
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

    /// The same of one component.
    pub(crate) fn version_of(&self, component: &ICalendarComponent) -> (i64, i64) {
        let sequence = integer(component, &Property::Sequence);
        let stamps = [Property::Dtstamp, Property::LastModified];
        let stamps = stamps.iter().filter_map(|it| self.moment(component, it));
        let stamp = stamps.map(|moment| moment.instant()).max();
        (i64::from(sequence.unwrap_or(0)), stamp.unwrap_or(0))
    }

    /// The moment that a component stands for as one instance of a series.
    pub(crate) fn instance(&self, component: &ICalendarComponent) -> Option<i64> {
        let id = self.moment(component, &Property::RecurrenceId)?;
        Some(self.as_in_series(id).instant())
    }

    /// A moment that names an instance, in the terms of the series: of its day if it has no times, at its time if the
    /// name is a day, in its zone if the name has none.
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

    /// The moment that a value says, by the wall clock where nobody knows its zone.
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

    /// When a component begins and ends.
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

    /// The end that a component says, if that can be one.
    pub(super) fn said_end(
        &self,
        component: &ICalendarComponent,
        start: &Moment,
    ) -> Option<Moment> {
        let end = self.moment(component, &Property::Dtend);
        let end = end.or_else(|| self.due(component));
        end.filter(|end| end.is_day() == start.is_day() && end.instant() >= start.instant())
    }

    /// The end of what begins then by how long a component lasts.
    fn lasting(&self, component: &ICalendarComponent, start: &Moment) -> Option<Moment> {
        self.zones.plus(start, self.lasts(component, start))
    }

    /// How long a component lasts by its duration, or as RFC 5545 §3.6.1 has it for those that don't say it.
    pub(super) fn lasts(&self, component: &ICalendarComponent, start: &Moment) -> jiff::Span {
        let usual = jiff::Span::new().days(i64::from(start.is_day()));
        let lasts = duration(component).ok().flatten();
        // Of what lasts past the end of time, too.
        let lasts = lasts.filter(|lasts| self.zones.plus(start, *lasts).is_some());
        lasts.unwrap_or(usual)
    }

    /// The component that says what an instance is: its own, or one for it and all later ones.
    pub(crate) fn component_of(&self, id: i64) -> Option<&'a ICalendarComponent> {
        let own = self.overrides.get(&id).copied();
        let from = || self.ranges.range(..=id).next_back();
        own.or_else(|| from().map(|(_, component)| *component))
            .or_else(|| self.main())
    }

    /// What instance `id` says; without one, what all have in common. `None` if there are no such times.
    pub(crate) fn event(&self, of: About<'_>, times: Option<Span>) -> Option<Event> {
        let main = self.main()?;
        let Some(span) = times else {
            return match (self.times(main), self.kind) {
                (Some(times), _) => Some(self.read(of, main, times)),
                // No event is without a beginning.
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

    /// What an event without times says, which some messages about events are.
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
                // Nobody here: whoever it is does not see what is done with it.
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

/// Whose object it is, and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) uid: &'a str,
    /// The address of the calendar's owner, who organizes what nobody else does.
    pub(crate) owner: &'a str,
    pub(crate) stamp: i64,
}

/// An event of which nothing is known but its name and, if at all, when it is.
pub(crate) fn name_alone(of: About<'_>, span: Option<Span>) -> Event {
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

/// Somebody who is invited, as a property says it.
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

/// The wall clock of a moment where it is.
pub(crate) fn local(moment: &Moment) -> DateTime {
    match moment {
        Moment::Day(date) => date.to_datetime(Time::midnight()),
        Moment::Utc(at) | Moment::Floating(at) | Moment::Zoned { local: at, .. } => *at,
    }
}
