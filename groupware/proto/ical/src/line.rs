//! Content lines with their continuation lines, and the few parts of them that are parsed.

use std::borrow::Cow;

use memchr::memchr;

/// A content line as in its file: with its folds and line end.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its bytes, with folds and end.
    pub bytes: &'a [u8],
    /// Where it begins in the file.
    pub(crate) at: usize,
    /// Its number in the file, from 1.
    pub(crate) number: usize,
}

/// The content lines of a file.
#[derive(Debug)]
pub struct Lines<'a> {
    file: &'a [u8],
    at: usize,
    number: usize,
}

impl<'a> Lines<'a> {
    /// Returns the lines of a file, without the byte order mark before the first.
    pub fn new(file: &'a [u8]) -> Self {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        let at = if file.starts_with(MARK) {
            MARK.len()
        } else {
            0
        };
        let number = 1;
        Self { file, at, number }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let (at, number) = (self.at, self.number);
        while self.at < self.file.len() {
            let rest = &self.file[self.at..];
            self.at += memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            self.number += 1;
            if !matches!(self.file.get(self.at), Some(b' ' | b'\t')) {
                break;
            }
        }
        let bytes = &self.file[at..self.at];
        (!bytes.is_empty()).then_some(Line { bytes, at, number })
    }
}

impl<'a> Line<'a> {
    /// Returns the line without folds and without its end.
    pub fn unfolded(&self) -> Cow<'a, [u8]> {
        let line = without_end(self.bytes);
        if memchr(b'\n', line).is_none() {
            return Cow::Borrowed(line);
        }
        let mut whole = Vec::with_capacity(line.len());
        for (at, part) in line.split_inclusive(|byte| *byte == b'\n').enumerate() {
            // A continuation line begins with a blank that isn't part of its text.
            whole.extend_from_slice(without_end(&part[usize::from(at > 0)..]));
        }
        Cow::Owned(whole)
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The parts of a content line: `NAME;PARAMETERS:VALUE`.
#[derive(Debug, Clone, Copy)]
pub struct Property<'l> {
    /// Its name, in the case in which it is written.
    pub name: &'l [u8],
    parameters: &'l [u8],
    /// Its value as it is written.
    pub value: &'l [u8],
}

impl<'l> Property<'l> {
    /// Parses an unfolded line. A line without a value has an empty one.
    ///
    /// The name of a time zone may contain colons outside of quotation marks, as written by Exchange and old
    /// Evolution: `TZID=GMT+05:00:20270704T140000`. The value then begins behind the last colon before a date.
    pub fn read(line: &'l [u8]) -> Self {
        let name_ends = line.iter().position(|byte| matches!(byte, b';' | b':'));
        let (name, rest) = line.split_at(name_ends.unwrap_or(line.len()));
        let mut is_quoted = false;
        let value_at = rest.iter().position(|byte| {
            is_quoted ^= *byte == b'"';
            !is_quoted && *byte == b':'
        });
        let value_at = value_at.map(|at| at + colons_of_zone(&rest[..at], &rest[at..]));
        let (parameters, value) = rest.split_at(value_at.unwrap_or(rest.len()));
        Self {
            name: name.trim_ascii(),
            parameters,
            value: value.get(1..).unwrap_or_default(),
        }
    }

    /// Returns true if it has this name, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Returns its parameters: the name of each, and its full text.
    pub fn parameters(&self) -> impl Iterator<Item = (&'l [u8], &'l [u8])> + use<'l> {
        let mut is_quoted = false;
        let parts = self.parameters.split(move |byte| {
            is_quoted ^= *byte == b'"';
            !is_quoted && *byte == b';'
        });
        let parts = parts.filter(|part| !part.is_empty());
        parts.map(|part| {
            let name = &part[..memchr(b'=', part).unwrap_or(part.len())];
            (name.trim_ascii(), part)
        })
    }

    /// Returns the time zone of its value.
    pub fn zone(&self) -> Option<&'l [u8]> {
        let mut all = self.parameters();
        all.find_map(|(name, part)| {
            let value = part[memchr(b'=', part)? + 1..].trim_ascii();
            let value = value.strip_prefix(b"\"").unwrap_or(value);
            let value = value.strip_suffix(b"\"").unwrap_or(value);
            name.eq_ignore_ascii_case(b"TZID").then_some(value)
        })
    }
}

