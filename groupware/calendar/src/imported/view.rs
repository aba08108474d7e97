//! What an object that was kept as it came says, as far as this calendar understands it. Nothing is refused here
//! that can be shown in part: the object itself is kept whatever is made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use calcard::common::{PartialDateTime, timezone::Tz};
use calcard::icalendar::timezone::TzResolver;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType as Component, ICalendarEntry,
    ICalendarParameterName as Parameter, ICalendarPeriod, ICalendarProperty as Property,
    ICalendarRecurrenceRule as Rule, ICalendarValue,
};
use calcard::{Entry as Parsed, Parser};
use jiff::civil::{DateTime, Time};

use super::recurrence;
use crate::icalendar::{duration, extra, integer, moment_of, parameter, text};
use crate::json::{bare_address, end_of};
use crate::object::{Kind, Span};
use crate::{
    Answer, Attendee, Class, Details, Event, Moment, Organizer, Role, Status, Transparency,
    UserType, limits, time,
};

/// Most rules of one event that are followed. RFC 5545 advises no more than one.
const RULES: usize = 4;
/// How far back the instances go of what has too many to be listed.
const LOOKED_BACK_S: i64 = 31 * 86_400;

/// Parses an object.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(original: &str) -> Result<ICalendar, String> {
    match Parser::new(original).entry() {
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
    zones: TzResolver<&'a str>,
    /// All components that count, of one kind.
    components: Vec<&'a ICalendarComponent>,
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
        Self {
            kind,
            zones: calendar.build_tz_resolver(),
            components,
        }
    }

    /// What can't be kept as an object, if there is something.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.kind != Kind::Event {
            let mut all = self.components.iter();
            let is_busy = all.any(|it| it.component_type == Component::VFreebusy);
            return is_busy.then(|| "free and busy times are no event, and not kept".to_owned());
        }
        let masters = self.masters().count();
        if masters > 1 {
            let cause = "it is there in several versions, none of which has a RECURRENCE-ID: \
                         leave the newest one in the file";
            return Some(cause.to_owned());
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

    fn masters(&self) -> impl Iterator<Item = &'a ICalendarComponent> {
        let all = self.components.iter().copied();
        all.filter(|component| !component.has_property(&Property::RecurrenceId))
    }

    /// The component that says what all instances have in common, or the first one.
    pub(crate) fn main(&self) -> Option<&'a ICalendarComponent> {
        let first = || self.components.first().copied();
        self.masters().next().or_else(first)
    }

    /// Whether it has instances alone, and nothing that says what they have in common.
    pub(crate) fn is_part(&self) -> bool {
        self.masters().next().is_none() && !self.components.is_empty()
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
            let moment = moment_of(value, entry.tz_id(), &self.zones)?;
            entry.tz_id().filter(|_| moment.is_err())
        })
    }

    /// The components that stand for one instance each, with what they stand for.
    fn overrides(&self) -> impl Iterator<Item = (i64, &'a ICalendarComponent)> {
        self.components.iter().filter_map(|component| {
            let id = self.instance(component)?;
            Some((id, *component))
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
        Some(id.instant())
    }

    fn value(&self, entry: &ICalendarEntry, value: &PartialDateTime) -> Option<Moment> {
        // A zone that nobody knows: the wall clock is what there is.
        let known = moment_of(value, entry.tz_id(), &self.zones)?;
        known
            .or_else(|error| moment_of(value, None, &self.zones).unwrap_or(Err(error)))
            .ok()
    }

    fn moment(&self, component: &ICalendarComponent, property: &Property) -> Option<Moment> {
        let entry = component.property(property)?;
        self.value(entry, entry.values.first()?.as_partial_date_time()?)
    }

    /// When a component begins and ends.
    pub(crate) fn times(&self, component: &ICalendarComponent) -> Option<Times> {
        let due = match self.kind {
            Kind::Task => self.moment(component, &Property::Due),
            _ => None,
        };
        let start = self
            .moment(component, &Property::Dtstart)
            .or_else(|| due.clone())
            .or_else(|| self.moment(component, &Property::RecurrenceId))?;
        let end = self.moment(component, &Property::Dtend).or(due);
        let end =
            end.filter(|end| end.is_day() == start.is_day() && end.instant() >= start.instant());
        let lasts = duration(component).ok().flatten();
        let end = end_of(&start, end, lasts).or_else(|_| end_of(&start, None, None));
        Some((start.clone(), end.unwrap_or(start)))
    }

    /// What instance `id` says; without one, what all have in common. `None` if there are no such times.
    pub(crate) fn event(&self, of: About<'_>, times: Option<Span>) -> Option<Event> {
        let main = self.main()?;
        let Some(span) = times else {
            let stamp = Moment::Utc(time::utc(of.stamp));
            let times = match (self.times(main), self.kind) {
                (Some(times), _) => times,
                // No event is without a beginning.
                (None, Kind::Event) => return None,
                (None, _) => (stamp.clone(), stamp),
            };
            return Some(self.read(of, main, times));
        };
        let mut overrides = self.overrides();
        let own = overrides.find(|(id, _)| *id == span.id);
        let component = own.map_or(main, |(_, component)| component);
        let (start, end) = self.times(component)?;
        let times = (at(&start, span.start)?, at(&end, span.end)?);
        Some(self.read(of, component, times))
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
                start: times.0,
                end: times.1,
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
            },
        }
    }

    /// The instances in a range, in the order of their starts, and whether some are left out.
    pub(crate) fn spans(&self, range: &Range<i64>, most: usize) -> (Vec<Span>, bool) {
        let mut all = BTreeMap::new();
        let mut is_cut = false;
        if let Some((main, times)) = self.recurring() {
            is_cut = self.follow(main, &times, range, &mut all);
        }
        for (id, component) in self.overrides() {
            if let Some((start, end)) = self.times(component) {
                all.insert(id, (start.instant(), end.instant()));
            }
        }
        let is_in = |(start, end): &(i64, i64)| *start < range.end && *end >= range.start;
        let spans = all.into_iter().filter(|(_, times)| is_in(times));
        let mut spans: Vec<Span> = spans
            .map(|(id, (start, end))| Span { start, end, id })
            .collect();
        spans.sort_unstable();
        if spans.len() > most {
            is_cut = true;
            // Of too many, those that people look at.
            let recent = range.start.saturating_add(limits::PAST_S - LOOKED_BACK_S);
            spans.retain(|span| span.end >= recent);
            spans.truncate(most);
        }
        (spans, is_cut)
    }

    fn recurring(&self) -> Option<(&'a ICalendarComponent, Times)> {
        let main = self.masters().next()?;
        Some((main, self.times(main)?))
    }

    /// Adds what rules and dates of a component say, by what names it; whether some is left out.
    fn follow(
        &self,
        main: &ICalendarComponent,
        times: &Times,
        range: &Range<i64>,
        all: &mut BTreeMap<i64, (i64, i64)>,
    ) -> bool {
        let (first, day) = (local(&times.0), 86_400);
        // Wall clocks are at most so far from the moments that they stand for.
        let around = time::utc(
            range
                .start
                .saturating_sub(day)
                .saturating_sub(length(times)),
        )..time::utc(range.end.saturating_add(day));
        let (mut is_cut, mut has_rule) = (false, false);
        for rule in main.properties(&Property::Rrule).take(RULES) {
            let Some(ICalendarValue::RecurrenceRule(rule)) = rule.values.first() else {
                continue;
            };
            let until = rule.until.as_ref().and_then(|at| self.until(at, &times.0));
            let Some(found) = recurrence::starts(rule, first, until, &around) else {
                is_cut = true;
                continue;
            };
            is_cut |= found.is_cut;
            has_rule |= is_followed(rule);
            let found = found.at.into_iter().filter_map(|at| shifted(times, at));
            all.extend(found.map(|times| (times.0, times)));
        }
        if !has_rule {
            let own = (times.0.instant(), times.1.instant());
            all.insert(own.0, own);
        }
        self.add_dates(main, times, all);
        let (moments, days) = self.exceptions(main);
        let is_on = |id: i64| days.contains(&local(&at_or(&times.0, id)).date());
        all.retain(|id, _| !moments.contains(id) && (days.is_empty() || !is_on(*id)));
        is_cut
    }

    /// The wall clock after which a rule has no instance.
    fn until(&self, until: &PartialDateTime, start: &Moment) -> Option<DateTime> {
        let last_second = Time::constant(23, 59, 59, 0);
        Some(match moment_of(until, None, &self.zones)?.ok()? {
            Moment::Day(date) => date.to_datetime(last_second),
            moment if start.is_day() => local(&moment).date().to_datetime(last_second),
            Moment::Utc(at) => local(&at_or(start, time::seconds(at))),
            moment => local(&moment),
        })
    }

    fn add_dates(
        &self,
        main: &ICalendarComponent,
        times: &Times,
        all: &mut BTreeMap<i64, (i64, i64)>,
    ) {
        for entry in main.properties(&Property::Rdate) {
            for value in &entry.values {
                let (start, end) = match value {
                    ICalendarValue::PartialDateTime(at) => (self.value(entry, at), None),
                    ICalendarValue::Period(ICalendarPeriod::Range { start, end }) => {
                        (self.value(entry, start), self.value(entry, end))
                    }
                    ICalendarValue::Period(ICalendarPeriod::Duration { start, .. }) => {
                        (self.value(entry, start), None)
                    }
                    _ => continue,
                };
                let Some(start) = start.map(|start| start.instant()) else {
                    continue;
                };
                let end = end.map_or(start.saturating_add(length(times)), |end| end.instant());
                all.insert(start, (start, end.max(start)));
            }
        }
    }

    /// Moments and days on which there is nothing.
    fn exceptions(
        &self,
        main: &ICalendarComponent,
    ) -> (BTreeSet<i64>, BTreeSet<jiff::civil::Date>) {
        let (mut moments, mut days) = (BTreeSet::new(), BTreeSet::new());
        for entry in main.properties(&Property::Exdate) {
            for value in &entry.values {
                let at = value.as_partial_date_time();
                match at.and_then(|at| self.value(entry, at)) {
                    Some(Moment::Day(date)) => {
                        days.insert(date);
                    }
                    Some(moment) => {
                        moments.insert(moment.instant());
                    }
                    None => {}
                }
            }
        }
        (moments, days)
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
        },
    }
}

