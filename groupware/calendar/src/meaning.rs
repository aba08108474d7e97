//! The definitions of time zone names in a calendar that is being written: all entries that name a zone must agree on
//! it, at least during their events.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use calcard::common::timezone::Tz;

use crate::imported::view;
use crate::zones;
use groupware_recurrence::{Transitions, YEAR_S};

/// The maximum bytes of zone descriptions in a calendar: they are in memory while it is written.
const BYTES: usize = 4 << 20;
/// How far ahead of its first event a time zone is described.
const AHEAD_S: i64 = 10 * YEAR_S;
/// The maximum size of a description to compare: one with all known changes of a zone has 20 KiB.
const COMPARED_BYTES: usize = 64 * 1024;
/// The budget of comparisons for one part of a file: rules of descriptions, plus their size in KiB.
const COMPARED: usize = 2_000;
/// The cost of describing a zone for a comparison.
const DESCRIBED: usize = 4;

/// An entry's definition of a time zone that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ZoneDefinition {
    /// Its VTIMEZONE.
    Lines(String),
    /// Only its name.
    ByName,
    /// The zone of the database, which is described for readers without one.
    Known,
}

/// The remaining budget of comparisons. The author of a description determines how long a comparison takes. An entry
/// that isn't compared goes into a calendar of its own, where its definitions hold in any case.
#[derive(Debug)]
pub(crate) struct Budget(Cell<usize>);

impl Budget {
    pub(crate) fn of_a_part() -> Self {
        Self(Cell::new(COMPARED))
    }

    /// Takes this much of the budget; returns false if less is left.
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
    /// Its VTIMEZONE, if it has one.
    lines: Option<String>,
    /// The range in which that is known to equal the zone database.
    known: Range<i64>,
}

impl Zones {
    /// Adds the time zones of an entry and returns the descriptions of new ones; `None` if the entry can't be in this
    /// calendar, because a name is defined differently there.
    pub(crate) fn take(
        &mut self,
        zones: &[(String, ZoneDefinition)],
        reach: &dyn Fn() -> Range<i64>,
        budget: &Budget,
    ) -> Option<String> {
        let has_room = self.bytes < BYTES || self.named.is_empty();
        let fits = |(name, told): &(String, ZoneDefinition)| match self.named.get(name) {
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
    fn new(name: &str, told: &ZoneDefinition, reach: &dyn Fn() -> Range<i64>) -> Self {
        let nowhere = 0..0;
        match told {
            ZoneDefinition::Lines(lines) => Self {
                lines: Some(lines.clone()),
                known: nowhere,
            },
            ZoneDefinition::ByName => Self {
                lines: None,
                known: nowhere,
            },
            ZoneDefinition::Known => {
                let reach = reach();
                // Most events are within it, whichever is the first.
                let known = reach.start.min(0)..reach.end.saturating_add(AHEAD_S);
                Self {
                    lines: zones::described(name, &known),
                    known,
                }
            }
        }
    }

    /// Returns true if this zone equals the definition `told` of the same name.
    fn means(
        &self,
        name: &str,
        told: &ZoneDefinition,
        reach: &dyn Fn() -> Range<i64>,
        budget: &Budget,
    ) -> bool {
        let Some(lines) = &self.lines else {
            return *told == ZoneDefinition::ByName;
        };
        let (said, range) = match told {
            ZoneDefinition::Lines(said) if said == lines => return true,
            ZoneDefinition::Lines(said) => (Cow::Borrowed(said), reach()),
            ZoneDefinition::ByName | ZoneDefinition::Known => {
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

/// The meaning of a description in a range of seconds since 1970.
#[derive(Debug, PartialEq, Eq)]
struct Meaning {
    /// The zone that readers derive from the name alone.
    zone: Option<Tz>,
    offsets: Transitions,
}

impl Meaning {
    /// `None` if that is unclear, or would take too long.
    fn of(name: &str, lines: &str, range: &Range<i64>, budget: &Budget) -> Option<Self> {
        if lines.len() > COMPARED_BYTES || !budget.takes(1 + lines.len() / 1024) {
            return None;
        }
        let whole = format!("BEGIN:VCALENDAR\r\n{lines}END:VCALENDAR\r\n");
        let calendar = view::parse(&whole).ok()?;
        let described = calendar.timezones().next()?;
        let by_lines = || described.timezone().map(|(_, zone)| zone);
        let offsets = Transitions::of(&calendar, described, range, &|rules| budget.takes(rules))?;
        Some(Self {
            zone: name.parse().ok().or_else(by_lines),
            offsets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zone with this many changes each day.
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
        assert_eq!(meaning(1).unwrap().offsets.only(), Some(3600));
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
        let said = ZoneDefinition::Lines(daily(2));
        let means = |told: &ZoneDefinition, budget: &Budget| {
            zone.means("X", told, &|| range.clone(), budget)
        };
        assert!(means(&said, &Budget::of_a_part()));
        assert!(!means(&said, &budget));
        // Equal lines are not compared further.
        assert!(means(&ZoneDefinition::Lines(daily(1)), &budget));
    }
}
