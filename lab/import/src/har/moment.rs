//! Parses the times of requests, in the forms of all recorders.

use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use jiff::{Timestamp, fmt::rfc2822};

/// The earliest valid time: a recorder without a clock writes zero, which is 1970.
const EARLIEST_MS: f64 = 631_152_000_000.0;
/// The year 3000; larger numbers are no milliseconds.
const LATEST_MS: f64 = 32_503_680_000_000.0;
/// Forms without a zone besides ISO 8601.
const FORMS: [&str; 4] = [
    "%Y/%m/%d %H:%M:%S%.f",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
];

/// A time as written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Written {
    /// With its zone.
    Zoned(Timestamp, Offset),
    /// Without a zone: local time.
    Local(DateTime),
    Unknown,
}

/// Times in the order of the recording.
#[derive(Debug, Default)]
pub(super) struct Moments(Vec<Written>);

/// The time of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Placed {
    /// Milliseconds since 1970.
    pub(super) ms: f64,
    /// True if the recording states it.
    pub(super) is_known: bool,
}

impl Moments {
    pub(super) fn push(&mut self, text: &str) {
        self.0.push(written(text.trim()));
    }

    /// The number of unreadable ones.
    pub(super) fn unknown(&self) -> usize {
        let unknown = self.0.iter().filter(|one| **one == Written::Unknown);
        unknown.count()
    }

    /// All of them on one timeline. A time without a zone uses the last known zone, or else the next; an unreadable one
    /// uses the time before it, or else the next.
    pub(super) fn placed(&self) -> Vec<Placed> {
        let zones = self.0.iter().map(|one| match one {
            Written::Zoned(_, offset) => Some(*offset),
            Written::Local(_) | Written::Unknown => None,
        });
        let zones = filled(zones.collect(), Offset::UTC);
        let known = self.0.iter().zip(zones).map(|(one, zone)| match one {
            Written::Zoned(at, _) => Some(at.as_millisecond() as f64),
            Written::Local(at) => zone
                .to_timestamp(*at)
                .ok()
                .map(|at| at.as_millisecond() as f64),
            Written::Unknown => None,
        });
        let known: Vec<Option<f64>> = known.collect();
        let is_known: Vec<bool> = known.iter().map(Option::is_some).collect();
        let ms = filled(known, 0.0).into_iter();
        ms.zip(is_known)
            .map(|(ms, is_known)| Placed { ms, is_known })
            .collect()
    }
}

/// Each gap filled with the value before it, or else with the first one.
fn filled<T: Copy>(values: Vec<Option<T>>, otherwise: T) -> Vec<T> {
    let mut last = values.iter().flatten().next().copied().unwrap_or(otherwise);
    let fill = |value: Option<T>| {
        last = value.unwrap_or(last);
        last
    };
    values.into_iter().map(fill).collect()
}

fn written(text: &str) -> Written {
    let read = zoned(text)
        .or_else(|| of_number(text))
        .or_else(|| local(text).map(Written::Local));
    read.filter(is_of_the_web).unwrap_or(Written::Unknown)
}

fn is_of_the_web(written: &Written) -> bool {
    let ms = match written {
        Written::Zoned(at, _) => at.as_millisecond(),
        Written::Local(at) => Offset::UTC
            .to_timestamp(*at)
            .map_or(0, Timestamp::as_millisecond),
        Written::Unknown => 0,
    };
    (EARLIEST_MS..LATEST_MS).contains(&(ms as f64))
}

/// RFC 3339 and similar forms, and the form of mail and HTTP.
fn zoned(text: &str) -> Option<Written> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(Written::Zoned(at, offset(text)));
    }
    // `… +02:00`: a space before the zone.
    if let Some((before, zone)) = text.rsplit_once(' ')
        && zone.starts_with(['+', '-', 'Z'])
        && let joined = format!("{}{zone}", before.trim_end())
        && let Ok(at) = joined.parse::<Timestamp>()
    {
        return Some(Written::Zoned(at, offset(&joined)));
    }
    let mail = rfc2822::DateTimeParser::new().parse_zoned(text).ok()?;
    Some(Written::Zoned(mail.timestamp(), mail.offset()))
}

/// The offset at the end of a time.
fn offset(text: &str) -> Offset {
    let pieces = Pieces::parse(text).ok();
    let offset = pieces.and_then(|pieces| pieces.to_numeric_offset());
    offset.unwrap_or(Offset::UTC)
}

/// Seconds or milliseconds since 1970.
fn of_number(text: &str) -> Option<Written> {
    let number: f64 = text.parse().ok()?;
    let ms = [number, number * 1e3]
        .into_iter()
        .find(|ms| (EARLIEST_MS..LATEST_MS).contains(ms))?;
    let at = Timestamp::from_millisecond(ms as i64).ok()?;
    Some(Written::Zoned(at, Offset::UTC))
}

fn local(text: &str) -> Option<DateTime> {
    let read = text.parse::<DateTime>().ok().filter(|_| text.contains(':'));
    read.or_else(|| {
        let read = |form: &&str| DateTime::strptime(form, text).ok();
        FORMS.iter().find_map(read)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(texts: &[&str]) -> Vec<Placed> {
        let mut moments = Moments::default();
        texts.iter().for_each(|text| moments.push(text));
        moments.placed()
    }

    #[test]
    fn forms_of_one_moment_are_one_moment() {
        const AT: f64 = 1_773_478_805_000.0;
        for text in [
            "2026-03-14T09:00:05Z",
            "2026-03-14T09:00:05.000+00:00",
            "2026-03-14t11:00:05+0200",
            "2026-03-14 11:00:05 +02:00",
            "Sat, 14 Mar 2026 09:00:05 GMT",
            "1773478805000",
            "1773478805",
            "2026-03-14T09:00:05",
            "2026-03-14 09:00:05",
            "2026/03/14 09:00:05",
            "03/14/2026 9:00:05 AM",
            "03/14/2026 09:00:05",
        ] {
            let placed = placed(&[text])[0];
            assert!(
                placed.is_known && (placed.ms - AT).abs() < 1.0,
                "{text}: {placed:?}"
            );
        }
    }

    #[test]
    fn a_moment_without_zone_has_that_of_its_neighbours() {
        let placed = placed(&[
            "2026-03-14T09:00:00",
            "2026-03-14T09:00:01+05:30",
            "2026-03-14T09:00:02",
        ]);
        let gaps: Vec<f64> = placed.windows(2).map(|two| two[1].ms - two[0].ms).collect();
        assert_eq!(gaps, [1000.0, 1000.0]);
    }

    #[test]
    fn what_is_no_moment_stands_where_its_neighbour_does() {
        for text in [
            "",
            "null",
            "yesterday",
            "0",
            "1970-01-01T00:00:00Z",
            "9e99",
            "-5",
        ] {
            let placed = placed(&[text, "2026-03-14T09:00:01Z", text]);
            assert_eq!(placed[0].ms, placed[1].ms, "{text}");
            assert_eq!(placed[2].ms, placed[1].ms, "{text}");
            assert!(!placed[0].is_known && placed[1].is_known);
        }
    }
}
