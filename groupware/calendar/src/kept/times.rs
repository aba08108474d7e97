//! When an event is, written in the lines that say so.

use std::collections::BTreeMap;

use calcard::icalendar::{ICalendar, ICalendarComponent, ICalendarProperty as Property};
use groupware_proto_ical::Edit;

use crate::icalendar::{duration, known_zone, moment_of};
use crate::json::end_of;
use crate::{Details, Moment, time, zones};

/// Whether two moments are the same to people: a day, by the clock wherever they are, or an instant.
pub(super) fn is_same(one: &Moment, other: &Moment) -> bool {
    let kind = |moment: &Moment| (moment.is_day(), matches!(moment, Moment::Floating(_)));
    kind(one) == kind(other) && one.instant() == other.instant()
}

/// The times of a component that doesn't recur.
pub(super) struct Times<'a> {
    calendar: &'a ICalendar,
    component: &'a ICalendarComponent,
    /// The time zones that the object is going to name and doesn't describe yet, and how they are described.
    pub(super) zones: BTreeMap<String, String>,
}

impl<'a> Times<'a> {
    pub(super) fn new(calendar: &'a ICalendar, component: &'a ICalendarComponent) -> Self {
        Self {
            calendar,
            component,
            zones: BTreeMap::new(),
        }
    }

    /// The lines that change for the event to be when it is wanted.
    pub(super) fn edits(&mut self, wanted: &Details) -> Vec<Edit> {
        let mut edits = Vec::new();
        let is = |said: Option<&Moment>, wanted| said.is_some_and(|said| is_same(said, wanted));
        if !is(self.said(&Property::Dtstart).as_ref(), &wanted.start) {
            edits.push(self.edit("DTSTART", &wanted.start));
        }
        if self.component.has_property(&Property::Dtend) {
            if !is(self.said(&Property::Dtend).as_ref(), &wanted.end) {
                edits.push(self.edit("DTEND", &wanted.end));
            }
            return edits;
        }
        // It lasts as long as it says, or as RFC 5545 §3.6.1 has it for those that don't say it.
        let lasts = duration(self.component).ok().flatten();
        let end = end_of(&wanted.start, None, lasts).ok();
        if !is(end.as_ref(), &wanted.end) {
            edits.push(self.edit("DTEND", &wanted.end));
            edits.push(Edit {
                property: "DURATION",
                value: None,
                parameters: Vec::new(),
            });
        }
        edits
    }

    fn said(&self, property: &Property) -> Option<Moment> {
        let entry = self.component.property(property)?;
        let value = entry.values.first()?.as_partial_date_time()?;
        let zones = self.calendar.build_tz_resolver();
        let known = moment_of(value, entry.tz_id(), &zones)?;
        known
            .or_else(|error| moment_of(value, None, &zones).unwrap_or(Err(error)))
            .ok()
    }

    fn edit(&mut self, property: &'static str, moment: &Moment) -> Edit {
        let (mut kind, mut zone) = (None, None);
        let value = match moment {
            Moment::Day(_) => {
                kind = Some("DATE".to_owned());
                time::compact(moment.instant())[..8].to_owned()
            }
            Moment::Utc(_) => time::compact(moment.instant()),
            Moment::Floating(at) => by_clock(*at),
            Moment::Zoned { local, tzid, .. } => match self.name_of(tzid, moment.instant()) {
                Some(name) => {
                    zone = Some(name);
                    by_clock(*local)
                }
                None => time::compact(moment.instant()),
            },
        };
        Edit {
            property,
            value: Some(value),
            parameters: vec![("VALUE", kind), ("TZID", zone)],
        }
    }

    /// What the object calls a zone; `None` if it can't be described. A name that can't be written is none: what lies
    /// in the object is folded and escaped, and is read as another text than it is written as.
    fn name_of(&mut self, tzid: &str, at: i64) -> Option<String> {
        let resolver = self.calendar.build_tz_resolver();
        let named = self.component.entries.iter().filter_map(|it| it.tz_id());
        let mut named = named.filter(|name| time::can_name_zone(name));
        if let Some(name) = named.find(|name| known_zone(&resolver, name) == tzid) {
            return Some(name.to_owned());
        }
        let described = self.calendar.timezones().filter_map(|zone| zone.timezone());
        let names = described.map(|(name, _)| name);
        let mut names = names.filter(|name| time::can_name_zone(name));
        if let Some(name) = names.find(|name| known_zone(&resolver, name) == tzid) {
            return Some(name.to_owned());
        }
        if !time::can_name_zone(tzid) {
            return None;
        }
        let described = zones::described(tzid, &(at..at))?;
        self.zones.entry(tzid.to_owned()).or_insert(described);
        Some(tzid.to_owned())
    }
}

/// A wall clock without a zone.
fn by_clock(at: jiff::civil::DateTime) -> String {
    let mut text = time::compact(time::seconds(at));
    text.pop();
    text
}
