//! The notations of values in files: durations, waits, sizes, counts, rates, statuses.
//!
//! Each parser takes one text and returns the place of an error in it.

use std::ops::RangeInclusive;
use std::time::Duration;

use lab_filters::SizeError;
use lab_template::wait::Wait;

use crate::nearest::{nearest, one_of};
use crate::text_error::TextError;

/// Longest wait, pace, or interval.
pub const MAX_WAIT: Duration = Duration::from_secs(86_400);
/// Largest sigma of a lognormal wait; beyond it nearly every wait is truncated.
const MAX_SIGMA: f64 = 5.0;
/// Most cycles of a hold.
const MAX_CYCLES: u64 = 1_000_000;

const DURATION_HELP: &str = "write a number and a unit: `250ms`, `15s`, `12m`, `1h30m`";

/// The length of a hold as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A time.
    Time(Duration),
    /// A number of cycles of the session.
    Cycles(u32),
}

/// The range of a whole text.
#[must_use]
pub fn whole(text: &str) -> std::ops::Range<usize> {
    0..text.len()
}

/// Parses `true` or `false`.
///
/// # Errors
/// When the text is anything else.
pub fn switch(text: &str) -> Result<bool, TextError> {
    let trimmed = text.trim();
    trimmed.parse().map_err(|_| {
        let message = format!("`{trimmed}` is neither `true` nor `false`");
        TextError::new(message, whole(text))
    })
}

/// Parses a whole number within `range`.
///
/// # Errors
/// When the text is no whole number, or outside of the range.
pub fn whole_number(text: &str, range: RangeInclusive<u64>) -> Result<u64, TextError> {
    let trimmed = text.trim();
    let bounds = format!("{} to {}", grouped(*range.start()), grouped(*range.end()));
    if trimmed.is_empty() || !trimmed.bytes().all(|b| b.is_ascii_digit()) {
        return Err(
            TextError::new(format!("`{trimmed}` is not a whole number"), whole(text))
                .help(format!("write digits only; it may be {bounds}")),
        );
    }
    match trimmed.parse::<u64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(TextError::new(
            format!("{trimmed} is not within {bounds}"),
            whole(text),
        )),
    }
}

/// Digits in groups of three: `1,000,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Parses a duration such as `12m`, `1h30m`, `1.5s`, as files write it.
///
/// # Errors
/// When the text is no duration, or one longer than `max`.
pub fn duration(text: &str, max: Duration) -> Result<Duration, TextError> {
    let bad = |message: String| TextError::new(message, whole(text)).help(DURATION_HELP);
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad("a duration is missing".into()));
    }
    let mut seconds = 0.0f64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else {
            return Err(bad(format!("`{}` is not a duration", text.trim())));
        };
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "" => return Err(bad(format!("`{}` has no unit", text.trim()))),
            other => return Err(bad(format!("`{other}` is not a unit of time"))),
        };
        seconds += number * unit;
        rest = rest[letters..].trim_start();
    }
    let over = || TextError::new(format!("it is longer than {}", describe(max)), whole(text));
    let value = Duration::try_from_secs_f64(seconds).map_err(|_| over())?;
    if value > max { Err(over()) } else { Ok(value) }
}

/// Parses a duration as scripts in the form of k6 write it: `1m30s`, `500ms`, or a number of milliseconds.
#[must_use]
pub fn k6_duration(text: &str) -> Option<Duration> {
    match text.trim().parse() {
        Ok(ms) => k6_milliseconds(ms),
        Err(_) => duration(text, Duration::MAX).ok(),
    }
}

/// The duration of so many milliseconds; `None` for a number that is none.
#[must_use]
pub fn k6_milliseconds(ms: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(ms / 1e3).ok()
}

/// A number with at most six decimals, without zeros at its end: `0.5`, `20`.
#[must_use]
pub fn decimal(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A duration in the largest unit that gives a whole number.
#[must_use]
pub fn describe(value: Duration) -> String {
    let nanos = value.as_nanos();
    let units = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let exact = units
        .iter()
        .find(|(size, _)| nanos >= *size && nanos.is_multiple_of(*size));
    match exact {
        Some((size, unit)) => format!("{}{unit}", nanos / size),
        None => format!("{}s", value.as_secs_f64()),
    }
}

/// Parses a wait: `5s..15s`, `10s`, `exponential(10s)`, `lognormal(10s, 0.5)`, `none`.
///
/// # Errors
/// When the text is no wait, or too long.
pub fn wait(text: &str) -> Result<Wait, TextError> {
    let trimmed = text.trim();
    if trimmed == "none" {
        return Ok(Wait::None);
    }
    if let Some((name, arguments)) = call(trimmed) {
        return distribution(text, name, arguments);
    }
    let Some((low, high)) = trimmed.split_once("..") else {
        let value = duration(text, MAX_WAIT)?;
        return Ok(if value.is_zero() {
            Wait::None
        } else {
            Wait::Constant(value)
        });
    };
    let low_value = within(text, low, duration(low, MAX_WAIT))?;
    let high_value = within(text, high, duration(high, MAX_WAIT))?;
    if low_value > high_value {
        let (low, high) = (low.trim(), high.trim());
        return Err(TextError::new(
            format!("the range begins at {low} and ends before it, at {high}"),
            whole(text),
        )
        .help(format!("did you mean `{high}..{low}`?")));
    }
    Ok(Wait::Uniform(low_value, high_value))
}

/// Moves an error in `part` to its place in `text`.
///
/// # Errors
/// The error, at its place.
pub fn within<T>(text: &str, part: &str, result: Result<T, TextError>) -> Result<T, TextError> {
    result.map_err(|mut error| {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        error.at = match part.trim().is_empty() {
            true => whole(text),
            false => start + error.at.start..start + error.at.end,
        };
        error
    })
}

/// Splits `name(arguments)`.
#[must_use]
pub fn call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('(')?;
    Some((name.trim(), rest.strip_suffix(')')?))
}