/// Rules that say nothing of instances are as none.
fn is_followed(rule: &Rule) -> bool {
    rule.count != Some(0) && rule.interval != Some(0)
}

fn word<T: Default>(text: Option<String>, parse: impl Fn(&str) -> Option<T>) -> T {
    text.and_then(|text| parse(&text)).unwrap_or_default()
}

fn attendee(entry: &ICalendarEntry) -> Option<Attendee> {
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

/// A moment of the same kind and zone with another wall clock.
fn with_local(moment: &Moment, at: DateTime) -> Option<Moment> {
    Some(match moment {
        Moment::Day(_) => Moment::Day(at.date()),
        Moment::Utc(_) => Moment::Utc(at),
        Moment::Floating(_) => Moment::Floating(at),
        Moment::Zoned { tzid, .. } => return Moment::zoned(at, tzid).ok(),
    })
}

/// A moment of the same kind and zone at a second since 1970.
fn at(moment: &Moment, second: i64) -> Option<Moment> {
    match moment {
        Moment::Zoned { tzid, .. } => {
            let zone: Tz = tzid.parse().ok()?;
            Some(Moment::Zoned {
                local: time::local_in(second, zone)?,
                tzid: tzid.clone(),
                instant: second,
            })
        }
        _ => with_local(moment, time::utc(second)),
    }
}

fn at_or(moment: &Moment, second: i64) -> Moment {
    at(moment, second).unwrap_or_else(|| Moment::Utc(time::utc(second)))
}

/// How long an event lasts, in seconds.
fn length((start, end): &Times) -> i64 {
    end.instant().saturating_sub(start.instant())
}

/// The times of an instance that begins at a wall clock: as long by the clock as the first one, where both its
/// ends go by the same.
fn shifted(times: &Times, begins: DateTime) -> Option<(i64, i64)> {
    let (first, last) = times;
    let start = with_local(first, begins)?.instant();
    let end = match first.tzid() == last.tzid() {
        true => {
            let by_clock = time::seconds(local(last)) - time::seconds(local(first));
            let end = time::utc(time::seconds(begins).saturating_add(by_clock));
            with_local(last, end)?.instant()
        }
        false => start.saturating_add(length(times)),
    };
    Some((start, end.max(start)))
}
