//! Resolves the time zones that a calendar object names, by its VTIMEZONEs and by their names.
//!
//! The name of a place (`Europe/Berlin`) means the zone of the database, as everywhere: descriptions of it in files are
//! often stale. Any other name means the file's VTIMEZONE. If a zone of the database has the same offsets in the
//! relevant years, its name is used instead, so that every client understands it. Names without a VTIMEZONE are looked
//! up as Windows names, and as offsets.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use calcard::common::{PartialDateTime, timezone::Tz};
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType as Component,
    ICalendarProperty as Property, ICalendarValue,
};
use jiff::Span;
use jiff::civil::DateTime;

use crate::time::{self, Moment, UnknownZone};
use crate::transitions::{Transitions, YEAR_S};
use crate::values::{self, plain_time, text};

/// The maximum number of VTIMEZONE rules that are expanded for an object.
const RULES: usize = 200;
/// The maximum range in seconds to expand for a zone that the database doesn't have: a century.
const DESCRIBED_S: i64 = 100 * YEAR_S;
/// Zones of the database, one for each set of clock changes, the most populous first.
const PLACES: [&str; 73] = [
    "Europe/Berlin",
    "Europe/London",
    "Europe/Athens",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Halifax",
    "America/St_Johns",
    "America/Anchorage",
    "America/Phoenix",
    "America/Mexico_City",
    "America/Sao_Paulo",
    "America/Bogota",
    "America/Caracas",
    "America/Santiago",
    "America/Asuncion",
    "America/Havana",
    "America/Adak",
    "America/Nuuk",
    "America/Noronha",
    "America/Miquelon",
    "America/Port-au-Prince",
    "Atlantic/Azores",
    "Atlantic/Cape_Verde",
    "Africa/Lagos",
    "Africa/Johannesburg",
    "Africa/Nairobi",
    "Africa/Abidjan",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Europe/Moscow",
    "Europe/Chisinau",
    "Asia/Jerusalem",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Tehran",
    "Asia/Dubai",
    "Asia/Kabul",
    "Asia/Karachi",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Dhaka",
    "Asia/Yangon",
    "Asia/Bangkok",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Asia/Vladivostok",
    "Asia/Magadan",
    "Asia/Kamchatka",
    "Australia/Sydney",
    "Australia/Brisbane",
    "Australia/Adelaide",
    "Australia/Darwin",
    "Australia/Perth",
    "Australia/Eucla",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Norfolk",
    "Pacific/Fiji",
    "Pacific/Tongatapu",
    "Pacific/Kiritimati",
    "Pacific/Honolulu",
    "Pacific/Marquesas",
    "Pacific/Gambier",
    "Pacific/Pitcairn",
    "Pacific/Pago_Pago",
    "Pacific/Easter",
    "Pacific/Guadalcanal",
    "Etc/UTC",
    "Etc/GMT+12",
    "Antarctica/Troll",
];

/// A time zone as defined for an object.
#[derive(Debug, Clone)]
pub struct FileZone {
    /// Its name outside the file; none if there is no such name.
    pub name: Option<String>,
    rules: Rules,
}

#[derive(Debug, Clone)]
enum Rules {
    Known(Tz),
    Described(Rc<Transitions>),
}

impl FileZone {
    fn known(name: impl Into<String>, zone: Tz) -> Self {
        let (name, rules) = (Some(name.into()), Rules::Known(zone));
        Self { name, rules }
    }

    /// A zone with a fixed offset.
    fn fixed(offset: i64) -> Self {
        let name = match (offset, offset % 3600) {
            (0, _) => "Etc/UTC".to_owned(),
            (-43_200..=50_400, 0) => format!("Etc/GMT{:+}", -offset / 3600),
            _ => String::new(),
        };
        match name.parse::<Tz>() {
            Ok(zone) => Self::known(name, zone),
            Err(()) => Self {
                name: None,
                rules: Rules::Described(Rc::new(Transitions::fixed(offset))),
            },
        }
    }

    fn instant(&self, local: DateTime) -> Option<i64> {
        match &self.rules {
            Rules::Known(zone) => time::local_to_instant(local, *zone),
            Rules::Described(offsets) => Some(offsets.instant(local)),
        }
    }

    fn local(&self, second: i64) -> Option<DateTime> {
        match &self.rules {
            Rules::Known(zone) => time::local_in(second, *zone),
            Rules::Described(offsets) => Some(offsets.local(second)),
        }
    }
}

/// The time zones of an object, each resolved on demand.
pub struct FileZones<'a> {
    calendar: &'a ICalendar,
    /// The range of time in which the object's zones matter.
    range: OnceCell<Range<i64>>,
    found: RefCell<HashMap<String, Option<FileZone>>>,
    rules: Cell<usize>,
}

