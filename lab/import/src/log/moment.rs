//! Parses the times of logs, in µs since 1970.

/// A time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) us: i64,
    /// True if the log has whole seconds.
    pub(super) is_whole: bool,
}

const SECOND_US: i64 = 1_000_000;
/// The last valid second, in the year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

impl Moment {
    /// `10/Oct/2026:13:55:36 -0700`, in brackets or not.
    pub(super) fn local(text: &[u8]) -> Option<Self> {
        let text = text.strip_prefix(b"[").unwrap_or(text);
        let text = text.strip_suffix(b"]").unwrap_or(text);
        let (day, text) = number(text, 2)?;
        let text = text.strip_prefix(b"/")?;
        let (name, text) = (text.get(..3)?, text.get(3..)?);
        let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
        let (year, text) = number(text.strip_prefix(b"/")?, 4)?;
        let (second_of_day, text) = clock(text.strip_prefix(b":")?)?;
        let (fraction, text) = fraction(text);
        let offset = offset(text.strip_prefix(b" ").unwrap_or(text))?;
        Self::new((year, month, day), second_of_day - offset, fraction)
    }

    /// `2026-10-10T13:55:36.123Z`, with an offset in the place of `Z`, or a space in that of `T`.
    pub(super) fn iso(text: &[u8]) -> Option<Self> {
        let (year, text) = number(text, 4)?;
        let (month, text) = number(text.strip_prefix(b"-")?, 2)?;
        let (day, text) = number(text.strip_prefix(b"-")?, 2)?;
        let text = text.strip_prefix(b"T").or(text.strip_prefix(b" "))?;
        let (second_of_day, text) = clock(text)?;
        let (fraction, text) = fraction(text);
        Self::new((year, month, day), second_of_day - offset(text)?, fraction)
    }

    /// A decimal number since 1970; `digits` is 6 for seconds, 3 for ms, 0 for µs.
    pub(super) fn epoch(text: &[u8], digits: usize) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || whole.len() > 16 || !is_number(whole) || !is_number(rest) {
            return None;
        }
        let kept = rest.get(..digits.min(rest.len()))?;
        let us: i64 = format!("{whole}{kept:0<digits$}").parse().ok()?;
        Self::known(us, digits == 6 && rest.is_empty())
    }

    /// A number of seconds, milliseconds, microseconds, or nanoseconds since 1970, by its magnitude.
    pub(super) fn number(text: &[u8]) -> Option<Self> {
        let whole = text.iter().position(|b| *b == b'.').unwrap_or(text.len());
        match whole {
            ..=11 => Self::epoch(text, 6),
            12..=14 => Self::epoch(text, 3),
            15..=16 => Self::epoch(text, 0),
            _ => Self::epoch(&text[..whole - 3], 0),
        }
    }

    /// Any of these.
    pub(super) fn any(text: &[u8]) -> Option<Self> {
        Self::iso(text)
            .or_else(|| Self::local(text))
            .or_else(|| Self::number(text))
    }

    fn new(date: (i64, i64, i64), second_of_day: i64, fraction_us: Option<i64>) -> Option<Self> {
        let (year, month, day) = date;
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let seconds = days(year, month, day) * 86_400 + second_of_day;
        let us = seconds * SECOND_US + fraction_us.unwrap_or(0);
        Self::known(us, fraction_us.is_none())
    }

    fn known(us: i64, is_whole: bool) -> Option<Self> {
        let is_known = (0..=LAST_SECOND * SECOND_US).contains(&us);
        is_known.then_some(Self { us, is_whole })
    }
}

/// A duration in µs; `digits` as for [`Moment::epoch`].
pub(super) fn length(text: &[u8], digits: usize) -> Option<i64> {
    const LONGEST_US: i64 = 86_400 * SECOND_US;
    Moment::epoch(text, digits)
        .map(|moment| moment.us)
        .filter(|us| *us <= LONGEST_US)
}

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Parses so many digits; returns the rest.
fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (head, rest) = (text.get(..digits)?, text.get(digits..)?);
    let mut value = 0;
    for byte in head {
        value = value * 10 + i64::from(byte.is_ascii_digit().then(|| byte - b'0')?);
    }
    Some((value, rest))
}

/// `13:55:36`
fn clock(text: &[u8]) -> Option<(i64, &[u8])> {
    let (hour, text) = number(text, 2)?;
    let (minute, text) = number(text.strip_prefix(b":")?, 2)?;
    let (second, text) = number(text.strip_prefix(b":")?, 2)?;
    let is_time = hour < 24 && minute < 60 && second <= 60;
    is_time.then_some((hour * 3600 + minute * 60 + second.min(59), text))
}

/// `.123456`, in µs.
fn fraction(text: &[u8]) -> (Option<i64>, &[u8]) {
    let Some(rest) = text.strip_prefix(b".").or(text.strip_prefix(b",")) else {
        return (None, text);
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut us = 0;
    for place in 0..6 {
        let digit = rest[..digits].get(place).map_or(0, |b| b - b'0');
        us = us * 10 + i64::from(digit);
    }
    (Some(us), &rest[digits..])
}

/// `Z`, `+0200`, `+02:00`, or nothing, in seconds.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, text) = match text {
        b"" | b"Z" | b"z" => return Some(0),
        [b'+', text @ ..] => (1, text),
        [b'-', text @ ..] => (-1, text),
        _ => return None,
    };
    let (hours, text) = number(text, 2)?;
    let (minutes, text) = number(text.strip_prefix(b":").unwrap_or(text), 2)?;
    (text.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Days since 1970 of a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_all_forms_are_one() {
        let expected = Some(Moment {
            us: 1_791_640_536_000_000,
            is_whole: true,
        });
        assert_eq!(Moment::local(b"10/Oct/2026:13:55:36 +0000"), expected);
        assert_eq!(Moment::local(b"[10/Oct/2026:06:55:36 -0700]"), expected);
        for text in [
            "2026-10-10T13:55:36Z",
            "2026-10-10 13:55:36",
            "2026-10-10T15:55:36+02:00",
            "1791640536",
        ] {
            assert_eq!(Moment::any(text.as_bytes()), expected, "{text}");
        }
        let fine = |us| {
            Some(Moment {
                us,
                is_whole: false,
            })
        };
        assert_eq!(
            Moment::any(b"2026-10-10T13:55:36.25Z"),
            fine(1_791_640_536_250_000)
        );
        assert_eq!(Moment::any(b"1791640536.250"), fine(1_791_640_536_250_000));
        assert_eq!(Moment::any(b"1791640536250"), fine(1_791_640_536_250_000));
        assert_eq!(
            Moment::any(b"1791640536250001"),
            fine(1_791_640_536_250_001)
        );
        assert_eq!(
            Moment::any(b"1791640536250001999"),
            fine(1_791_640_536_250_001)
        );
        for bad in [
            "",
            "-",
            "10/Foo/2026:13:55:36 +0000",
            "10/Oct/2026:25:00:00 +0000",
            "2026-13-01T00:00:00Z",
            "2026-10-10T13:55",
            "1.2.3",
            "99999999999999999999999",
            "-5",
        ] {
            assert_eq!(Moment::any(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for days_since in (0..40_000).step_by(37) {
            let date = jiff::civil::date(1970, 1, 1) + jiff::Span::new().days(days_since);
            let (year, month, day) = (date.year(), date.month(), date.day());
            let found = days(i64::from(year), i64::from(month), i64::from(day));
            assert_eq!(found, days_since, "{date}");
        }
    }
}
