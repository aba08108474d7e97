//! Changes the times of an event in its lines.

use std::collections::BTreeMap;

use calcard::icalendar::{ICalendar, ICalendarComponent, ICalendarProperty as Property};
use groupware_proto_ical::Edit;
use jiff::civil::DateTime;

use crate::{Details, Moment, time, zones};
use groupware_recurrence::FileZones;
use groupware_recurrence::values::{duration, text};

/// Returns true if two moments look the same to people: a day, a floating wall clock, or an instant.
pub(super) fn is_same(one: &Moment, other: &Moment) -> bool {
    let kind = |moment: &Moment| (moment.is_day(), matches!(moment, Moment::Floating(_)));
    kind(one) == kind(other) && one.instant() == other.instant()
}

/// The times of a component that doesn't recur.
pub(super) struct Times<'a> {
    calendar: &'a ICalendar,
    known: FileZones<'a>,
    component: &'a ICalendarComponent,
    /// The time zones that the object will name and doesn't describe yet, with their descriptions.
    pub(super) zones: BTreeMap<String, String>,
}

impl<'a> Times<'a> {
    pub(super) fn new(calendar: &'a ICalendar, component: &'a ICalendarComponent) -> Self {
        Self {
            calendar,
            known: FileZones::of(calendar),
            component,
            zones: BTreeMap::new(),
        }
    }

    /// The edits that move the event to the wanted times.
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
        // The duration is explicit, or the default of RFC 5545 §3.6.1.
        let lasts = duration(self.component).ok().flatten();
        let usual = jiff::Span::new().days(i64::from(wanted.start.is_day()));
        let end = self.known.plus(&wanted.start, lasts.unwrap_or(usual));
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
        let known = self.known.moment(value, entry.tz_id())?;
        known
            .or_else(|error| self.known.moment(value, None).unwrap_or(Err(error)))
            .ok()
    }

    fn edit(&mut self, property: &'static str, moment: &Moment) -> Edit {
        let (mut kind, mut zone) = (None, None);
        let value = match moment {
            Moment::Day(_) => {
                kind = Some("DATE".to_owned());
                time::compact(moment.instant())[..8].to_owned()
            }
            Moment::Floating(at) => {
                // An unknown zone stays: the view showed its wall clock.
                zone = self
                    .named(property)
                    .filter(|name| self.known.get(name).is_none());
                by_clock(*at)
            }
            Moment::Utc(_) | Moment::Zoned { .. } => {
                let in_zone = match moment {
                    Moment::Zoned { local, tzid, .. } => self
                        .name_of(tzid, moment.instant())
                        .map(|name| (name, *local)),
                    _ => None,
                };
                match in_zone.or_else(|| self.in_own_zone(property, moment.instant())) {
                    Some((name, clock)) => {
                        zone = Some(name);
                        by_clock(clock)
                    }
                    None => time::compact(moment.instant()),
                }
            }
        };
        Edit {
            property,
            value: Some(value),
            parameters: vec![("VALUE", kind), ("TZID", zone)],
        }
    }

    /// The zone of a property, or that of the start.
    fn named(&self, property: &str) -> Option<String> {
        let own = match property {
            "DTEND" => self.component.property(&Property::Dtend),
            _ => None,
        };
        let entry = own.or_else(|| self.component.property(&Property::Dtstart))?;
        let name = entry.tz_id().filter(|name| time::can_name_zone(name))?;
        Some(name.to_owned())
    }

    /// A moment by the wall clock of the property's own zone, which stays: the client may know the instant only. `None`
    /// if that wall clock is ambiguous.
    fn in_own_zone(&self, property: &str, second: i64) -> Option<(String, DateTime)> {
        let name = self.named(property)?;
        let moment = self.known.zoned(time::utc(second), &name).ok()?;
        let Moment::Zoned { local, .. } = self.known.at(&moment, second)? else {
            return None;
        };
        let again = self.known.zoned(local, &name).ok()?;
        (again.instant() == second).then_some((name, local))
    }

    /// The object's name for a zone; `None` if the zone can't be described. An unwritable name is not used: the
    /// object's text is folded and escaped, and would be read as another name.
    fn name_of(&mut self, tzid: &str, at: i64) -> Option<String> {
        let named = self.component.entries.iter().filter_map(|it| it.tz_id());
        let described = self.calendar.timezones();
        let described = described.filter_map(|zone| text(zone, &Property::Tzid));
        let mut names = named.chain(described);
        let is_it = |name: &str| {
            let known = self.known.get(name).and_then(|zone| zone.name);
            time::can_name_zone(name) && known.as_deref() == Some(tzid)
        };
        if let Some(name) = names.find(|name| is_it(name)) {
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
fn by_clock(at: DateTime) -> String {
    let mut text = time::compact(time::seconds(at));
    text.pop();
    text
}