/// The offset of the value behind the first colon, if the last parameter is a zone with colons in its name.
fn colons_of_zone(parameters: &[u8], rest: &[u8]) -> usize {
    const ZONE: &[u8] = b"TZID=";
    let last = parameters.rsplit(|byte| *byte == b';').next();
    let last = last.unwrap_or_default().trim_ascii();
    let name = last.get(..ZONE.len()).unwrap_or_default();
    let is_zone = name.eq_ignore_ascii_case(ZONE) && !last.contains(&b'"');
    if !is_zone || begins_with_date(&rest[1..]) {
        return 0;
    }
    let colons = (1..rest.len()).rev().filter(|at| rest[*at] == b':');
    let mut dates = colons.filter(|at| begins_with_date(&rest[at + 1..]));
    dates.next().unwrap_or(0)
}

/// Returns true if a value begins with the eight digits of a date: RFC 5545 §3.3.4.
fn begins_with_date(value: &[u8]) -> bool {
    let value = value.trim_ascii_start();
    value.len() >= 8
        && value[..8].iter().all(u8::is_ascii_digit)
        && !value.get(8).is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(file: &[u8]) -> Vec<(usize, String)> {
        Lines::new(file)
            .map(|line| {
                let text = String::from_utf8_lossy(&line.unfolded()).into_owned();
                (line.number, text)
            })
            .collect()
    }

    #[test]
    fn folds_are_part_of_their_line() {
        let file = b"\xef\xbb\xbfA:1\r\n 2\r\n\t3\r\nB:4\n\nC";
        let expected = [(1, "A:123"), (4, "B:4"), (5, ""), (6, "C")];
        let expected = expected.map(|(number, text)| (number, text.to_owned()));
        assert_eq!(lines(file), expected);
    }

    #[test]
    fn a_zone_is_found_among_parameters() {
        let zone = |line: &'static str| Property::read(line.as_bytes()).zone();
        let berlin = Some(&b"Europe/Berlin"[..]);
        assert_eq!(zone("DTSTART;TZID=Europe/Berlin:20260105T090000"), berlin);
        assert_eq!(zone("X;A=\";TZID=x:\";tzid=\"Europe/Berlin\":1"), berlin);
        assert_eq!(zone("DTSTART:TZID=Europe/Berlin"), None);
        assert_eq!(Property::read(b"X;A=\"b:c\":d:e").value, b"d:e");
    }

    #[test]
    fn a_zone_has_colons_without_quotation_marks() {
        for (line, zone, value) in [
            (
                "A;TZID=tzone://Microsoft/Utc:20270704T140000",
                "tzone://Microsoft/Utc",
                "20270704T140000",
            ),
            (
                "A;X=1;tzid=GMT+05:00:20270704T140000",
                "GMT+05:00",
                "20270704T140000",
            ),
            (
                "A;TZID=UTC-03:30:20270704,20270705",
                "UTC-03:30",
                "20270704,20270705",
            ),
            ("A;TZID=a:20270704T140000:x", "a", "20270704T140000:x"),
            ("A;TZID=a:b:no date", "a", "b:no date"),
            ("A;TZID=\"a:b\":c:20270704", "a:b", "c:20270704"),
            ("A;TZID=a;X=1:c:20270704", "a", "c:20270704"),
        ] {
            let property = Property::read(line.as_bytes());
            assert_eq!(property.zone(), Some(zone.as_bytes()), "{line}");
            assert_eq!(property.value, value.as_bytes(), "{line}");
        }
    }
}
