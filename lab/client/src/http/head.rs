//! The head of a response: status, headers, and their meaning for the body and the connection.
//!
//! Pure: bytes in, facts out. It knows neither sockets nor the request.

use std::borrow::Cow;
use std::mem::MaybeUninit;

/// The maximum number of header lines in a response of the form of RFC 9112, so that they need no heap.
const USUAL_HEADERS: usize = 100;
/// The maximum number of header lines in a response, as in curl.
const MAX_HEADERS: usize = 5000;
/// Headers that set the end of a body. In an odd form they are an error: clients and proxies read them differently.
const OF_FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

/// The facts of a response's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// 100–999.
    pub status: u16,
    /// Bytes of the head, its empty line included.
    pub length: usize,
    /// Where the body ends.
    pub framing: Framing,
    /// Whether the connection may be used again.
    pub keep_alive: bool,
}

/// Where a body ends (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body: the request was HEAD, or the status is 1xx, 204, or 304.
    None,
    /// After this number of bytes.
    Length(u64),
    /// After its last chunk.
    Chunked,
    /// Where the server closes the connection.
    UntilClose,
}

/// A violation of HTTP or of a limit in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The head isn't HTTP/1.
    #[error("the answer is not HTTP/1: {0}")]
    Head(httparse::Error),
    /// The head, or the trailer section, is too long.
    #[error("the answer's header section is too long")]
    HeadTooLarge,
    /// A header that sets the end of the body, in a form that clients read differently.
    #[error(
        "the answer's content-length or transfer-encoding has an odd form (a space before its colon, or more)"
    )]
    Ambiguous,
    /// `Content-Length` isn't one number.
    #[error("the answer has a bad content-length")]
    ContentLength,
    /// A transfer coding that was not requested.
    #[error("the answer has a transfer-encoding other than chunked")]
    TransferEncoding,
    /// A chunk's framing is broken.
    #[error("the answer has a broken chunk")]
    Chunk,
    /// The body is too long.
    #[error("the answer's body is longer than the workload's `max_body` (64 MiB unless said)")]
    BodyTooLarge,
    /// 101, which was not requested.
    #[error("the server switched protocols unasked")]
    SwitchedProtocols,
}

/// Parses a response's head from the beginning of `bytes`; `None` if it isn't whole yet.
///
/// `head_request` is true if the request was HEAD. `on_header` receives each header of a whole head. Header lines that
/// RFC 9112 forbids and browsers accept are accepted: folded ones are joined by a space, a space before the colon is
/// dropped, and lines without a valid name are skipped.
///
/// # Errors
/// When the head isn't HTTP/1, contradicts itself, or sets the end of the body in an odd form.
pub fn parse_response_head(
    bytes: &[u8],
    head_request: bool,
    on_header: &mut dyn FnMut(&str, &[u8]),
) -> Result<Option<Head>, Fault> {
    let mut space = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut space,
    );
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return parse_odd_head(bytes, head_request, error, on_header),
    };
    let status = response.code.unwrap_or_default();
    let mut facts = MessageFraming::new(response.version == Some(1));
    for header in response.headers.iter() {
        facts.note(header.name, header.value)?;
        on_header(header.name, header.value);
    }
    facts.head(status, length, head_request).map(Some)
}

/// As [`parse_response_head`], of a head that the strict parser rejected with `error`.
fn parse_odd_head(
    bytes: &[u8],
    head_request: bool,
    error: httparse::Error,
    on_header: &mut dyn FnMut(&str, &[u8]),
) -> Result<Option<Head>, Fault> {
    let mut lines = Lines { bytes, at: 0 };
    // Empty lines may precede the status line (RFC 9112, section 2.2).
    let is_first = |line: &&[u8]| !line.is_empty();
    if std::iter::from_fn(|| lines.next()).find(is_first).is_none() {
        return Err(Fault::Head(error));
    }
    let mut first = httparse::Response::new(&mut []);
    first.parse(&bytes[..lines.at]).map_err(Fault::Head)?;
    let Some(status) = first.code else {
        return Err(Fault::Head(error));
    };
    let mut facts = MessageFraming::new(first.version == Some(1));
    let mut headers = Vec::new();
    loop {
        let Some(line) = lines.next() else {
            return Ok(None);
        };
        if line.is_empty() {
            break;
        }
        if line.contains(&b'\0') || line.contains(&b'\r') {
            return Err(Fault::Head(httparse::Error::HeaderValue));
        }
        if headers.len() == MAX_HEADERS {
            return Err(Fault::Head(httparse::Error::TooManyHeaders));
        }
        if !matches!(line[0], b' ' | b'\t') {
            headers.push(OddHeader::new(line)?);
        } else if let Some(last) = headers.last_mut() {
            last.fold(line);
        } else {
            return Err(Fault::Head(error));
        }
    }
    for header in &headers {
        if let Some(name) = header.name {
            facts.note(name, &header.value)?;
            on_header(name, &header.value);
        }
    }
    facts.head(status, lines.at, head_request).map(Some)
}

