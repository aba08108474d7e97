//! Rewrites lines of an object that calcard would misread. The stored object stays unchanged.
//!
//! calcard takes a colon in a zone's name for the end of its parameters, drops invalid parts of a rule (`COUNT=0`,
//! `INTERVAL=0`), and truncates numbers that are too large to valid ones. A rule that RFC 5545 §3.3.10 doesn't allow
//! becomes plain text here, so that no half of it is expanded.

use std::borrow::Cow;

use groupware_proto_ical::{Lines, Property};

/// The properties whose values are dates and times.
const DATES: [&str; 10] = [
    "DTSTART",
    "DTEND",
    "DUE",
    "RECURRENCE-ID",
    "EXDATE",
    "RDATE",
    "DTSTAMP",
    "CREATED",
    "LAST-MODIFIED",
    "COMPLETED",
];

/// The text to parse.
pub fn readable(original: &str) -> Cow<'_, str> {
    let mut written = String::new();
    let mut copied = 0;
    let mut at = original.len() - original.trim_start_matches('\u{feff}').len();
    for line in Lines::new(original.as_bytes()) {
        let end = at + line.bytes.len();
        if let Some(anew) = rewritten(&line.unfolded()) {
            written.push_str(original.get(copied..at).unwrap_or_default());
            written.push_str(&anew);
            written.push_str("\r\n");
            copied = end;
        }
        at = end;
    }
    match copied {
        0 => Cow::Borrowed(original),
        _ => {
            written.push_str(original.get(copied..).unwrap_or_default());
            Cow::Owned(written)
        }
    }
}

/// A line in the form that calcard reads correctly; `None` if it needs no change.
fn rewritten(line: &[u8]) -> Option<String> {
    let property = Property::read(line);
    let value = std::str::from_utf8(property.value).ok()?;
    if property.is("RRULE") {
        return (!is_rule(value)).then(|| format!("RRULE;VALUE=TEXT:{value}"));
    }
    let has_colon = |zone: &[u8]| zone.contains(&b':');
    let zone = property.zone().filter(|zone| has_colon(zone));
    let is_date = DATES.iter().any(|name| property.is(name));
    let plain = is_date.then(|| plain_dates(value)).flatten();
    let unquoted = zone.is_some_and(|zone| {
        let quoted = [b"\"", zone, b"\""].concat();
        !property.parameters().any(|(_, it)| it.ends_with(&quoted))
    });
    if plain.is_none() && !unquoted {
        return None;
    }
    let mut anew = String::from_utf8_lossy(property.name).into_owned();
    for (name, parameter) in property.parameters() {
        anew.push(';');
        match zone.filter(|_| name.eq_ignore_ascii_case(b"TZID")) {
            Some(zone) => {
                anew.push_str(&format!("TZID=\"{}\"", String::from_utf8_lossy(zone)));
            }
            None => anew.push_str(&String::from_utf8_lossy(parameter)),
        }
    }
    anew.push(':');
    anew.push_str(plain.as_deref().unwrap_or(value));
    Some(anew)
}

/// Removes the hyphens and colons of ISO 8601 from dates and times, if there are some: `2027-07-06T08:00:00Z`.
fn plain_dates(value: &str) -> Option<String> {
    let is_extended = |it: &str| {
        let bytes = it.as_bytes();
        bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[0].is_ascii_digit()
    };
    let mut values = value.split(',').map(str::trim);
    values
        .all(is_extended)
        .then(|| value.replace(['-', ':'], "").replace(".000", ""))
}

/// Returns true if a text is a recurrence rule: RFC 5545 §3.3.10, RFC 7529 §4. Unknown parts are allowed.
pub fn is_rule(text: &str) -> bool {
    let mut has_frequency = false;
    for part in text.split(';').map(str::trim) {
        if part.is_empty() {
            continue;
        }
        let Some((name, value)) = part.split_once('=') else {
            return false;
        };
        let name = name.trim().to_ascii_uppercase();
        has_frequency |= name == "FREQ";
        if !is_part(&name, value.trim()) {
            return false;
        }
    }
    has_frequency
}

