//! Dates and times as the calendar stores, sorts, and writes them.
//!
//! Has no clock: "now" is always an argument. calcard resolves zone names, including IANA names and the usual Windows
//! and mail-client spellings.

use calcard::common::{PartialDateTime, timezone::Tz};
use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::Offset,
};
use serde::{Deserialize, Serialize};

/// A name of no known time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Unknown time zone: {0}")]
pub struct UnknownZone(String);

impl UnknownZone {
    /// The error for this zone's name, shortened to fit in a line.
    pub fn named(name: &str) -> Self {
        Self(groupware_text::shortened(name).into_owned())
    }
}

/// The start or end of an event. Build it with the constructors: they reject values that can't be sorted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// A whole day, in the reader's zone.
    Day(Date),
    /// A moment in UTC.
    Utc(DateTime),
    /// A wall-clock time in the reader's zone; sorts as if it were UTC.
    Floating(DateTime),
    /// A wall-clock time in a named zone.
    Zoned {
        /// The wall clock.
        local: DateTime,
        /// The zone's name as sent by the client.
        tzid: String,
        /// Seconds since 1970 of this moment, resolved once.
        instant: i64,
    },
}

impl Moment {
    /// A wall-clock time in the zone `tzid`.
    ///
    /// # Errors
    /// If the zone is unknown, or its name can't be written.
    pub fn zoned(local: DateTime, tzid: &str) -> Result<Self, UnknownZone> {
        let unknown = || UnknownZone::named(tzid);
        // calcard accepts any name that ends with a zone's name.
        if !can_name_zone(tzid) {
            return Err(unknown());
        }
        let zone: Tz = tzid.parse().map_err(|()| unknown())?;
        let instant = local_to_instant(local, zone).ok_or_else(unknown)?;
        Ok(Self::Zoned {
            local,
            tzid: tzid.to_owned(),
            instant,
        })
    }

    /// Seconds since 1970, by which the event list is sorted and filtered.
    pub fn instant(&self) -> i64 {
        match self {
            Self::Day(date) => seconds(date.to_datetime(Time::midnight())),
            Self::Utc(time) | Self::Floating(time) => seconds(*time),
            Self::Zoned { instant, .. } => *instant,
        }
    }

    /// Adds a span, keeping the kind and zone: calendar days, and exact hours, minutes, and seconds (RFC 5545 §3.3.6).
    /// `None` past the end of the calendar.
    pub fn plus(&self, span: jiff::Span) -> Option<Self> {
        match self {
            Self::Day(date) => date.checked_add(span).ok().map(Self::Day),
            Self::Utc(time) => time.checked_add(span).ok().map(Self::Utc),
            Self::Floating(time) => time.checked_add(span).ok().map(Self::Floating),
            Self::Zoned { local, tzid, .. } => {
                let day = local.checked_add(jiff::Span::new().days(span.get_days()));
                let from = Self::zoned(day.ok()?, tzid).ok()?.instant();
                let instant = from.checked_add(clock_seconds(span))?;
                let local = local_in(instant, tzid.parse().ok()?)?;
                let tzid = tzid.clone();
                Some(Self::Zoned {
                    local,
                    tzid,
                    instant,
                })
            }
        }
    }

    /// The same moment in the zone of `other`; the same wall clock if that has no zone. An edit in a form thus keeps
    /// the event's zone, whatever zone the form uses.
    #[must_use]
    pub fn in_terms_of(&self, other: &Self) -> Self {
        let instant = self.instant();
        match (other, self) {
            (Self::Floating(_), Self::Utc(clock) | Self::Zoned { local: clock, .. }) => {
                Self::Floating(*clock)
            }
            (Self::Utc(_), Self::Zoned { .. }) => Self::Utc(utc(instant)),
            (Self::Zoned { tzid, .. }, Self::Utc(_) | Self::Zoned { .. }) => {
                let zone = tzid.parse().ok();
                let local = zone.and_then(|zone| local_in(instant, zone));
                local.map_or_else(
                    || self.clone(),
                    |local| Self::Zoned {
                        local,
                        tzid: tzid.clone(),
                        instant,
                    },
                )
            }
            _ => self.clone(),
        }
    }

    /// Returns true if this is a whole day.
    pub fn is_day(&self) -> bool {
        matches!(self, Self::Day(_))
    }

    /// The zone's name, if the moment has one.
    pub fn tzid(&self) -> Option<&str> {
        match self {
            Self::Zoned { tzid, .. } => Some(tzid),
            _ => None,
        }
    }
}

/// The hours, minutes, and seconds of a span, in seconds.
pub fn clock_seconds(span: jiff::Span) -> i64 {
    i64::from(span.get_hours()) * 3600 + span.get_minutes() * 60 + span.get_seconds()
}

