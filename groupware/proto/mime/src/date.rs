//! Parses `Date` fields in the forms of RFC 5322 and RFC 850, their obsolete forms, and similar
//! ones that programs write.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Parses a date of a head into seconds since 1970. `None` if it is no date.
pub fn seconds(text: &str) -> Option<i64> {
    let text = without_comments(text);
    let mut read = Reading::default();
    let words = text.split(|sign: char| sign.is_whitespace() || sign == ',');
    for word in words.filter(|word| !word.is_empty()) {
        read.word(word)?;
    }
    read.finish()
}

fn without_comments(text: &str) -> String {
    let mut comments = 0_usize;
    let mut kept = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '(' => comments += 1,
            ')' => comments = comments.saturating_sub(1),
            _ if comments == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The values parsed so far.
#[derive(Default)]
struct Reading {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    clock: Option<(i8, i8, i8)>,
    is_afternoon: Option<bool>,
    /// Seconds before UTC.
    offset_s: i64,
}

impl Reading {
    /// Parses a word. `None` if it can't be part of a date.
    fn word(&mut self, word: &str) -> Option<()> {
        if word.contains(':') && self.clock.is_none() {
            return self.clock(word);
        }
        if let Some(offset) = offset(word) {
            self.offset_s = offset;
            return Some(());
        }
        if let Some(at) = MONTHS.iter().position(|name| is_name(word, name)) {
            self.month = i8::try_from(at + 1).ok();
            return Some(());
        }
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "am" | "pm" => self.is_afternoon = Some(lower == "pm"),
            _ if DAYS
                .iter()
                .any(|name| is_name(word.trim_end_matches('.'), name)) => {}
            _ if word.bytes().all(|byte| byte.is_ascii_digit()) => return self.number(word),
            _ if lower.contains('-') => {
                // 13-Feb-22, 2022-02-13.
                let parts: Vec<&str> = word.split('-').collect();
                match parts[..] {
                    [year, month, day] if year.len() == 4 => {
                        self.number(year)?;
                        self.month = Some(month.parse().ok()?);
                        self.number(day)?;
                    }
                    [day, month, year] => [day, month, year]
                        .map(|it| self.word(it))
                        .iter()
                        .all(Option::is_some)
                        .then_some(())?,
                    _ => return None,
                }
            }
            // An unknown zone name, behind the clock.
            _ if self.clock.is_some() && word.bytes().all(|byte| byte.is_ascii_alphabetic()) => {}
            _ => return None,
        }
        Some(())
    }

    fn number(&mut self, word: &str) -> Option<()> {
        let number: i16 = word.parse().ok()?;
        match (word.len(), self.day) {
            (4.., _) if self.year.is_none() => self.year = Some(number),
            (1 | 2, None) => self.day = i8::try_from(number).ok(),
            // RFC 5322, 4.3.
            (2 | 3, Some(_)) if self.year.is_none() => {
                let century = if number < 50 && word.len() == 2 {
                    2000
                } else {
                    1900
                };
                self.year = Some(century + number);
            }
            _ => return None,
        }
        Some(())
    }

    /// Parses `00:04`, `00:04:05`, `00:04:05.5`, and the same followed by a zone or by AM or PM.
    fn clock(&mut self, word: &str) -> Option<()> {
        // RFC 3339.
        if let Some((date, clock)) = word.split_once(['T', 't'])
            && date.contains('-')
        {
            self.word(date)?;
            return self.clock(clock);
        }
        let is_of_clock = |sign: char| sign.is_ascii_digit() || sign == ':' || sign == '.';
        let end = word.find(|sign| !is_of_clock(sign)).unwrap_or(word.len());
        let (clock, rest) = word.split_at(end);
        let mut parts = clock.split(':');
        let mut part = || {
            parts
                .next()
                .map(|part| part.split('.').next().unwrap_or_default())
        };
        let hour = part()?.parse().ok()?;
        let minute = part()?.parse().ok()?;
        let second: i8 = part().map_or(Some(0), |part| part.parse().ok())?;
        // A leap second counts as the one before it.
        self.clock = Some((hour, minute, second.min(59)));
        match rest {
            "" => Some(()),
            rest => self.word(rest),
        }
    }

    fn finish(self) -> Option<i64> {
        let (hour, minute, second) = self.clock.unwrap_or_default();
        let hour = match (self.is_afternoon, hour) {
            (Some(false), 12) => 0,
            (Some(true), 1..=11) => hour + 12,
            _ => hour,
        };
        let moment = DateTime::new(self.year?, self.month?, self.day?, hour, minute, second, 0);
        let moment = moment.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
        let seconds = moment.as_second() - self.offset_s;
        jiff::Timestamp::from_second(seconds).ok().map(|_| seconds)
    }
}

/// Returns true for a name or its prefix of three letters or more: `Sep`, `Sept.`, `September`.
fn is_name(word: &str, three: &str) -> bool {
    const LONGEST: usize = 10;
    let begin = word.get(..3).unwrap_or_default();
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'.';
    word.len() <= LONGEST && begin.eq_ignore_ascii_case(three) && word.bytes().all(is_letter)
}

/// Returns the seconds by which a zone is ahead of UTC.
fn offset(word: &str) -> Option<i64> {
    let upper = word.to_ascii_uppercase();
    let hours = match upper.as_str() {
        "UT" | "UTC" | "GMT" | "Z" => 0,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        "WEST" | "BST" | "CET" | "MET" => 1,
        "CEST" | "MEST" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "JST" | "KST" => 9,
        // RFC 5322, 4.3: programs wrote them with either sign, so they have no meaning.
        letter
            if letter.len() == 1
                && letter != "J"
                && letter.bytes().all(|b| b.is_ascii_uppercase()) =>
        {
            0
        }
        _ => {
            return numeric(
                upper
                    .strip_prefix("GMT")
                    .or(upper.strip_prefix("UTC"))
                    .unwrap_or(&upper),
            );
        }
    };
    Some(hours * 3600)
}

