//! A request in a line of a log.

use std::borrow::Cow;
use std::str::FromStr;

use super::moment::Moment;

/// The point of a request that a log's time refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    Start,
    End,
    /// The log's format doesn't define it.
    Unknown,
}

/// A request in a line of a log; missing texts are empty.
#[derive(Debug, Default)]
pub(super) struct Entry<'l> {
    pub(super) moment: Option<Moment>,
    /// Its duration, µs.
    pub(super) took_us: Option<i64>,
    pub(super) method: Cow<'l, [u8]>,
    pub(super) target: Cow<'l, [u8]>,
    pub(super) host: Cow<'l, [u8]>,
    pub(super) status: Option<u16>,
    pub(super) bytes: Option<u64>,
    pub(super) client: Cow<'l, [u8]>,
    /// `None` if the log has no such field.
    pub(super) agent: Option<Cow<'l, [u8]>>,
    pub(super) content_type: Cow<'l, [u8]>,
    pub(super) body: Cow<'l, [u8]>,
}

/// Why a line is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skip {
    Format,
    TooLong,
    Moment,
    Request,
    Path,
    Method,
    Host,
    Body,
    Client,
}

impl Skip {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Format => "not as the format has them",
            Self::TooLong => "too long",
            Self::Moment => "without a moment that can be read",
            Self::Request => "without an HTTP request, as port scans leave behind",
            Self::Path => "without a path",
            Self::Method => "of another method (--methods takes it)",
            Self::Host => "for another host",
            Self::Client => "without a client, and so of no session",
            Self::Body => "with a body that is no text of at most 32 KiB",
        }
    }
}

impl<'l> Entry<'l> {
    /// Parses a request line, `GET /path HTTP/1.1`; false if it is none.
    pub(super) fn set_request(&mut self, line: &'l [u8]) -> bool {
        let Some(method) = line.iter().position(|b| *b == b' ') else {
            return false;
        };
        let target = &line[method + 1..];
        let version = target.iter().rposition(|b| *b == b' ');
        let version = version.filter(|at| target[at + 1..].starts_with(b"HTTP/"));
        self.method = Cow::Borrowed(&line[..method]);
        self.target = Cow::Borrowed(&target[..version.unwrap_or(target.len())]);
        true
    }
}

/// A value without the escapes of nginx (`\x22`), Apache (`\"`), and JSON (`\u00e4`).
pub(super) fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let (taken, used) = match after {
            [b'x', high, low, ..] => (hex(&[*high, *low]).map(u32::from), 3),
            [b'u', a, b, c, d, ..] => {
                let both = hex(&[*a, *b]).zip(hex(&[*c, *d]));
                let unit = both.map(|(high, low)| u32::from(high) << 8 | u32::from(low));
                if let Some(unit) = unit.and_then(char::from_u32) {
                    let mut space = [0; 4];
                    out.extend(unit.encode_utf8(&mut space).bytes());
                    rest = &after[5..];
                    continue;
                }
                (None, 0)
            }
            [b'n', ..] => (Some(u32::from(b'\n')), 1),
            [b't', ..] => (Some(u32::from(b'\t')), 1),
            [b'r', ..] => (Some(u32::from(b'\r')), 1),
            [other @ (b'"' | b'\\' | b'/' | b'\''), ..] => (Some(u32::from(*other)), 1),
            _ => (None, 0),
        };
        out.push(
            taken
                .and_then(|byte| u8::try_from(byte).ok())
                .unwrap_or(b'\\'),
        );
        rest = if taken.is_some() {
            &after[used..]
        } else {
            after
        };
    }
    Cow::Owned(out)
}

/// A number in decimal digits.
pub(super) fn number<T: FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The byte of two hex digits.
pub(super) fn hex(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u8::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_taken_back() {
        for (text, expected) in [
            (&b"plain"[..], &b"plain"[..]),
            (b"a\\x22b", b"a\"b"),
            (b"a\\\"b\\\\", b"a\"b\\"),
            (b"\\u00e4\\/", "ä/".as_bytes()),
            (b"\\xC3\\xA4", "ä".as_bytes()),
            (b"\\", b"\\"),
            (b"\\xZZ\\u12", b"\\xZZ\\u12"),
            (b"\\ud800", b"\\ud800"),
        ] {
            assert_eq!(&*unescaped(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_request_line_may_have_spaces_and_no_version() {
        let parsed = |line: &'static str| {
            let mut entry = Entry::default();
            let is_request = entry.set_request(line.as_bytes());
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            is_request.then(|| (text(&entry.method), text(&entry.target)))
        };
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(parsed("GET /a b HTTP/1.1"), pair("GET", "/a b"));
        assert_eq!(parsed("GET /a"), pair("GET", "/a"));
        assert_eq!(parsed("-"), None);
    }
}
