//! The offsets of a time zone by its VTIMEZONE (RFC 5545 §3.6.5), over a range of years.

use std::ops::Range;

use calcard::common::{PartialDateTime, timezone::Tz};
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType as Component,
    ICalendarProperty as Property, ICalendarValue,
};
use jiff::civil::DateTime;

use crate::rules;
use crate::time;
use crate::values::{self, plain_time};

/// A year, rounded up to whole days.
pub const YEAR_S: i64 = 366 * 86_400;
/// The maximum number of onsets of an expanded VTIMEZONE.
const ONSETS: usize = 20_000;

/// Offsets from UTC in seconds, each with the moment from which it applies; the first has no lower bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transitions(Vec<(i64, i64)>);

/// The start of an observance (STANDARD or DAYLIGHT).
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Onset {
    at: i64,
    from: i64,
    to: i64,
}

impl Transitions {
    /// Expands a VTIMEZONE in a range of seconds since 1970; `None` if it is invalid or has too many onsets. Each rule
    /// is expanded only if `takes` permits it.
    pub fn of(
        calendar: &ICalendar,
        described: &ICalendarComponent,
        range: &Range<i64>,
        takes: &dyn Fn(usize) -> bool,
    ) -> Option<Self> {
        let mut onsets = Vec::new();
        for id in &described.component_ids {
            let observance = calendar.components.get(*id as usize)?;
            if matches!(
                observance.component_type,
                Component::Standard | Component::Daylight
            ) {
                if !takes(observance.properties(&Property::Rrule).count()) {
                    return None;
                }
                add_onsets(observance, range, &mut onsets)?;
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
        Some(Self(offsets))
    }

    /// One offset at all times.
    pub fn fixed(offset: i64) -> Self {
        Self(vec![(i64::MIN, offset)])
    }

    /// The offset, if it never changes.
    pub fn only(&self) -> Option<i64> {
        match self.0[..] {
            [(_, offset)] => Some(offset),
            _ => None,
        }
    }

    /// The instant of a wall clock. In a gap and in a fold, the offset before the change applies: RFC 5545 §3.3.5.
    pub fn instant(&self, local: DateTime) -> i64 {
        let clock = time::seconds(local);
        let mut before = self.0.first().map_or(0, |(_, offset)| *offset);
        for (at, (start, offset)) in self.0.iter().enumerate() {
            let moment = clock.saturating_sub(*offset);
            if self.0.get(at + 1).is_none_or(|(next, _)| moment < *next) {
                let is_in_gap = at > 0 && moment < *start;
                return match is_in_gap {
                    true => clock.saturating_sub(before),
                    false => moment,
                };
            }
            before = *offset;
        }
        clock
    }

    /// The wall clock of an instant.
    pub fn local(&self, second: i64) -> DateTime {
        let holds = self.0.iter().rfind(|(at, _)| *at <= second);
        let holds = holds.or_else(|| self.0.first());
        time::utc(second.saturating_add(holds.map_or(0, |(_, offset)| *offset)))
    }

    /// Returns true if a zone of the database has the same offsets in a range.
    pub fn is_of(&self, zone: Tz, range: &Range<i64>) -> bool {
        const STEP_S: i64 = 28 * 86_400;
        let is_alike = |second: i64| time::local_in(second, zone) == Some(self.local(second));
        // Both sides of each change are compared first, because most zones already differ there.
        let changes = self.0.iter().map(|(at, _)| *at);
        let mut changes = changes.filter(|at| range.start < *at && *at <= range.end);
        let mut steps = std::iter::successors(Some(range.start), |at| at.checked_add(STEP_S))
            .take_while(|at| *at < range.end)
            .take(ONSETS);
        changes.all(|at| is_alike(at) && is_alike(at - 1))
            && steps.all(is_alike)
            && is_alike(range.end)
    }
}

/// Adds the onsets of an observance, in a range and before; `None` if it is invalid.
fn add_onsets(
    observance: &ICalendarComponent,
    range: &Range<i64>,
    to: &mut Vec<Onset>,
) -> Option<()> {
    let offset = |property: &Property| {
        let value = observance.property(property)?.values.first()?;
        values::offset(value.as_partial_date_time()?)
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
    let clock = |value: &ICalendarValue| plain_time(value.as_partial_date_time()?);
    let first = clock(observance.property(&Property::Dtstart)?.values.first()?)?;
    add(first);
    for entry in observance.properties(&Property::Rdate) {
        for value in &entry.values {
            add(clock(value)?);
        }
    }
    let mut left = ONSETS.checked_sub(known)?;
    for entry in observance.properties(&Property::Rrule) {
        let ICalendarValue::RecurrenceRule(rule) = entry.values.first()? else {
            return None;
        };
        let until = match &rule.until {
            None => None,
            Some(until) => Some(until_of(until, offsets.0)?),
        };
        // The offset at the start of the range comes from the last onset before it.
        let last = until.map_or(range.start, |until| time::seconds(until).min(range.start));
        let from = time::utc(last.saturating_sub(3 * YEAR_S));
        let around = from..time::utc(range.end.saturating_add(YEAR_S));
        let starts = rules::starts(rule, first, until, &around)?;
        // The limit is for all rules together: a VTIMEZONE may have thousands.
        if starts.is_cut || starts.at.len() > left {
            return None;
        }
        left -= starts.at.len();
        starts.at.into_iter().for_each(&mut add);
    }
    Some(())
}

/// The wall clock of a rule's UNTIL, which is in UTC: RFC 5545 §3.3.10.
fn until_of(until: &PartialDateTime, offset: i64) -> Option<DateTime> {
    let clock = plain_time(until)?;
    Some(match values::offset(until) {
        None => clock,
        Some(said) => time::utc(time::seconds(clock) - said + offset),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BERLIN: &str = "Europe/Berlin";

    /// The offsets of Brussels in 2026 and early 2027.
    fn brussels() -> Transitions {
        let (spring, autumn) = (1_774_746_000, 1_792_890_000);
        Transitions(vec![(1_767_225_600, 3600), (spring, 7200), (autumn, 3600)])
    }

    fn range() -> Range<i64> {
        1_767_225_600..1_798_761_600
    }

    #[test]
    fn zones_of_the_same_offsets_are_found() {
        let zone = |name: &str| name.parse::<Tz>().unwrap();
        for (name, is_alike) in [
            (BERLIN, true),
            ("Europe/Brussels", true),
            ("Europe/London", false),
            ("Africa/Algiers", false),
        ] {
            assert_eq!(brussels().is_of(zone(name), &range()), is_alike, "{name}");
        }
        assert!(Transitions::fixed(19_800).is_of(zone("Asia/Kolkata"), &range()));
        assert!(!Transitions::fixed(3600).is_of(zone(BERLIN), &range()));
    }

    proptest! {
        #[test]
        fn clocks_are_those_of_the_database(second in 1_767_225_600i64..1_798_761_600) {
            let zone: Tz = BERLIN.parse().unwrap();
            let clock = time::local_in(second, zone).unwrap();
            prop_assert_eq!(brussels().local(second), clock);
            let moment = crate::Moment::zoned(clock, BERLIN).unwrap();
            prop_assert_eq!(brussels().instant(clock), moment.instant());
            // Including the hour that clocks skip.
            let gap = time::utc(1_774_746_000 + 3600 + second.rem_euclid(3600));
            let moment = crate::Moment::zoned(gap, BERLIN).unwrap();
            prop_assert_eq!(brussels().instant(gap), moment.instant());
        }
    }
}