impl<'a> FileZones<'a> {
    /// The zones of a calendar.
    pub fn of(calendar: &'a ICalendar) -> Self {
        Self {
            calendar,
            range: OnceCell::new(),
            found: RefCell::default(),
            rules: Cell::new(RULES),
        }
    }

    /// The zone of a name; `None` if it is unknown.
    pub fn get(&self, name: &str) -> Option<FileZone> {
        if let Some(zone) = self.found.borrow().get(name) {
            return zone.clone();
        }
        let zone = self.resolve(name);
        let mut found = self.found.borrow_mut();
        found.insert(name.to_owned(), zone.clone());
        zone
    }

    /// The moment of a value in the zone of its property; `None` if it has none.
    pub fn moment(
        &self,
        value: &PartialDateTime,
        zone: Option<&str>,
    ) -> Option<Result<Moment, UnknownZone>> {
        let clock = plain_time(value)?;
        if value.hour.is_none() {
            return Some(Ok(Moment::Day(clock.date())));
        }
        Some(match (values::offset(value), zone) {
            (Some(offset), _) => Ok(Moment::Utc(time::utc(time::seconds(clock) - offset))),
            (None, Some(zone)) => self.zoned(clock, zone),
            (None, None) => Ok(Moment::Floating(clock)),
        })
    }

    /// A wall clock in a zone. If the zone has no name outside the file, the moment has the name in the file.
    ///
    /// # Errors
    /// If the zone is unknown.
    pub fn zoned(&self, local: DateTime, name: &str) -> Result<Moment, UnknownZone> {
        let zone = self.get(name).ok_or_else(|| UnknownZone::named(name))?;
        let instant = zone.instant(local);
        let instant = instant.ok_or_else(|| UnknownZone::named(name))?;
        Ok(Moment::Zoned {
            local,
            tzid: zone.name.unwrap_or_else(|| name.to_owned()),
            instant,
        })
    }

    /// The same moment in a form for other clients: in UTC, if its zone has no name outside the file.
    pub fn shown(&self, moment: Moment) -> Moment {
        let has_name = |zone: &str| self.get(zone).is_none_or(|zone| zone.name.is_some());
        match &moment {
            Moment::Zoned { tzid, instant, .. } if !has_name(tzid) => {
                Moment::Utc(time::utc(*instant))
            }
            _ => moment,
        }
    }

    /// A moment of the same kind and zone at a second since 1970.
    pub fn at(&self, moment: &Moment, second: i64) -> Option<Moment> {
        let clock = match moment {
            Moment::Zoned { tzid, .. } => self.get(tzid)?.local(second)?,
            _ => time::utc(second),
        };
        match moment {
            Moment::Zoned { tzid, .. } => Some(Moment::Zoned {
                local: clock,
                tzid: tzid.clone(),
                instant: second,
            }),
            _ => self.with_local(moment, clock),
        }
    }

    /// A moment of the same kind and zone with another wall clock.
    pub fn with_local(&self, moment: &Moment, clock: DateTime) -> Option<Moment> {
        Some(match moment {
            Moment::Day(_) => Moment::Day(clock.date()),
            Moment::Utc(_) => Moment::Utc(clock),
            Moment::Floating(_) => Moment::Floating(clock),
            Moment::Zoned { tzid, .. } => return self.zoned(clock, tzid).ok(),
        })
    }

    /// Adds a span to a moment: calendar days, and exact hours, minutes, and seconds (RFC 5545 §3.3.6).
    pub fn plus(&self, moment: &Moment, span: Span) -> Option<Moment> {
        let Moment::Zoned { local, .. } = moment else {
            return moment.plus(span);
        };
        let day = local.checked_add(Span::new().days(span.get_days())).ok()?;
        let from = self.with_local(moment, day)?.instant();
        self.at(moment, from.checked_add(time::clock_seconds(span))?)
    }

    fn resolve(&self, name: &str) -> Option<FileZone> {
        if !time::can_name_zone(name) {
            return None;
        }
        let by_name = by_name(name);
        let place = by_name.as_ref().filter(|zone| zone.is_place(name));
        if let Some(place) = place {
            return Some(place.clone());
        }
        match self.described(name) {
            Some(zone) => self.by_description(zone, by_name),
            None => by_name,
        }
    }