/// Returns true if a text can be a zone's name in an iCalendar line: RFC 5545 §3.1 allows no quotation marks and line
/// ends in a parameter.
pub fn can_name_zone(tzid: &str) -> bool {
    !tzid.contains(|letter: char| letter.is_control() || letter == '"')
}

/// Seconds since 1970 of a wall clock read as UTC.
pub fn seconds(time: DateTime) -> i64 {
    const DAY: i64 = 86_400;
    let epoch = Date::constant(1970, 1, 1);
    // Differences of civil dates never fail; `Date` only holds years -9999..=9999.
    let days = (time.date() - epoch).get_days();
    i64::from(days) * DAY
        + i64::from(time.hour()) * 3600
        + i64::from(time.minute()) * 60
        + i64::from(time.second())
}

/// The instant of a wall clock in a zone. In a gap (clocks go forward) and in a fold (clocks go back), the offset
/// before the change applies, as RFC 5545 §3.3.5 requires.
pub fn local_to_instant(local: DateTime, zone: Tz) -> Option<i64> {
    const STEPS_HOURS: [i64; 3] = [0, 1, 24];
    STEPS_HOURS.into_iter().find_map(|hours| {
        let earlier = local.checked_sub(jiff::Span::new().hours(hours)).ok()?;
        let moment = partial(earlier).to_date_time_with_tz(zone)?;
        Some(moment.timestamp() + hours * 3600)
    })
}

/// A civil time as calcard's type, without zone.
pub fn partial(time: DateTime) -> PartialDateTime {
    PartialDateTime {
        year: u16::try_from(time.year()).ok(),
        month: u8::try_from(time.month()).ok(),
        day: u8::try_from(time.day()).ok(),
        hour: u8::try_from(time.hour()).ok(),
        minute: u8::try_from(time.minute()).ok(),
        second: u8::try_from(time.second()).ok(),
        ..PartialDateTime::default()
    }
}

/// The UTC wall clock of a second; seconds outside the years 1..=9999 are clamped.
pub fn utc(second: i64) -> DateTime {
    let first = DateTime::constant(1, 1, 1, 0, 0, 0, 0);
    let stamp = Timestamp::from_second(second).unwrap_or(if second < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    });
    Offset::UTC.to_datetime(stamp).max(first)
}

/// The wall clock of a second in a zone; `None` past the end of the calendar.
pub fn local_in(second: i64, zone: Tz) -> Option<DateTime> {
    let moment = partial(utc(second)).to_date_time_with_tz(Tz::UTC)?;
    let local = moment.with_timezone(&zone).naive_local();
    Some(utc(local.and_utc().timestamp()))
}

/// Parses the output of [`compact`].
pub fn parse_compact(text: &str) -> Option<i64> {
    let part = |range: std::ops::Range<usize>| text.get(range);
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    if (date.len(), clock.len()) != (8, 6) {
        return None;
    }
    parse_extended(&format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0..4)?,
        part(4..6)?,
        part(6..8)?,
        part(9..11)?,
        part(11..13)?,
        part(13..15)?,
    ))
}

/// Sixteen bytes, `20260105T090000Z`, which sort by time.
pub fn compact(second: i64) -> String {
    ascii(&compact_bytes(second))
}

/// The same, for keys of records.
pub fn compact_bytes(second: i64) -> [u8; 16] {
    let (t, mut bytes) = (utc(second), *b"00000000T000000Z");
    let (date, clock) = (t.date(), t.time());
    put_year(&mut bytes, date.year());
    put(&mut bytes, [(4, date.month()), (6, date.day())]);
    put(&mut bytes, [(9, clock.hour()), (11, clock.minute())]);
    put(&mut bytes, [(13, clock.second())]);
    bytes
}

/// `2026-01-05T09:00:00Z`.
pub fn extended(second: i64) -> String {
    let mut text = Vec::with_capacity(20);
    push_wall_clock(&mut text, utc(second));
    text.push(b'Z');
    ascii(&text)
}

/// Appends `2026-01-05T09:00:00`, for the years 0 to 9999.
pub fn push_wall_clock(to: &mut Vec<u8>, time: DateTime) {
    to.extend_from_slice(&date_bytes(time.date()));
    to.push(b'T');
    to.extend_from_slice(&clock_bytes(time.time()));
}

/// `2026-01-05`, for the years 0 to 9999.
pub fn date_bytes(date: Date) -> [u8; 10] {
    let mut bytes = *b"0000-00-00";
    put_year(&mut bytes, date.year());
    put(&mut bytes, [(5, date.month()), (8, date.day())]);
    bytes
}

/// `09:00:00`.
pub fn clock_bytes(clock: Time) -> [u8; 8] {
    let mut bytes = *b"00:00:00";
    put(&mut bytes, [(0, clock.hour()), (3, clock.minute())]);
    put(&mut bytes, [(6, clock.second())]);
    bytes
}

fn put_year(to: &mut [u8], year: i16) {
    let (century, year) = (year / 100, year % 100);
    let part = |number: i16| i8::try_from(number).unwrap_or_default();
    put(to, [(0, part(century)), (2, part(year))]);
}