fn distribution(text: &str, name: &str, arguments: &str) -> Result<Wait, TextError> {
    match name {
        "exponential" => {
            let mean = within(text, arguments, duration(arguments, MAX_WAIT))?;
            Ok(Wait::Exponential(mean))
        }
        "lognormal" => {
            let (median, sigma) = arguments.split_once(',').unwrap_or((arguments, ""));
            let median = within(text, median, duration(median, MAX_WAIT))?;
            match sigma.trim().parse::<f64>() {
                Ok(sigma) if (0.0..=MAX_SIGMA).contains(&sigma) => {
                    Ok(Wait::Lognormal(median, sigma))
                }
                _ => Err(
                    TextError::new("lognormal needs a sigma from 0 to 5", whole(text))
                        .help("write `lognormal(median, sigma)`, such as `lognormal(10s, 0.5)`"),
                ),
            }
        }
        "uniform" => {
            let help = "write a range: `5s..15s`";
            Err(TextError::new("`uniform` is written as a range", whole(text)).help(help))
        }
        other => {
            let names = ["exponential", "lognormal"];
            let help = match nearest(other, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "the distributions are {}, or a range `5s..15s`",
                    one_of(&names)
                ),
            };
            Err(
                TextError::new(format!("there is no distribution `{other}`"), whole(text))
                    .help(help),
            )
        }
    }
}

/// Parses a hold: `4 cycles` or a duration.
///
/// # Errors
/// When the text is no hold, or too long.
pub fn hold(text: &str, max: Duration) -> Result<Hold, TextError> {
    let trimmed = text.trim();
    let cycles = trimmed
        .strip_suffix("cycles")
        .or_else(|| trimmed.strip_suffix("cycle"));
    match cycles {
        Some(count) => {
            let count = within(
                text,
                count.trim(),
                whole_number(count.trim(), 1..=MAX_CYCLES),
            )?;
            Ok(Hold::Cycles(count as u32))
        }
        None => duration(text, max)
            .map(Hold::Time)
            .map_err(|error| match error.help {
                Some(help) => TextError {
                    help: Some(format!("{help}, or `4 cycles`")),
                    ..error
                },
                None => error,
            }),
    }
}

/// Parses a size: `4096`, `64 KiB`, `30 MB`.
///
/// # Errors
/// When the text is no size, or larger than `max`.
pub fn size(text: &str, max: u64) -> Result<u64, TextError> {
    lab_filters::size(text, max).map_err(|error| {
        let place = TextError::new(error.to_string(), whole(text));
        match error {
            SizeError::Unreadable(_) => place.help("write a number and a unit: `64 KiB`, `30 MB`"),
            SizeError::TooLarge(_) => place,
        }
    })
}

/// Parses a range of sizes in bytes: `< 20 kB`, `>= 1 kB`, `1 kB..2 kB`, `512 B`.
///
/// # Errors
/// When the text is none, or contains no size.
pub fn sizes(text: &str) -> Result<std::ops::RangeInclusive<u64>, TextError> {
    const MOST: u64 = 1 << 50;
    let trimmed = text.trim();
    let one = |part: &str| size(part.trim(), MOST);
    let bound = |sign: &str| trimmed.strip_prefix(sign).map(one).transpose();
    let range = if let Some(most) = bound("<=")? {
        0..=most
    } else if let Some(above) = bound("<")? {
        match above.checked_sub(1) {
            Some(most) => 0..=most,
            None => return Err(TextError::new("no body is smaller than that", whole(text))),
        }
    } else if let Some(least) = bound(">=")? {
        least..=u64::MAX
    } else if let Some(below) = bound(">")? {
        below + 1..=u64::MAX
    } else if let Some((least, most)) = trimmed.split_once("..") {
        one(least)?..=one(most)?
    } else {
        let exact = one(trimmed)?;
        exact..=exact
    };
    match range.is_empty() {
        true => Err(TextError::new(
            "the first size is larger than the second",
            whole(text),
        )),
        false => Ok(range),
    }
}

