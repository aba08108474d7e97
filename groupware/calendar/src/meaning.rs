//! What the names of time zones mean in a calendar that is being written: who else names one there has to mean the
//! same, at least while the event takes place.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use calcard::common::timezone::Tz;
use calcard::icalendar::timezone::TzResolver;
use calcard::icalendar::{
    ICalendarComponent, ICalendarComponentType as Component, ICalendarProperty as Property,
    ICalendarValue,
};
use jiff::civil::DateTime;

use crate::icalendar::moment_of;
use crate::imported::recurrence;
use crate::imported::view::{self, local};
use crate::{Moment, time, zones};

/// Most bytes of descriptions in a calendar: they are in memory while it is written.
const BYTES: usize = 4 << 20;
/// A year, by whole days.
const YEAR_S: i64 = 366 * 86_400;
/// How far ahead of the first event in it a time zone is described.
const AHEAD_S: i64 = 10 * YEAR_S;
/// Most bytes of a description that is compared: those that tell all changes of a zone since there are any have 20 KiB.
const COMPARED_BYTES: usize = 64 * 1024;
/// Most onsets of a description that is compared.
const ONSETS: usize = 20_000;
/// What may be compared while a part of a file is written: rules of descriptions, and KiB of them.
const COMPARED: usize = 2_000;
/// What it counts as to describe a zone for that.
const DESCRIBED: usize = 4;

/// What an entry says of a time zone that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// These lines describe it: a VTIMEZONE.
    Lines(String),
    /// Its name alone.
    ByName,
    /// It is the one of the zone database, which is described for those who have none.
    Known,
}

/// What may still be compared. Whoever brings descriptions chooses how long it takes to find out what they mean; what
/// isn't compared is in a calendar of its own, where it means what it says in any case.
#[derive(Debug)]
pub(crate) struct Budget(Cell<usize>);

impl Budget {
    pub(crate) fn of_a_part() -> Self {
        Self(Cell::new(COMPARED))
    }

    /// Whether there was so much left, which is gone then.
    fn takes(&self, much: usize) -> bool {
        let left = self.0.get().checked_sub(much);
        if let Some(left) = left {
            self.0.set(left);
        }
        left.is_some()
    }
}

/// The time zones of a calendar.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    named: BTreeMap<String, Zone>,
    bytes: usize,
}

/// A time zone of a calendar.
#[derive(Debug)]
struct Zone {
    /// How it is described, if it is.
    lines: Option<String>,
    /// When that is known to be what the zone database says.
    known: Range<i64>,
}

impl Zones {
    /// Takes in the time zones of an entry, and gives the lines that describe those that weren't described; `None` if
    /// it can't be in this calendar, since a name means something else there.
    pub(crate) fn take(
        &mut self,
        zones: &[(String, Told)],
        reach: &dyn Fn() -> Range<i64>,
        budget: &Budget,
    ) -> Option<String> {
        let has_room = self.bytes < BYTES || self.named.is_empty();
        let fits = |(name, told): &(String, Told)| match self.named.get(name) {
            None => has_room,
            Some(zone) => zone.means(name, told, reach, budget),
        };
        if !zones.iter().all(fits) {
            return None;
        }
        let mut described = String::new();
        for (name, told) in zones {
            if !self.named.contains_key(name) {
                let zone = Zone::new(name, told, reach);
                let lines = zone.lines.as_deref().unwrap_or_default();
                described.push_str(lines);
                self.bytes += lines.len() + name.len();
                self.named.insert(name.clone(), zone);
            }
        }
        Some(described)
    }
}

impl Zone {
    fn new(name: &str, told: &Told, reach: &dyn Fn() -> Range<i64>) -> Self {
        let nowhere = 0..0;
        match told {
            Told::Lines(lines) => Self {
                lines: Some(lines.clone()),
                known: nowhere,
            },
            Told::ByName => Self {
                lines: None,
                known: nowhere,
            },
            Told::Known => {
                let reach = reach();
                // Most events lie in it, whichever is the first.
                let known = reach.start.min(0)..reach.end.saturating_add(AHEAD_S);
                Self {
                    lines: zones::described(name, &known),
                    known,
                }
            }
        }
    }

    /// Whether this is what somebody means who says this of a zone of its name.
    fn means(
        &self,
        name: &str,
        told: &Told,
        reach: &dyn Fn() -> Range<i64>,
        budget: &Budget,
    ) -> bool {
        let Some(lines) = &self.lines else {
            return *told == Told::ByName;
        };
        let (said, range) = match told {
            Told::Lines(said) if said == lines => return true,
            Told::Lines(said) => (Cow::Borrowed(said), reach()),
            Told::ByName | Told::Known => {
                let range = reach();
                if self.known.start <= range.start && range.end <= self.known.end {
                    return true;
                }
                if !budget.takes(DESCRIBED) {
                    return false;
                }
                match zones::described(name, &range) {
                    Some(said) => (Cow::Owned(said), range),
                    None => return false,
                }
            }
        };
        let meaning = Meaning::of(name, lines, &range, budget);
        meaning.is_some() && meaning == Meaning::of(name, &said, &range, budget)
    }
}

/// What a description comes to in a range of seconds since 1970.
#[derive(Debug, PartialEq, Eq)]
struct Meaning {
    /// The zone that readers take it for who look at names.
    zone: Option<Tz>,
    /// From when on which offset from UTC holds, in seconds; the first from the beginning on.
    offsets: Vec<(i64, i64)>,
}

/// A change of a zone's offset.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Onset {
    at: i64,
    from: i64,
    to: i64,
}

