//! The head of a response: status, headers, and what they say about the body and the connection.
//!
//! Pure: bytes in, facts out. It knows neither sockets nor what the request was for.

use std::mem::MaybeUninit;

/// Most header lines of a response.
const MAX_HEADERS: usize = 100;

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
    /// There is none: the request was HEAD, or the status is 1xx, 204, or 304.
    None,
    /// After so many bytes.
    Length(u64),
    /// After its last chunk.
    Chunked,
    /// Where the server closes the connection.
    UntilClose,
}

/// What breaks HTTP or a limit in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The head isn't HTTP/1.
    #[error("the answer is not HTTP/1: {0}")]
    Head(httparse::Error),
    /// The head, or the trailer section, is too long.
    #[error("the answer's header section is too long")]
    HeadTooLarge,
    /// `Content-Length` isn't one number.
    #[error("the answer has a bad content-length")]
    ContentLength,
    /// A transfer coding that was not asked for.
    #[error("the answer has a transfer-encoding other than chunked")]
    TransferEncoding,
    /// A chunk's frame is broken.
    #[error("the answer has a broken chunk")]
    Chunk,
    /// The body is too long.
    #[error("the answer's body is too long")]
    BodyTooLarge,
    /// 101, which nobody asked for.
    #[error("the server switched protocols unasked")]
    SwitchedProtocols,
}

/// Reads a response's head from the beginning of `bytes`; `None` when it isn't whole yet.
///
/// `head_request` says that the request was HEAD. `on_header` gets each header of a whole head.
///
/// # Errors
/// When the head isn't HTTP/1, or contradicts itself.
pub fn parse_response_head(
    bytes: &[u8],
    head_request: bool,
    on_header: &mut dyn FnMut(&str, &[u8]),
) -> Result<Option<Head>, Fault> {
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut space,
    );
    let length = match parsed.map_err(Fault::Head)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let status = response.code.unwrap_or_default();
    let mut facts = MessageFraming::new(response.version == Some(1));
    for header in response.headers.iter() {
        facts.note(header.name, header.value)?;
        on_header(header.name, header.value);
    }
    let framing = facts.framing(status, head_request)?;
    let keep_alive = facts.keep_alive && framing != Framing::UntilClose;
    Ok(Some(Head {
        status,
        length,
        framing,
        keep_alive,
    }))
}

/// What the headers say that matters to the framing.
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
            // Both: the chunks hold, and the connection is not trusted any further.
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

/// A number of decimal digits alone.
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
        let many = "A: b\n".repeat(MAX_HEADERS + 1);
        assert!(matches!(
            framing(&many),
            Err(Fault::Head(httparse::Error::TooManyHeaders))
        ));
    }
}