fn is_part(name: &str, value: &str) -> bool {
    const FREQUENCIES: [&str; 7] = [
        "SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY",
    ];
    let number = |text: &str, least: u32, most: u32| {
        let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        is_number && text.parse().is_ok_and(|it| (least..=most).contains(&it))
    };
    let all = |is_one: &dyn Fn(&str) -> bool| value.split(',').map(str::trim).all(is_one);
    let numbers = |least, most| all(&|text: &str| number(text, least, most));
    let signed = |most| all(&|text: &str| number(unsigned(text), 1, most));
    match name {
        "FREQ" => FREQUENCIES.iter().any(|it| it.eq_ignore_ascii_case(value)),
        "UNTIL" => is_date(value),
        "COUNT" => number(value, 1, u32::MAX),
        "INTERVAL" => number(value, 1, u32::from(u16::MAX)),
        "BYSECOND" => numbers(0, 60),
        "BYMINUTE" => numbers(0, 59),
        "BYHOUR" => numbers(0, 23),
        "BYDAY" => all(&|text: &str| {
            let at = text.len().saturating_sub(2);
            let (place, day) = text.split_at_checked(at).unwrap_or_default();
            is_weekday(day) && (place.is_empty() || number(unsigned(place), 1, 53))
        }),
        "BYMONTHDAY" => signed(31),
        "BYYEARDAY" | "BYSETPOS" => signed(366),
        "BYWEEKNO" => signed(53),
        "BYMONTH" => all(&|text: &str| number(text.trim_end_matches(['L', 'l']), 1, 13)),
        "WKST" => is_weekday(value),
        _ => true,
    }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn is_weekday(text: &str) -> bool {
    const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
    DAYS.iter().any(|day| day.eq_ignore_ascii_case(text))
}

/// Returns true if a text is a date, or a date and a time: RFC 5545 §3.3.4 and §3.3.5.
fn is_date(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let (date, clock) = upper.split_once('T').unwrap_or((&upper, "000000"));
    let clock = clock.strip_suffix('Z').unwrap_or(clock);
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|digit| digit.is_ascii_digit());
    digits(date, 8) && digits(clock, 6)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_are_told_from_what_is_none() {
        for rule in [
            "FREQ=WEEKLY",
            "freq=weekly;byday=mo",
            "FREQ=YEARLY;BYDAY=-1SU,+20MO;BYMONTH=10;WKST=SU;",
            "FREQ=DAILY;UNTIL=20270120",
            "FREQ=DAILY;UNTIL=20270120T235959Z;X-FROM=a",
            "RSCALE=HEBREW;FREQ=YEARLY;BYMONTH=5L;SKIP=FORWARD",
            "INTERVAL=2;FREQ=MONTHLY;BYSETPOS=-1;BYDAY=MO, TU",
        ] {
            assert!(is_rule(rule), "{rule}");
        }
        for text in [
            "",
            "FREQ=",
            "FREQ=FORTNIGHTLY",
            "FREQ=WEEKLY;COUNT=0",
            "FREQ=WEEKLY;COUNT=-1",
            "FREQ=WEEKLY;INTERVAL=0",
            "FREQ=WEEKLY;INTERVAL=70000",
            "FREQ=WEEKLY;BYDAY=",
            "FREQ=WEEKLY;BYDAY=MONDAY",
            "FREQ=WEEKLY;BYDAY=é",
            "FREQ=WEEKLY;UNTIL=2027-01-20",
            "FREQ=MONTHLY;BYMONTHDAY=32",
            "FREQ=MONTHLY;BYMONTHDAY=300",
            "FREQ=MONTHLY;BYMONTHDAY=0",
            "COUNT=3",
            "WEEKLY",
        ] {
            assert!(!is_rule(text), "{text}");
        }
    }

    #[test]
    fn lines_are_written_as_they_are_read() {
        for (line, expected) in [
            (
                "DTSTART;TZID=GMT+05:00:20270704T140000",
                "DTSTART;TZID=\"GMT+05:00\":20270704T140000",
            ),
            (
                "DTSTART;X-A=1;TZID=a:b;X-B=2:20270704",
                "DTSTART;X-A=1;TZID=\"a:b\";X-B=2:20270704",
            ),
            ("DTSTART:2027-07-06T08:00:00Z", "DTSTART:20270706T080000Z"),
            (
                "EXDATE;VALUE=DATE:2027-07-06,2027-07-07",
                "EXDATE;VALUE=DATE:20270706,20270707",
            ),
            ("SUMMARY:2027-07-06", "SUMMARY:2027-07-06"),
            (
                "RRULE:FREQ=WEEKLY;COUNT=0",
                "RRULE;VALUE=TEXT:FREQ=WEEKLY;COUNT=0",
            ),
            ("RRULE:FREQ=WEEKLY;COUNT=1", "RRULE:FREQ=WEEKLY;COUNT=1"),
        ] {
            let around = |line: &str| format!("BEGIN:VEVENT\r\n{line}\r\nEND:VEVENT");
            assert_eq!(readable(&around(line)), around(expected));
            let folded = around(&format!("{}\r\n {}", &line[..9], &line[9..]));
            let is_same = line == expected;
            let expected = if is_same {
                folded.clone()
            } else {
                around(expected)
            };
            assert_eq!(readable(&folded), expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,80}", rule in "[A-Z=;,0-9+é-]{0,40}") {
            let _ = readable(&text);
            let _ = is_rule(&rule);
            let _ = readable(&format!("\u{feff}DTSTART;TZID={rule}:{text}\nRRULE:{rule}\r\n"));
        }
    }
}
