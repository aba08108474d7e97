//! The zone of a user's times, and the formats of times and days.

use groupware_calendar::Moment;
use groupware_runtime::Caller;
use groupware_service::Service;
use groupware_store::{CommitError, StoreError};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

/// A time zone.
#[derive(Debug, Clone)]
pub(crate) struct Zone {
    name: String,
    rules: TimeZone,
}

impl Zone {
    /// The default zone.
    pub(crate) fn utc() -> Self {
        Self {
            name: "UTC".to_owned(),
            rules: TimeZone::UTC,
        }
    }

    /// Returns a zone by its IANA name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let rules = TimeZone::get(name).ok()?;
        let name = rules.iana_name()?.to_owned();
        Some(Self { name, rules })
    }

    /// Returns the names to choose from: places, and UTC.
    pub(crate) fn names() -> Vec<String> {
        let places = jiff::tz::db()
            .available()
            .map(|name| name.to_string())
            .filter(|name| name.contains('/') && !name.starts_with("Etc/"));
        let mut names: Vec<_> = ["UTC".to_owned()].into_iter().chain(places).collect();
        names[1..].sort();
        names
    }

    /// Returns the zone that a user chose.
    ///
    /// # Errors
    /// The errors of the store.
    pub(crate) fn chosen_by(service: &Service, mailbox: &str) -> Result<Option<Self>, StoreError> {
        Ok(service.zone(mailbox)?.and_then(|name| Self::parse(&name)))
    }

    /// Stores it as the user's zone.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub(crate) async fn choose(
        &self,
        service: &Service,
        caller: &Caller,
        mailbox: &str,
    ) -> Result<(), CommitError> {
        service.choose_zone(caller, (mailbox, &self.name)).await
    }

    /// Stores it as the user's zone unless one was chosen. A failure to store it, as on a full
    /// disk, is ignored.
    pub(crate) async fn suggest(&self, service: &Service, caller: &Caller, mailbox: &str) {
        if let Ok(None) = Self::chosen_by(service, mailbox) {
            let _ = self.choose(service, caller, mailbox).await;
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The displayed name: the place without its continent.
    pub(crate) fn place(&self) -> String {
        let place = self.name.rsplit('/').next().unwrap_or(&self.name);
        place.replace('_', " ")
    }

    /// Returns the local time at a second since 1970.
    pub(crate) fn clock(&self, second: i64) -> DateTime {
        let moment = Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
        self.rules.to_datetime(moment)
    }

    /// Returns the second since 1970 of a local time; the first, if there are two.
    pub(crate) fn second(&self, clock: DateTime) -> i64 {
        let moment = self.rules.to_ambiguous_timestamp(clock).compatible();
        moment.map_or_else(|_| utc_second(clock), Timestamp::as_second)
    }

    /// The first second of a day.
    pub(crate) fn day_start(&self, day: Date) -> i64 {
        self.second(day.to_datetime(Time::midnight()))
    }

    /// Returns the local time of an event's moment.
    pub(crate) fn of_moment(&self, moment: &Moment) -> DateTime {
        match moment {
            Moment::Day(day) => day.to_datetime(Time::midnight()),
            Moment::Floating(clock) => *clock,
            Moment::Utc(_) | Moment::Zoned { .. } => self.clock(moment.instant()),
        }
    }
}

fn utc_second(clock: DateTime) -> i64 {
    Offset::UTC
        .to_timestamp(clock)
        .map_or(0, Timestamp::as_second)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// The month's name.
pub(crate) fn month_name(day: Date) -> &'static str {
    let month = usize::try_from(day.month()).unwrap_or(1);
    MONTHS[(month + 11) % 12]
}

/// The number of days after Monday.
pub(crate) fn weekday(day: Date) -> usize {
    usize::try_from(day.weekday().to_monday_zero_offset()).unwrap_or(0) % 7
}

/// The weekday's name.
pub(crate) fn weekday_name(day: Date) -> &'static str {
    WEEKDAYS[weekday(day)]
}

/// `Saturday, 21 November 2026`.
pub(crate) fn long_day(day: Date) -> String {
    format!(
        "{}, {} {} {}",
        weekday_name(day),
        day.day(),
        month_name(day),
        day.year()
    )
}

/// `Sat 21 Nov`, with the year if it isn't this one.
pub(crate) fn short_day(day: Date, today: Date) -> String {
    let (weekday, month) = (&weekday_name(day)[..3], &month_name(day)[..3]);
    let text = format!("{weekday} {} {month}", day.day());
    match day.year() == today.year() {
        true => text,
        false => format!("{text} {}", day.year()),
    }
}

/// `09:05`.
pub(crate) fn time(clock: DateTime) -> String {
    format!("{:02}:{:02}", clock.hour(), clock.minute())
}

/// `2026-11-21`, as in forms and paths.
pub(crate) fn plain_day(day: Date) -> String {
    format!("{:04}-{:02}-{:02}", day.year(), day.month(), day.day())
}

/// Parses `2026-11-21`, within the years that the calendar supports.
pub(crate) fn parse_day(text: &str) -> Option<Date> {
    let day: Date = text.parse().ok()?;
    (text.len() == 10 && (1900..=9000).contains(&day.year())).then_some(day)
}

/// Parses `09:05`, or with seconds, which are dropped.
pub(crate) fn parse_time(text: &str) -> Option<Time> {
    let mut parts = text.splitn(3, ':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let number = |text: &str| match text.len() {
        1..=2 if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse::<i8>().ok(),
        _ => None,
    };
    Time::new(number(hour)?, number(minute)?, 0, 0).ok()
}

/// Returns the day so many days later.
pub(crate) fn days_after(day: Date, days: i32) -> Date {
    day.saturating_add(jiff::Span::new().days(days))
}

#[cfg(test)]
mod tests {
    use jiff::civil::{date, datetime};

    use super::*;

    #[test]
    fn clocks_go_both_ways() {
        let zone = Zone::parse("europe/berlin").unwrap();
        assert_eq!(zone.name(), "Europe/Berlin");
        let noon = datetime(2026, 7, 1, 12, 0, 0, 0);
        assert_eq!(zone.second(noon), utc_second(noon) - 7200);
        assert_eq!(zone.clock(zone.second(noon)), noon);
        assert_eq!(zone.place(), "Berlin");
        assert!(Zone::parse("Europe/Atlantis").is_none());
        assert!(Zone::parse("../../etc/passwd").is_none());
        let names = Zone::names();
        assert!(names.len() > 300 && names.iter().all(|name| Zone::parse(name).is_some()));
    }

    #[test]
    fn days_and_times_are_written_and_read() {
        let day = date(2026, 11, 21);
        assert_eq!(long_day(day), "Saturday, 21 November 2026");
        assert_eq!(short_day(day, day), "Sat 21 Nov");
        assert_eq!(short_day(day, date(2027, 1, 1)), "Sat 21 Nov 2026");
        assert_eq!(parse_day(&plain_day(day)), Some(day));
        for bad in ["", "2026-02-30", "2026-11", "20261121", "9999-12-31"] {
            assert_eq!(parse_day(bad), None, "{bad}");
        }
        assert_eq!(parse_time("09:05"), Some(Time::constant(9, 5, 0, 0)));
        for bad in ["", "9", "24:00", "-1:00", "09:5x", "09"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }
}