/// Parses a rate: `1000/s`, `60/min`; in events per second.
///
/// # Errors
/// When the text is no rate, or outside of 0.001/s to 1,000,000/s.
pub fn rate(text: &str) -> Result<f64, TextError> {
    const HELP: &str = "write a number and a time: `1000/s`, `60/min`";
    const LEAST_PER_S: f64 = 0.001;
    const MOST_PER_S: f64 = 1e6;
    let trimmed = text.trim();
    let bad = |message: String| Err(TextError::new(message, whole(text)).help(HELP));
    let Some((number, unit)) = trimmed.split_once('/') else {
        return bad(format!("`{trimmed}` is not a rate"));
    };
    let seconds = match unit.trim() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return bad(format!("`{other}` is not a unit of time")),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if (LEAST_PER_S..=MOST_PER_S).contains(&(n / seconds)) => Ok(n / seconds),
        Ok(n) if n.is_finite() && n > 0.0 => {
            let message = "a rate lies within 0.001/s and 1,000,000/s";
            Err(TextError::new(message, whole(text)))
        }
        _ => bad(format!("`{}` is not a number above 0", number.trim())),
    }
}

/// Parses a rate of a changing load: as [`rate`], or none at all (`0/s`).
///
/// # Errors
/// As [`rate`].
pub fn rate_or_none(text: &str) -> Result<f64, TextError> {
    let is_none = text.split_once('/').is_some_and(|(number, unit)| {
        let zero = number.trim().parse().is_ok_and(|n: f64| n == 0.0);
        zero && rate(&format!("1/{unit}")).is_ok()
    });
    if is_none { Ok(0.0) } else { rate(text) }
}

/// Parses the timeout of a response.
///
/// # Errors
/// When the text is no duration, or outside of 10 ms to 1 h.
pub fn timeout(text: &str) -> Result<Duration, TextError> {
    const LEAST: Duration = Duration::from_millis(10);
    const MOST: Duration = Duration::from_secs(3600);
    let value = duration(text, MOST)?;
    if value < LEAST {
        return Err(TextError::new("it is 10ms to 1h", whole(text)));
    }
    Ok(value)
}

/// Parses a relative difference: `2%`, `0.02`.
///
/// # Errors
/// When the text is no number or percentage, or outside of the range.
pub fn fraction(text: &str, range: RangeInclusive<f64>) -> Result<f64, TextError> {
    let trimmed = text.trim();
    let (number, scale) = trimmed
        .strip_suffix('%')
        .map_or((trimmed, 1.0), |percent| (percent.trim_end(), 100.0));
    match number.parse::<f64>().map(|n| n / scale) {
        Ok(part) if range.contains(&part) => Ok(part),
        Ok(part) if part.is_finite() => {
            let (low, high) = (range.start() * 100.0, range.end() * 100.0);
            let message = format!("{trimmed} is not within {low}% to {high}%");
            Err(TextError::new(message, whole(text)))
        }
        _ => Err(TextError::new(
            format!("`{trimmed}` is not a part of something"),
            whole(text),
        )
        .help("write a percentage, such as `2%`")),
    }
}

/// Parses one of a few named values; `what` names their kind.
///
/// # Errors
/// When the name is none of them.
pub fn one_named<T: Copy>(what: &str, text: &str, named: &[(&str, T)]) -> Result<T, TextError> {
    let trimmed = text.trim();
    if let Some((_, value)) = named.iter().find(|(name, _)| *name == trimmed) {
        return Ok(*value);
    }
    let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    let help = match nearest(trimmed, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {what}s are {}", one_of(&names)),
    };
    Err(TextError::new(format!("there is no {what} `{trimmed}`"), whole(text)).help(help))
}

/// Parses accepted statuses: `200`, `2xx`, `200..204`.
///
/// # Errors
/// When the text is no status, class, or range.
pub fn statuses(text: &str) -> Result<RangeInclusive<u16>, TextError> {
    let trimmed = text.trim();
    let bad = || {
        TextError::new(
            format!("`{trimmed}` is not a status or a range of them"),
            whole(text),
        )
        .help("write a status (`201`), a class (`2xx`), or a range (`200..204`)")
    };
    let status = |part: &str| match part.trim().parse::<u16>() {
        Ok(n) if (100..=599).contains(&n) => Ok(n),
        _ => Err(bad()),
    };
    if let Some(class) = trimmed.strip_suffix("xx") {
        return match class.parse::<u16>() {
            Ok(n) if (1..=5).contains(&n) => Ok(n * 100..=n * 100 + 99),
            _ => Err(bad()),
        };
    }
    match trimmed.split_once("..") {
        Some((low, high)) => {
            let range = status(low)?..=status(high)?;
            if range.is_empty() {
                Err(bad())
            } else {
                Ok(range)
            }
        }
        None => status(trimmed).map(|n| n..=n),
    }
}

#[cfg(test)]
mod tests;