    fn described(&self, name: &str) -> Option<&'a ICalendarComponent> {
        let mut all = self.calendar.timezones();
        all.find(|zone| text(zone, &Property::Tzid).is_some_and(|it| it == name))
    }

    fn by_description(
        &self,
        described: &ICalendarComponent,
        by_name: Option<FileZone>,
    ) -> Option<FileZone> {
        let said = |name: &str| {
            let property = Property::Other(name.to_owned());
            text(described, &property)
        };
        // libical names the zone of the database in it.
        let location = said("X-LIC-LOCATION").map(|it| it.strip_prefix("SystemV/").unwrap_or(it));
        let location = location.and_then(by_name_of_place);
        if location.is_some() {
            return location;
        }
        let takes = |rules: usize| {
            let left = self.rules.get().checked_sub(rules);
            self.rules.set(left.unwrap_or(0));
            left.is_some()
        };
        let expand = |range: &Range<i64>| Transitions::of(self.calendar, described, range, &takes);
        let range = self.range.get_or_init(|| taking_place(self.calendar));
        let around = range.start - YEAR_S / 2..range.end + YEAR_S;
        let Some(offsets) = expand(&around) else {
            return by_name;
        };
        let by_number = said("X-MICROSOFT-CDO-TZID").and_then(Tz::from_ms_cdo_zone_id);
        let by_number = by_number.and_then(|zone| Some(FileZone::known(zone.name()?, zone)));
        let hints = by_name.into_iter().chain(by_number);
        let is_of = |zone: &FileZone, range: &Range<i64>| match &zone.rules {
            Rules::Known(zone) => offsets.is_of(*zone, range),
            Rules::Described(other) => other.only().is_some() && other.only() == offsets.only(),
        };
        if let Some(zone) = hints.into_iter().find(|zone| is_of(zone, range)) {
            return Some(zone);
        }
        let places = || PLACES.iter().filter_map(|place| by_name_of_place(place));
        if let Some(offset) = offsets.only() {
            let zone = FileZone::fixed(offset);
            let alike = || places().find(|place| is_of(place, &around));
            return match zone.name {
                Some(_) => Some(zone),
                None => alike().or(Some(zone)),
            };
        }
        places().find(|place| is_of(place, &around)).or_else(|| {
            let whole = around.start..around.end.max(around.start + DESCRIBED_S);
            let rules = Rules::Described(Rc::new(expand(&whole).unwrap_or(offsets)));
            Some(FileZone { name: None, rules })
        })
    }
}

impl FileZone {
    /// Returns true if a name ends with that of a place in the zone database.
    fn is_place(&self, name: &str) -> bool {
        let Some(known) = self.name.as_deref() else {
            return false;
        };
        let place = match &self.rules {
            Rules::Known(zone) => zone.name(),
            Rules::Described(_) => None,
        };
        let place = place.as_deref().unwrap_or(known);
        let from = name.len().checked_sub(place.len());
        let end = from.and_then(|from| name.get(from..)).unwrap_or_default();
        place.contains('/') && !place.starts_with("Etc/") && end.eq_ignore_ascii_case(place)
    }
}

fn by_name_of_place(name: &str) -> Option<FileZone> {
    by_name(name).filter(|zone| zone.is_place(name) || name.starts_with("Etc/"))
}

/// The zone of a name by itself: a place, a Windows name, or an offset.
fn by_name(name: &str) -> Option<FileZone> {
    const EXCHANGE: &str = "tzone://Microsoft/";
    let bare = name.trim().trim_matches('"');
    let bare = bare.strip_prefix(EXCHANGE).unwrap_or(bare);
    if let Ok(zone) = name.parse::<Tz>() {
        return Some(FileZone::known(name, zone));
    }
    let known = |name: &str| {
        let zone = name.parse::<Tz>().ok()?;
        Some(FileZone::known(name, zone))
    };
    // Exchange appends a number to the names of zones that it has merged.
    let unnumbered = bare.trim_end_matches(|it: char| it.is_ascii_digit());
    let unnumbered = unnumbered.strip_suffix(' ').filter(|it| !it.is_empty());
    known(bare)
        .or_else(|| bare.eq_ignore_ascii_case("utc").then(|| FileZone::fixed(0)))
        .or_else(|| offset_of(bare).map(FileZone::fixed))
        .or_else(|| in_any_case(bare))
        .or_else(|| unnumbered.and_then(known))
}

/// The zone of a place, ignoring case.
fn in_any_case(name: &str) -> Option<FileZone> {
    let mut begins = true;
    let letters = name.chars().map(|letter| {
        let letter = match begins {
            true => letter.to_ascii_uppercase(),
            false => letter.to_ascii_lowercase(),
        };
        begins = matches!(letter, '/' | '_' | '-');
        letter
    });
    let mut written = letters.collect::<String>();
    // The database's spelling: Europe/Isle_of_Man.
    for small in ["_of_", "_es_", "-au-"] {
        let capital = format!("{}{}", small[..2].to_ascii_uppercase(), &small[2..]);
        written = written.replace(&capital, small);
    }
    if let Some(rest) = written.strip_prefix("Us/") {
        written = format!("US/{rest}");
    }
    let mut forms = [written, name.to_ascii_uppercase()].into_iter();
    let found = forms.find_map(|form| {
        let zone = form.parse::<Tz>().ok()?;
        Some(FileZone::known(form, zone))
    });
    found.filter(|_| name.contains('/'))
}