/// Writes numbers from 0 to 99 at their offsets, two digits each.
fn put<const COUNT: usize>(to: &mut [u8], numbers: [(usize, i8); COUNT]) {
    for (at, number) in numbers {
        let number = number.unsigned_abs();
        to[at] = b'0' + number / 10;
        to[at + 1] = b'0' + number % 10;
    }
}

fn ascii(digits: &[u8]) -> String {
    String::from_utf8_lossy(digits).into_owned()
}

/// Reads exactly `yyyy-MM-ddTHH:mm:ssZ`, the only form of Domino's query parameters.
pub fn parse_extended(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let time = rest.strip_prefix('T')?.strip_suffix('Z')?;
    Some(seconds(parse_date(date)?.to_datetime(parse_time(time)?)))
}

/// Reads exactly `yyyy-MM-dd`, years 1 to 9999.
pub fn parse_date(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = i16::try_from(digits(&bytes[..4])?).ok()?;
    let month = i8::try_from(digits(&bytes[5..7])?).ok()?;
    let day = i8::try_from(digits(&bytes[8..])?).ok()?;
    (year >= 1).then(|| Date::new(year, month, day).ok())?
}

/// Reads exactly `HH:mm:ss`; a leap second reads as 59.
pub fn parse_time(text: &str) -> Option<Time> {
    let bytes = text.as_bytes();
    if bytes.len() != 8 || bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    let part = |range: std::ops::Range<usize>| i8::try_from(digits(&bytes[range])?).ok();
    let second = part(6..8)?;
    let second = if second == 60 { 59 } else { second };
    Time::new(part(0..2)?, part(3..5)?, second, 0).ok()
}

/// A number of ASCII digits only: no sign, no space.
fn digits(bytes: &[u8]) -> Option<u32> {
    bytes.iter().try_fold(0u32, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + u32::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime {
        text.parse().unwrap()
    }

    #[test]
    fn only_the_one_form_is_read() {
        assert_eq!(parse_extended("1970-01-02T00:00:01Z"), Some(86_401));
        for wrong in [
            "",
            "2026-01-05",
            "2026-01-05T09:00:00",
            "2026-01-05T09:00Z",
            "2026-13-05T09:00:00Z",
            "2026-02-30T09:00:00Z",
            "2026-01-05T24:00:00Z",
            "2026-01-05t09:00:00z",
            "+026-01-05T09:00:00Z",
            "0000-01-05T09:00:00Z",
            "2026-01-05T09:00:00+01:00",
            "2026-01-05T09:00:00.5Z",
            "２026-01-05T09:00:00Z",
        ] {
            assert_eq!(parse_extended(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn zones_follow_daylight_saving() {
        let summer = Moment::zoned(at("2026-07-01T09:00:00"), "Europe/Berlin").unwrap();
        assert_eq!(extended(summer.instant()), "2026-07-01T07:00:00Z");
        let winter = Moment::zoned(at("2026-01-05T09:00:00"), "Europe/Berlin").unwrap();
        assert_eq!(extended(winter.instant()), "2026-01-05T08:00:00Z");
    }

    #[test]
    fn gaps_and_folds_take_the_offset_before_the_change() {
        let gap = Moment::zoned(at("2026-03-29T02:30:00"), "Europe/Berlin").unwrap();
        assert_eq!(extended(gap.instant()), "2026-03-29T01:30:00Z");
        let fold = Moment::zoned(at("2026-10-25T02:30:00"), "Europe/Berlin").unwrap();
        assert_eq!(extended(fold.instant()), "2026-10-25T00:30:00Z");
    }

    #[test]
    fn unknown_zones_are_refused() {
        for name in [
            "Middle/Earth",
            "/a\"/b/Europe/Berlin",
            "/a\r\nX:/b/Europe/Berlin",
            "/a\u{7f}/b/Europe/Berlin",
        ] {
            assert!(
                Moment::zoned(at("2026-01-05T09:00:00"), name).is_err(),
                "{name:?}"
            );
        }
        Moment::zoned(at("2026-01-05T09:00:00"), "/a/b/Europe/Berlin").unwrap();
    }

    proptest! {
        #[test]
        fn parse_reads_what_extended_writes(second in -62_135_596_800i64..=253_402_207_200) {
            prop_assert_eq!(parse_extended(&extended(second)), Some(second));
            prop_assert_eq!(parse_compact(&compact(second)), Some(second));
        }

        #[test]
        fn compact_sorts_as_time_does(a in any::<i64>(), b in -62_135_596_800i64..=253_402_207_200) {
            let clamped = a.clamp(-62_135_596_800, 253_402_207_200);
            prop_assert_eq!(compact(clamped).cmp(&compact(b)), clamped.cmp(&b));
            prop_assert_eq!(compact(a).len(), 16);
        }
    }
}