/// Whole lines, without their ends.
struct Lines<'a> {
    bytes: &'a [u8],
    /// Where the next line begins.
    at: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        self.at += end + 1;
        let line = &rest[..end];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// A header line that may break RFC 9112.
struct OddHeader<'a> {
    /// `None` for a skipped line.
    name: Option<&'a str>,
    value: Cow<'a, [u8]>,
}

impl<'a> OddHeader<'a> {
    fn new(line: &'a [u8]) -> Result<Self, Fault> {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let trimmed = name.trim_ascii_end();
        let lower = trimmed.to_ascii_lowercase();
        let of_framing = |known: &str| {
            lower
                .windows(known.len())
                .any(|part| part == known.as_bytes())
        };
        let is_exact = colon.is_some()
            && OF_FRAMING
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        if OF_FRAMING.into_iter().any(of_framing) && !is_exact {
            return Err(Fault::Ambiguous);
        }
        let is_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        let is_sound = colon.is_some() && !trimmed.is_empty() && trimmed.iter().all(is_token);
        let name = std::str::from_utf8(trimmed).ok().filter(|_| is_sound);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        Ok(Self {
            name,
            value: Cow::Borrowed(value),
        })
    }

    /// Appends a folded line (RFC 9112, section 5.2).
    fn fold(&mut self, line: &[u8]) {
        let value = self.value.to_mut();
        if !value.is_empty() {
            value.push(b' ');
        }
        value.extend_from_slice(line.trim_ascii());
    }
}

/// The framing facts in the headers.
struct MessageFraming {
    keep_alive: bool,
    length: Option<u64>,
    chunked: bool,
    http11: bool,
}

impl MessageFraming {
    fn new(http11: bool) -> Self {
        Self {
            keep_alive: http11,
            length: None,
            chunked: false,
            http11,
        }
    }

    /// Returns the facts of a head of `length` bytes.
    fn head(mut self, status: u16, length: usize, head_request: bool) -> Result<Head, Fault> {
        let framing = self.framing(status, head_request)?;
        Ok(Head {
            status,
            length,
            framing,
            keep_alive: self.keep_alive && framing != Framing::UntilClose,
        })
    }

    fn note(&mut self, name: &str, value: &[u8]) -> Result<(), Fault> {
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                if has_token(value, b"close") {
                    self.keep_alive = false;
                } else if !self.http11 && has_token(value, b"keep-alive") {
                    self.keep_alive = true;
                }
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                for part in value.split(|b| *b == b',') {
                    let length = digits(part.trim_ascii()).ok_or(Fault::ContentLength)?;
                    if self.length.is_some_and(|before| before != length) {
                        return Err(Fault::ContentLength);
                    }
                    self.length = Some(length);
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                // RFC 2616's name for an unencoded body.
                if value.trim_ascii().eq_ignore_ascii_case(b"identity") {
                    return Ok(());
                }
                if self.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Fault::TransferEncoding);
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&mut self, status: u16, head_request: bool) -> Result<Framing, Fault> {
        if head_request || status < 200 || status == 204 || status == 304 {
            return Ok(Framing::None);
        }
        if self.chunked {
            if !self.http11 {
                return Err(Fault::TransferEncoding);
            }
            // Both are present: the chunks count, and the connection is not reused.
            self.keep_alive &= self.length.is_none();
            return Ok(Framing::Chunked);
        }
        Ok(self.length.map_or(Framing::UntilClose, Framing::Length))
    }
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value
        .split(|b| *b == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// Parses a number of decimal digits alone.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str, head_request: bool) -> Result<Option<Head>, Fault> {
        let text = text.replace('\n', "\r\n");
        parse_response_head(text.as_bytes(), head_request, &mut |_, _| {})
    }

    fn framing(headers: &str) -> Result<(Framing, bool), Fault> {
        let head = head(&format!("HTTP/1.1 200 OK\n{headers}\n"), false)?.expect("a whole head");
        Ok((head.framing, head.keep_alive))
    }