/// Seconds east of UTC of a name such as `GMT+05:00`, `UTC-3`, or `+0530`.
fn offset_of(name: &str) -> Option<i64> {
    let upper = name.to_ascii_uppercase();
    let rest = ["GMT", "UTC"].iter().find_map(|it| upper.strip_prefix(it));
    let rest = rest.unwrap_or(&upper);
    let (sign, digits) = match rest.as_bytes().first()? {
        b'+' => (1, &rest[1..]),
        b'-' => (-1, &rest[1..]),
        _ => return None,
    };
    let (hours, minutes) = match (digits.split_once([':', '.']), digits.len()) {
        (Some((hours, minutes)), _) if minutes.len() == 2 => (hours, minutes),
        (None, 4) => digits.split_at_checked(2)?,
        (None, 1 | 2) => (digits, "0"),
        _ => return None,
    };
    let number = |text: &str| match text.len() {
        1 | 2 if text.bytes().all(|it| it.is_ascii_digit()) => text.parse::<i64>().ok(),
        _ => None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// The range, in seconds since 1970, in which an object's zones matter: for recurring objects, a few years from when
/// they were written, because their VTIMEZONEs describe the rules known then.
fn taking_place(calendar: &ICalendar) -> Range<i64> {
    const AHEAD: i64 = 5 * YEAR_S;
    let (mut range, mut stamp, mut recurs): (Option<Range<i64>>, _, _) = (None, 0, false);
    let is_of_zone = |it: &Component| {
        matches!(
            it,
            Component::VTimezone | Component::Standard | Component::Daylight
        )
    };
    let components = calendar.components.iter();
    for component in components.filter(|it| !is_of_zone(&it.component_type)) {
        for entry in &component.entries {
            recurs |= matches!(entry.name, Property::Rrule | Property::Rdate);
            let at = entry.values.first();
            let at = at.and_then(ICalendarValue::as_partial_date_time);
            let Some(at) = at.and_then(plain_time).map(time::seconds) else {
                continue;
            };
            match entry.name {
                Property::Dtstamp | Property::LastModified => stamp = stamp.max(at),
                Property::Dtstart | Property::Dtend | Property::Due | Property::RecurrenceId => {
                    let known = range.get_or_insert(at..at);
                    *known = known.start.min(at)..known.end.max(at);
                }
                _ => {}
            }
        }
    }
    let range = range.unwrap_or(stamp..stamp);
    match recurs {
        true => {
            let start = range.start.max(stamp - YEAR_S);
            start..range.end.max(start) + AHEAD
        }
        false => range,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_from_names() {
        for (name, expected) in [
            ("GMT+05:00", Some(18_000)),
            ("UTC-3", Some(-10_800)),
            ("utc+0530", Some(19_800)),
            ("GMT-03.30", Some(-12_600)),
            ("+01:00", Some(3600)),
            ("GMT+15:00", None),
            ("GMT+5:60", None),
            ("GMT5", None),
            ("Etc/GMT+5", None),
            ("GMT+é:00", None),
            ("", None),
        ] {
            assert_eq!(offset_of(name), expected, "{name}");
        }
    }

    #[test]
    fn names_mean_zones() {
        for (name, expected) in [
            ("Europe/Berlin", Some("Europe/Berlin")),
            ("europe/berlin", Some("Europe/Berlin")),
            ("AMERICA/PORT-AU-PRINCE", Some("America/Port-au-Prince")),
            ("america/port-au-prince", Some("America/Port-au-Prince")),
            ("us/eastern", Some("US/Eastern")),
            ("GMT+05:00", Some("Etc/GMT-5")),
            ("tzone://Microsoft/Utc", Some("Etc/UTC")),
            (
                "tzone://Microsoft/Pacific Standard Time",
                Some("Pacific Standard Time"),
            ),
            ("W. Europe Standard Time 1", Some("W. Europe Standard Time")),
            ("W. Europe Standard Time", Some("W. Europe Standard Time")),
            ("Middle/Earth", None),
            ("Ship Time", None),
            ("1", None),
            ("", None),
        ] {
            let found = by_name(name);
            let found = found.map(|zone| zone.name.unwrap_or_default());
            assert_eq!(found.as_deref(), expected, "{name}");
            if let Some(name) = found {
                assert!(name.parse::<Tz>().is_ok(), "{name}");
            }
        }
        assert!(by_name("UTC+05:30").is_some_and(|zone| zone.name.is_none()));
    }

    #[test]
    fn every_place_is_one_of_the_database() {
        for place in PLACES {
            assert!(by_name_of_place(place).is_some(), "{place}");
        }
    }
}