/// `+0100`, `+01:00`, `+1`.
fn numeric(word: &str) -> Option<i64> {
    let sign = match word.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = word[1..].replace(':', "");
    let number: i64 = digits
        .parse()
        .ok()
        .filter(|_| digits.bytes().all(|it| it.is_ascii_digit()))?;
    let (hours, minutes) = match digits.len() {
        1 | 2 => (number, 0),
        3 | 4 => (number / 100, number % 100),
        _ => return None,
    };
    // No zone has a larger offset: it is ignored.
    let is_zone = hours <= 15 && minutes < 60;
    Some(if is_zone {
        sign * (hours * 3600 + minutes * 60)
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dates_in_many_forms() {
        for (text, expected) in [
            ("Sun, 13 Feb 2022 00:04:05 +0100", "2022-02-12T23:04:05Z"),
            ("13 Feb 2022 00:04:05 -0530", "2022-02-13T05:34:05Z"),
            ("Sun, 13 Feb 2022 00:04 +0000", "2022-02-13T00:04:00Z"),
            (
                "Sun, 13 Feb 2022 00:04:05 +0100 (CET)",
                "2022-02-12T23:04:05Z",
            ),
            ("Sun,13 Feb 2022 00:04:05 GMT", "2022-02-13T00:04:05Z"),
            (
                "Sun (a day), 13 (the) Feb 2022 00:04:05 UT",
                "2022-02-13T00:04:05Z",
            ),
            ("13 Feb 22 00:04 EST", "2022-02-13T05:04:00Z"),
            ("Sun, 13 Feb 99 00:04:05 PDT", "1999-02-13T07:04:05Z"),
            ("13 Feb 102 00:04:05 +0000", "2002-02-13T00:04:05Z"),
            ("Sunday, 13-Feb-22 00:04:05 GMT", "2022-02-13T00:04:05Z"),
            ("13-Feb-2022 00:04:05 +0000", "2022-02-13T00:04:05Z"),
            ("Sun Feb 13 00:04:05 2022", "2022-02-13T00:04:05Z"),
            ("Sun Feb 13 00:04:05 CET 2022", "2022-02-12T23:04:05Z"),
            ("Sun Feb 13 00:04:05 2022 +0100", "2022-02-12T23:04:05Z"),
            ("Feb 13, 2022 12:04 AM", "2022-02-13T00:04:00Z"),
            (
                "Sunday, February 13, 2022 1:04 PM +0100",
                "2022-02-13T12:04:00Z",
            ),
            ("13 Feb 2022 1:04:05pm", "2022-02-13T13:04:05Z"),
            ("13 Sept. 2022 00:04:05 +0200", "2022-09-12T22:04:05Z"),
            ("Sun, 13 FEB 2022 0:4:5 +0000", "2022-02-13T00:04:05Z"),
            ("Sun., 13 Feb 2022 00:04:05 +0000", "2022-02-13T00:04:05Z"),
            ("Sun, 13 Feb 2022 00:04:05+0100", "2022-02-12T23:04:05Z"),
            (
                "Sun, 13 Feb 2022 00:04:05.123 +0100",
                "2022-02-12T23:04:05Z",
            ),
            ("Sun, 13 Feb 2022 00:04:05 +01:00", "2022-02-12T23:04:05Z"),
            ("Sun, 13 Feb 2022 00:04:05 GMT+0100", "2022-02-12T23:04:05Z"),
            ("Sun, 13 Feb 2022 00:04:05 UTC+1", "2022-02-12T23:04:05Z"),
            ("Sun, 13 Feb 2022 00:04:05 \"GMT\"", ""),
            ("Sun, 13 Feb 2022 00:04:05", "2022-02-13T00:04:05Z"),
            ("Sun, 13 Feb 2022 00:04:05 XYZT", "2022-02-13T00:04:05Z"),
            ("Sun, 13 Feb 2022 23:59:60 +0000", "2022-02-13T23:59:59Z"),
            ("Sun, 13 Feb 2022 00:04:05 +9999", "2022-02-13T00:04:05Z"),
            ("Sun, 13 Feb 2022 00:04:05 A", "2022-02-13T00:04:05Z"),
            ("2022-02-13T00:04:05+01:00", "2022-02-12T23:04:05Z"),
            ("2022-02-13 00:04:05 +0100", "2022-02-12T23:04:05Z"),
            ("2022-02-13T00:04:05.5Z", "2022-02-13T00:04:05Z"),
            ("13 Feb 2022", "2022-02-13T00:00:00Z"),
            (
                "\r\n Sun, 13 Feb 2022\r\n 00:04:05 +0100\r\n",
                "2022-02-12T23:04:05Z",
            ),
            ("", ""),
            ("yesterday", ""),
            ("31 Feb 2022 00:04:05 +0000", ""),
            ("99 Xyz 99999", ""),
            ("13 Feb 2022 25:04:05 +0000", ""),
            ("00:04:05", ""),
            ("01 Jan -9999 00:00:00 +0100", ""),
            ("12:12:12:12:12", ""),
        ] {
            let found =
                seconds(text).map(|it| jiff::Timestamp::from_second(it).unwrap().to_string());
            assert_eq!(found.unwrap_or_default(), expected, "{text:?}");
        }
    }
}