    #[test]
    fn framing_follows_the_rfc() {
        for (headers, expected) in [
            ("Content-Length: 5\n", Ok((Framing::Length(5), true))),
            (
                "content-length: 5\nCONTENT-LENGTH: 5, 5\n",
                Ok((Framing::Length(5), true)),
            ),
            (
                "Content-Length: 5\nConnection: x, Close\n",
                Ok((Framing::Length(5), false)),
            ),
            ("Transfer-Encoding: Chunked\n", Ok((Framing::Chunked, true))),
            (
                "Transfer-Encoding: chunked\nContent-Length: 5\n",
                Ok((Framing::Chunked, false)),
            ),
            ("", Ok((Framing::UntilClose, false))),
            (
                "Content-Length: 5\nContent-Length: 6\n",
                Err(Fault::ContentLength),
            ),
            ("Content-Length: +5\n", Err(Fault::ContentLength)),
            ("Content-Length:\n", Err(Fault::ContentLength)),
            (
                "Content-Length: 99999999999999999999\n",
                Err(Fault::ContentLength),
            ),
            (
                "Transfer-Encoding: identity\nContent-Length: 5\n",
                Ok((Framing::Length(5), true)),
            ),
            (
                "Transfer-Encoding: identity\n",
                Ok((Framing::UntilClose, false)),
            ),
            (
                "Transfer-Encoding:\n chunked\n",
                Ok((Framing::Chunked, true)),
            ),
            (
                "X(Odd): a\nContent-Length: 5\n",
                Ok((Framing::Length(5), true)),
            ),
            ("Content-Length: 1\n 2\n", Err(Fault::ContentLength)),
            ("Content-Length : 5\n", Err(Fault::Ambiguous)),
            (
                "Transfer-Encoding\t: chunked\nContent-Length: 5\n",
                Err(Fault::Ambiguous),
            ),
            ("(Content-Length): 5\n", Err(Fault::Ambiguous)),
            ("X Transfer-Encoding: chunked\n", Err(Fault::Ambiguous)),
            ("X: 1\nContent-Length\n", Err(Fault::Ambiguous)),
            (
                "Transfer-Encoding: chunked, identity\n",
                Err(Fault::TransferEncoding),
            ),
            (
                "Transfer-Encoding: gzip, chunked\n",
                Err(Fault::TransferEncoding),
            ),
        ] {
            assert_eq!(framing(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn some_answers_have_no_body_whatever_they_say() {
        for (status, head_request) in [
            ("204", false),
            ("304", false),
            ("100", false),
            ("200", true),
        ] {
            let text = format!("HTTP/1.1 {status} X\nContent-Length: 5\n\n");
            let found = head(&text, head_request).unwrap().unwrap();
            assert_eq!(
                (found.framing, found.keep_alive),
                (Framing::None, true),
                "{status}"
            );
        }
    }

    #[test]
    fn http_1_0_closes_unless_it_says_otherwise() {
        let found = |connection: &str| {
            let text = format!("HTTP/1.0 200 OK\nContent-Length: 0\n{connection}\n");
            head(&text, false).unwrap().unwrap().keep_alive
        };
        assert!(!found(""));
        assert!(found("Connection: Keep-Alive\n"));
    }

    #[test]
    fn a_head_that_is_not_whole_is_none_and_garbage_is_a_fault() {
        assert_eq!(head("HTTP/1.1 200 OK\nA: b\n", false), Ok(None));
        assert!(matches!(head("HELO there\n\n", false), Err(Fault::Head(_))));
        assert!(matches!(framing(" folded: first\n"), Err(Fault::Head(_))));
        assert!(matches!(framing("A: b\0\n"), Err(Fault::Head(_))));
        assert!(matches!(framing("A: b\rC: d\n"), Err(Fault::Head(_))));
        let many = "A: b\n".repeat(USUAL_HEADERS + 1) + "Content-Length: 5\n";
        assert_eq!(framing(&many), Ok((Framing::Length(5), true)));
        let many = "A: b\n".repeat(MAX_HEADERS + 1);
        assert!(matches!(
            framing(&many),
            Err(Fault::Head(httparse::Error::TooManyHeaders))
        ));
    }

    #[test]
    fn odd_header_lines_are_read_as_browsers_read_them() {
        let text = "HTTP/1.1 200 OK\nX-Fold: one,\n  two\n\tthree\nX-Odd : a\nX(Odd): b\nno colon\n gone, too\n\
                    X-Empty:\nLast: c\n\n";
        let mut seen = Vec::new();
        let text = text.replace('\n', "\r\n");
        let head = parse_response_head(text.as_bytes(), true, &mut |name, value| {
            seen.push(format!("{name}={}", String::from_utf8_lossy(value)));
        });
        assert_eq!(head.unwrap().unwrap().length, text.len());
        assert_eq!(
            seen,
            ["X-Fold=one, two three", "X-Odd=a", "X-Empty=", "Last=c"]
        );
        for end in 0..text.len() {
            assert_eq!(
                parse_response_head(&text.as_bytes()[..end], true, &mut |_, _| {}),
                Ok(None)
            );
        }
    }
}
