//! Describes the time zones of an event in Domino's JSON and in iCalendar.
//!
//! Has no rules of its own: calcard derives them from the zone database.

use std::ops::Range;

use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType as Component,
    ICalendarProperty as Property,
};
use serde::Serialize;

use crate::Details;

/// How long before and after an event its zone is described.
const REACH: i64 = 366 * 86_400;
/// The maximum range of descriptions: the years from 1830 to 2130. calcard's zone database has no changes outside of
/// it, and calcard checks a zone every three days: the years 1 to 9999 would take it too long.
const DESCRIBED: Range<i64> = -4_417_977_600..5_049_129_600;

/// One zone: `{"tzid","standard":{…},"daylight":{…}}`.
#[derive(Debug, Serialize)]
pub(crate) struct Zone {
    tzid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    standard: Option<Observance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    daylight: Option<Observance>,
}

/// The standard or daylight time of a zone.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Observance {
    start: String,
    offset_from: String,
    offset_to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recurrence_rule: Option<String>,
}

/// The zones of an event, each once.
pub(crate) fn of(details: &Details) -> Vec<Zone> {
    let mut names: Vec<(&str, i64)> = Vec::new();
    for moment in [&details.start, &details.end] {
        if let Some(tzid) = moment.tzid()
            && !names.iter().any(|(known, _)| *known == tzid)
        {
            names.push((tzid, moment.instant()));
        }
    }
    names
        .into_iter()
        .map(|(tzid, at)| describe(tzid, at))
        .collect()
}

/// Adds the zone's VTIMEZONE to a calendar. A zone with a fixed offset may need none.
pub(crate) fn add(calendar: &mut ICalendar, tzid: &str, at: i64) {
    let _ = calendar.add_timezone(tzid, at - REACH, at + REACH);
}

/// The zone's VTIMEZONE as lines, for a range of moments; `None` if the zone is unknown.
pub(crate) fn described(tzid: &str, range: &Range<i64>) -> Option<String> {
    const AROUND: (&str, &str) = ("BEGIN:VCALENDAR\r\n", "END:VCALENDAR\r\n");
    let mut calendar = ICalendar {
        components: vec![ICalendarComponent::new(Component::VCalendar)],
    };
    let to = range.end.saturating_add(REACH).min(DESCRIBED.end);
    let from = range.start.saturating_sub(REACH).max(DESCRIBED.start);
    // For an event outside these years, the offset of the nearest year applies.
    let from = from.min(to);
    calendar.add_timezone(tzid, from, to)?;
    let whole = calendar.to_string();
    let zone = whole.strip_prefix(AROUND.0)?.strip_suffix(AROUND.1)?;
    Some(zone.to_owned())
}

fn describe(tzid: &str, at: i64) -> Zone {
    let mut calendar = ICalendar {
        components: vec![ICalendarComponent::new(Component::VCalendar)],
    };
    add(&mut calendar, tzid, at);
    Zone {
        tzid: tzid.to_owned(),
        standard: observance(&calendar, &Component::Standard),
        daylight: observance(&calendar, &Component::Daylight),
    }
}

/// The latest observance of a kind: the one that applies from the event on.
fn observance(calendar: &ICalendar, kind: &Component) -> Option<Observance> {
    let component = calendar
        .components
        .iter()
        .rfind(|component| component.component_type == *kind)?;
    Some(Observance {
        start: value(component, &Property::Dtstart)?,
        offset_from: value(component, &Property::Tzoffsetfrom)?,
        offset_to: value(component, &Property::Tzoffsetto)?,
        recurrence_rule: value(component, &Property::Rrule),
    })
}

/// A property's value as iCalendar writes it.
fn value(component: &ICalendarComponent, property: &Property) -> Option<String> {
    let mut line = String::new();
    component.property(property)?.write_to(&mut line).ok()?;
    let line = line.replace("\r\n ", "");
    line.split_once(':')
        .map(|(_, value)| value.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_years_are_described_than_a_zone_changes_in() {
        let second =
            |year: &str| crate::time::parse_extended(&format!("{year}-01-01T00:00:00Z")).unwrap();
        let described =
            |from: &str, to: &str| described("Europe/Berlin", &(second(from)..second(to))).unwrap();
        assert_eq!(
            (DESCRIBED.start, DESCRIBED.end),
            (second("1830"), second("2130"))
        );
        let whole = described("0001", "9999");
        let starts: Vec<&str> = whole.split("DTSTART:").skip(1).collect();
        assert!(starts.len() > 1, "{whole}");
        assert!(starts.iter().all(|start| *start >= "1830"), "{whole}");
        // Within the range, descriptions are unchanged; outside of it, the nearest year applies.
        assert!(described("1890", "1890").contains("TZOFFSETTO:+0053\r\n"));
        assert!(described("0001", "0001").contains("TZOFFSETTO:+0053\r\n"));
        assert!(described("5000", "5000").contains("TZOFFSETTO:+0100\r\n"));
    }
}