impl Meaning {
    /// `None` if that can't be told, or would take too long.
    fn of(name: &str, lines: &str, range: &Range<i64>, budget: &Budget) -> Option<Self> {
        if lines.len() > COMPARED_BYTES || !budget.takes(1 + lines.len() / 1024) {
            return None;
        }
        let whole = format!("BEGIN:VCALENDAR\r\n{lines}END:VCALENDAR\r\n");
        let calendar = view::parse(&whole).ok()?;
        let described = calendar.timezones().next()?;
        let by_lines = || described.timezone().map(|(_, zone)| zone);
        let resolver = calendar.build_tz_resolver();
        let mut onsets = Vec::new();
        for id in &described.component_ids {
            let observance = calendar.components.get(*id as usize)?;
            if matches!(
                observance.component_type,
                Component::Standard | Component::Daylight
            ) {
                if !budget.takes(observance.properties(&Property::Rrule).count()) {
                    return None;
                }
                add_onsets(observance, &resolver, range, &mut onsets)?;
            }
        }
        onsets.sort_unstable();
        let before = onsets.iter().rfind(|onset| onset.at <= range.start);
        let first = before.map(|onset| onset.to);
        let first = first.or_else(|| onsets.first().map(|onset| onset.from))?;
        let mut offsets = vec![(range.start, first)];
        for onset in onsets {
            let is_in = range.start < onset.at && onset.at <= range.end;
            if is_in && offsets.last().is_none_or(|(_, last)| *last != onset.to) {
                offsets.push((onset.at, onset.to));
            }
        }
        Some(Self {
            zone: name.parse().ok().or_else(by_lines),
            offsets,
        })
    }
}

/// Adds when one of a zone's times begins to hold, in a range and before; `None` if that can't be told.
fn add_onsets(
    observance: &ICalendarComponent,
    resolver: &TzResolver<&str>,
    range: &Range<i64>,
    to: &mut Vec<Onset>,
) -> Option<()> {
    let offset = |property: &Property| {
        let value = observance.property(property)?.values.first()?;
        let value = value.as_partial_date_time()?;
        let seconds =
            i64::from(value.tz_hour?) * 3600 + i64::from(value.tz_minute.unwrap_or(0)) * 60;
        Some(if value.tz_minus { -seconds } else { seconds })
    };
    let offsets = (
        offset(&Property::Tzoffsetfrom)?,
        offset(&Property::Tzoffsetto)?,
    );
    let known = to.len();
    let mut add = |at: DateTime| {
        to.push(Onset {
            at: time::seconds(at) - offsets.0,
            from: offsets.0,
            to: offsets.1,
        });
    };
    let moment =
        |value: &ICalendarValue| moment_of(value.as_partial_date_time()?, None, resolver)?.ok();
    let first = observance.property(&Property::Dtstart)?.values.first()?;
    let first = local(&moment(first)?);
    add(first);
    for entry in observance.properties(&Property::Rdate) {
        for value in &entry.values {
            add(local(&moment(value)?));
        }
    }
    let mut left = ONSETS.checked_sub(known)?;
    for entry in observance.properties(&Property::Rrule) {
        let ICalendarValue::RecurrenceRule(rule) = entry.values.first()? else {
            return None;
        };
        let until = match &rule.until {
            None => None,
            Some(until) => Some(match moment_of(until, None, resolver)?.ok()? {
                Moment::Utc(at) => time::utc(time::seconds(at) + offsets.0),
                other => local(&other),
            }),
        };
        // What holds as the range begins began with the last onset before.
        let last = until.map_or(range.start, |until| time::seconds(until).min(range.start));
        let from = time::utc(last.saturating_sub(3 * YEAR_S));
        let around = from..time::utc(range.end.saturating_add(YEAR_S));
        let starts = recurrence::starts(rule, first, until, &around)?;
        // Those of all rules together: a description may have thousands.
        if starts.is_cut || starts.at.len() > left {
            return None;
        }
        left -= starts.at.len();
        starts.at.into_iter().for_each(&mut add);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zone in which so many times begin each day.
    fn daily(times: usize) -> String {
        let time = "BEGIN:STANDARD\r\nDTSTART:19700101T000000\r\nTZOFFSETFROM:+0100\r\n\
            TZOFFSETTO:+0100\r\nRRULE:FREQ=DAILY\r\nEND:STANDARD\r\n";
        let times = time.repeat(times);
        format!("BEGIN:VTIMEZONE\r\nTZID:X\r\n{times}END:VTIMEZONE\r\n")
    }

    #[test]
    fn the_times_of_a_zone_are_bounded_together() {
        let range = 0..30 * YEAR_S;
        let meaning = |times| Meaning::of("X", &daily(times), &range, &Budget::of_a_part());
        assert_eq!(meaning(1).unwrap().offsets, [(0, 3600)]);
        assert_eq!(meaning(2), None);
        assert_eq!(meaning(2_300), None);
    }

    #[test]
    fn what_is_compared_is_bounded() {
        let range = 0..YEAR_S;
        let budget = Budget(Cell::new(3));
        let meaning = || Meaning::of("X", &daily(1), &range, &budget);
        assert!(meaning().is_some());
        assert_eq!(meaning(), None);
        let zone = Zone {
            lines: Some(daily(1)),
            known: 0..0,
        };
        let said = Told::Lines(daily(2));
        let means = |told: &Told, budget: &Budget| zone.means("X", told, &|| range.clone(), budget);
        assert!(means(&said, &Budget::of_a_part()));
        assert!(!means(&said, &budget));
        // What is the same by its lines is not compared.
        assert!(means(&Told::Lines(daily(1)), &budget));
    }
}
