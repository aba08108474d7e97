//! Plain TCP and UDP: the workload defines the bytes to send and the end of the answer. The answer is the response.

use std::fmt::Write as _;
use std::time::Duration;

use lab_workload::{
    AnswerEnd, LengthField, ProtocolRequest, RawBytes, RawRequest, Speech, Template, UserScope,
    Workload,
};
use regex::bytes::Regex;

use lab_client::dialogue::{Dialogue, End, Out, Reply, Transport, Turn};
use lab_client::{RequestId, Side, Unmade};

/// Longest match of the pattern that ends an answer: what is searched again when more bytes arrive.
const MAX_MATCH: usize = 4 << 10;
/// Longest payload of a datagram over IPv4 (RFC 768: 65,535 bytes less both headers).
const MAX_DATAGRAM: usize = 65_507;

/// The dialogue of plain TCP or UDP.
pub struct Raw {
    transport: Transport,
    /// By the request's index.
    requests: Vec<Planned>,
}

/// A request, prepared.
struct Planned {
    send: Option<SentBytes>,
    end: AnswerReader,
}

/// Bytes to send, prepared.
pub(crate) enum SentBytes {
    Text(Template),
    Hex(Template),
    Bytes(bytes::Bytes),
}

/// The end of an answer, prepared.
#[derive(Debug, Clone)]
enum AnswerReader {
    Nothing,
    Line,
    Bytes(u64),
    Length(LengthField),
    /// `None` if the pattern does not compile.
    Pattern(Option<Regex>),
    Close,
    Silence(Duration),
    Datagram,
}

/// A request, and the progress of its answer.
#[derive(Default)]
pub struct RawExchange {
    request: usize,
    message: Vec<u8>,
    /// Whether the request sends something.
    sends: bool,
    /// Whether the exchange has had its first turn, which has no input.
    is_started: bool,
    text: String,
    answer: RawAnswer,
}

/// The progress of an answer.
#[derive(Debug, Default)]
pub struct RawAnswer {
    /// Unconsumed bytes already searched for the pattern.
    searched: usize,
}

/// A connection of plain TCP or UDP.
#[derive(Default)]
pub struct RawLine {
    /// Whether bytes arrived after the previous answer.
    unread: bool,
}

impl Raw {
    /// Prepares the requests of a workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        let nothing = || Planned {
            send: None,
            end: AnswerReader::Nothing,
        };
        let requests = workload
            .requests()
            .map(|request| match request.said.as_deref() {
                Some(ProtocolRequest::Raw(raw)) => Planned::new(raw, workload),
                _ => nothing(),
            });
        Self {
            requests: requests.collect(),
            transport: match workload.speech {
                Speech::Udp => Transport::Udp,
                _ => Transport::Tcp,
            },
        }
    }
}

impl Planned {
    fn new(raw: &RawRequest, workload: &Workload) -> Self {
        let send = raw.send.as_ref();
        let send = send.map(|send| SentBytes::new(send, workload));
        Self {
            send,
            end: AnswerReader::new(&raw.until),
        }
    }
}

impl SentBytes {
    /// Prepares bytes of a workload's request.
    pub(crate) fn new(bytes: &RawBytes, workload: &Workload) -> Self {
        match bytes {
            RawBytes::Text(text) => Self::Text(text.clone()),
            RawBytes::Hex(text) => Self::Hex(text.clone()),
            RawBytes::File(place) => {
                let file = workload.files.get(*place);
                Self::Bytes(file.map(|file| file.content().clone()).unwrap_or_default())
            }
        }
    }

    /// Appends the bytes; `text` is a buffer.
    pub(crate) fn render(
        &self,
        scope: &mut UserScope,
        text: &mut String,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Unmade> {
        text.clear();
        match self {
            Self::Bytes(content) => bytes.extend_from_slice(content),
            Self::Text(template) => {
                template.render(scope, text)?;
                bytes.extend_from_slice(text.as_bytes());
            }
            Self::Hex(template) => {
                template.render(scope, text)?;
                append_hex(text, bytes).map_err(|what| Unmade::Failed(what.into()))?;
            }
        }
        Ok(())
    }
}

impl AnswerReader {
    fn new(end: &AnswerEnd) -> Self {
        match end {
            AnswerEnd::Nothing => Self::Nothing,
            AnswerEnd::Line => Self::Line,
            AnswerEnd::Bytes(count) => Self::Bytes(*count),
            AnswerEnd::Length(field) => Self::Length(*field),
            AnswerEnd::Pattern(pattern) => Self::Pattern(AnswerEnd::compiled(pattern).ok()),
            AnswerEnd::Close => Self::Close,
            AnswerEnd::Silence(span) => Self::Silence(*span),
            AnswerEnd::Datagram => Self::Datagram,
        }
    }
}

/// Reads the bytes of an answer up to its end: moves them from `heard` to `body`, and returns true once it is whole.
///
/// # Errors
/// Describes an answer that can't have this end.
fn read(
    end: &AnswerReader,
    answer: &mut RawAnswer,
    heard: &mut &[u8],
    body: &mut Vec<u8>,
) -> Result<bool, String> {
    let (take, is_whole) = match end {
        AnswerReader::Nothing => (0, true),
        AnswerReader::Line => match memchr::memchr(b'\n', heard) {
            Some(at) => (at + 1, true),
            None => (heard.len(), false),
        },
        AnswerReader::Bytes(count) => return Ok(reaches(*count, heard, body)),
        AnswerReader::Length(field) => return of_length(field, heard, body),
        AnswerReader::Pattern(None) => return Err("the pattern does not compile".to_owned()),
        AnswerReader::Pattern(Some(pattern)) => {
            let from = answer.searched.saturating_sub(MAX_MATCH);
            match pattern.find_at(heard, from) {
                Some(found) => (found.end(), true),
                None => {
                    answer.searched = heard.len();
                    (0, false)
                }
            }
        }
        AnswerReader::Close | AnswerReader::Silence(_) => (heard.len(), false),
        AnswerReader::Datagram => (heard.len(), true),
    };
    body.extend_from_slice(&heard[..take]);
    *heard = &heard[take..];
    Ok(is_whole)
}

/// Moves bytes from `heard` to `body` until it has `count` of them. Returns true once it does.
fn reaches(count: u64, heard: &mut &[u8], body: &mut Vec<u8>) -> bool {
    let left = count.saturating_sub(body.len() as u64);
    let (take, is_whole) = match usize::try_from(left) {
        Ok(left) if left <= heard.len() => (left, true),
        _ => (heard.len(), false),
    };
    body.extend_from_slice(&heard[..take]);
    *heard = &heard[take..];
    is_whole
}

/// Reads an answer whose head has its length.
fn of_length(field: &LengthField, heard: &mut &[u8], body: &mut Vec<u8>) -> Result<bool, String> {
    if !reaches(field.head() as u64, heard, body) {
        return Ok(false);
    }
    let whole = field.whole(body);
    let whole = whole.ok_or("the length in the answer's header is out of range".to_owned())?;
    Ok(reaches(whole, heard, body))
}

impl RawAnswer {
    /// Reads an answer with this end: moves bytes from `heard` to `body`, and returns true once it is whole.
    ///
    /// # Errors
    /// Describes an answer that can't have this end.
    pub fn read(
        &mut self,
        end: &AnswerEnd,
        heard: &mut &[u8],
        body: &mut Vec<u8>,
    ) -> Result<bool, String> {
        read(&AnswerReader::new(end), self, heard, body)
    }
}

/// Appends the bytes of hexadecimal digits; whitespace between them doesn't count.
fn append_hex(text: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    let mut half = None;
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        let digit = c.to_digit(16);
        let digit =
            digit.ok_or_else(|| format!("`{c}` in the hex text isn't a hexadecimal digit"))?;
        match half.take() {
            None => half = Some(digit as u8),
            Some(high) => bytes.push(high << 4 | digit as u8),
        }
    }
    match half {
        None => Ok(()),
        Some(_) => Err("the hex text has half a byte: its number of digits is odd".to_owned()),
    }
}

impl Dialogue for Raw {
    type Line = RawLine;
    type ExchangeState = RawExchange;

    const READS_BETWEEN: bool = true;

    fn transport(&self) -> Transport {
        self.transport
    }

    fn open(&self, _: &mut UserScope, talk: &mut RawExchange) -> Result<(), Unmade> {
        talk.message.clear();
        talk.request = usize::MAX;
        Ok(())
    }

    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut RawExchange,
    ) -> Result<(), Unmade> {
        talk.request = request as usize;
        talk.answer = RawAnswer::default();
        talk.is_started = false;
        talk.message.clear();
        let send = self.requests[talk.request].send.as_ref();
        talk.sends = send.is_some();
        if let Some(send) = send {
            send.render(scope, &mut talk.text, &mut talk.message)?;
        }
        if self.transport == Transport::Udp && talk.sends && talk.message.is_empty() {
            let what = "the datagram to send is empty; it needs at least one byte";
            return Err(Unmade::Failed(what.into()));
        }
        if self.transport == Transport::Udp && talk.message.len() > MAX_DATAGRAM {
            let length = talk.message.len();
            let what = format!("{length} bytes are more than a datagram has ({MAX_DATAGRAM})");
            return Err(Unmade::Failed(what.into()));
        }
        Ok(())
    }

    fn turn(
        &self,
        line: &mut RawLine,
        talk: &mut RawExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        out.say.append(&mut talk.message);
        line.unread = false;
        let Some(planned) = self.requests.get(talk.request) else {
            return Ok(Turn::Done(Reply::default()));
        };
        let reply = Reply {
            // The end of the answer may be wrong, and the rest of it still arrive.
            open: self.transport == Transport::Tcp,
            ..Reply::default()
        };
        let needs_input = !matches!(planned.end, AnswerReader::Nothing | AnswerReader::Bytes(0));
        if !std::mem::replace(&mut talk.is_started, true) && needs_input {
            return Ok(Turn::Listen);
        }
        Ok(
            match read(&planned.end, &mut talk.answer, heard, &mut out.body)? {
                true => Turn::Done(reply),
                false => Turn::Listen,
            },
        )
    }

    fn quiet_after(&self, talk: &RawExchange) -> Option<Duration> {
        match self.requests.get(talk.request)?.end {
            AnswerReader::Silence(span) => Some(span),
            _ => None,
        }
    }

    fn ended(&self, talk: &mut RawExchange, out: &mut Out, end: End) -> Option<Reply> {
        let ends = match (&self.requests.get(talk.request)?.end, end) {
            (AnswerReader::Close, End::Connection) => true,
            (AnswerReader::Silence(_), End::Connection) if !out.body.is_empty() => true,
            (AnswerReader::Silence(_), End::Silence) => false,
            _ => return None,
        };
        Some(Reply {
            ends,
            open: self.transport == Transport::Tcp,
            ..Reply::default()
        })
    }

    fn overhear(
        &self,
        line: &mut RawLine,
        heard: &mut &[u8],
        _: &mut Vec<u8>,
    ) -> Result<(), String> {
        match self.transport {
            Transport::Tcp => line.unread = !heard.is_empty(),
            // A late datagram is no answer of the next request.
            Transport::Udp => *heard = &[],
        }
        Ok(())
    }

    fn reports_end(&self) -> bool {
        // Over UDP it is a refusal by the server's host.
        self.transport == Transport::Udp
    }

    fn keeps(&self, line: &RawLine) -> bool {
        line.unread
    }

    fn only_listens(&self, talk: &RawExchange) -> bool {
        !talk.sends
    }

    fn spell(&self, _: Side, bytes: &[u8]) -> String {
        spelled(bytes)
    }
}

/// Returns a text as it is. In other bytes, those that are not printable ASCII are escaped, so that secrets among them
/// are still recognised and masked.
pub(crate) fn spelled(bytes: &[u8]) -> String {
    let is_plain = |c: char| !c.is_control() || c.is_ascii_whitespace();
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(is_plain) => text.trim_end_matches(['\r', '\n']).to_owned(),
        _ => {
            let mut text = String::with_capacity(bytes.len() * 2);
            for byte in bytes {
                match byte {
                    b' '..=b'~' => text.push(char::from(*byte)),
                    // Writing to memory can't fail.
                    byte => drop(write!(text, "\\x{byte:02x}")),
                }
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer, and the bytes after it.
    type Split = (Vec<u8>, Vec<u8>);

    /// Returns the answer, read in pieces of this many bytes.
    fn answer(end: &AnswerEnd, bytes: &[u8], piece: usize) -> Result<Option<Split>, String> {
        let end = AnswerReader::new(end);
        let (mut reader, mut body, mut kept) = (RawAnswer::default(), Vec::new(), Vec::new());
        let mut pieces = bytes.chunks(piece);
        while let Some(piece) = pieces.next() {
            kept.extend_from_slice(piece);
            let mut heard = &kept[..];
            let is_whole = read(&end, &mut reader, &mut heard, &mut body)?;
            let taken = kept.len() - heard.len();
            kept.drain(..taken);
            if is_whole {
                kept.extend(pieces.flatten());
                return Ok(Some((body, kept)));
            }
        }
        Ok(None)
    }

    #[test]
    fn answers_end_where_the_workload_says() {
        let length = |at, width, little, plus| {
            AnswerEnd::Length(LengthField {
                at,
                width,
                little,
                plus,
            })
        };
        let pattern = |text: &str| AnswerEnd::Pattern(text.to_owned());
        for (end, bytes, body) in [
            (
                AnswerEnd::Line,
                &b"STORED\r\nmore"[..],
                Some(&b"STORED\r\n"[..]),
            ),
            (AnswerEnd::Line, b"STORED\r", None),
            (AnswerEnd::Bytes(3), b"abcd", Some(b"abc")),
            (AnswerEnd::Bytes(0), b"abcd", Some(b"")),
            (AnswerEnd::Bytes(5), b"abcd", None),
            (length(0, 2, false, 0), b"\0\x02abc", Some(b"\0\x02ab")),
            (length(1, 2, true, -2), b"R\x03\0ab", Some(b"R\x03\0a")),
            (length(0, 4, false, 0), b"\0\0\0", None),
            (
                pattern(r"END\r\n"),
                b"VALUE\r\nEND\r\nx",
                Some(b"VALUE\r\nEND\r\n"),
            ),
            (pattern(r"(?m)^END$"), b"SEND\nEND\n", Some(b"SEND\nEND")),
            (pattern("END"), b"EN", None),
            (
                pattern(r"\xff\xd9"),
                b"\xff\xff\xd9\n",
                Some(b"\xff\xff\xd9"),
            ),
            (pattern("é"), b"caf\xc3\xa9!", Some(b"caf\xc3\xa9")),
            (AnswerEnd::Close, b"abc", None),
        ] {
            for piece in [1, 2, 100] {
                // A pattern that looks behind its match needs what follows it: whole answers only.
                if matches!(&end, AnswerEnd::Pattern(p) if p.contains('$')) && piece < 100 {
                    continue;
                }
                let read = answer(&end, bytes, piece).unwrap();
                let wanted = body.map(|body| (body.to_vec(), bytes[body.len()..].to_vec()));
                assert_eq!(read, wanted, "{end:?} {bytes:?} by {piece}");
            }
        }
        assert!(answer(&length(0, 1, false, -9), b"\x01a", 9).is_err());
        assert!(answer(&pattern("("), b"a", 9).is_err());
    }

    #[test]
    fn hex_becomes_bytes() {
        let mut bytes = Vec::new();
        append_hex("00 fF\n7f", &mut bytes).unwrap();
        assert_eq!(bytes, [0, 255, 127]);
        assert!(append_hex("0", &mut bytes).unwrap_err().contains("odd"));
        assert!(append_hex("0g", &mut bytes).unwrap_err().contains("`g`"));
    }

    #[test]
    fn text_is_shown_as_it_is_and_other_bytes_escaped() {
        assert_eq!(spelled(b"get key\r\n"), "get key");
        assert_eq!(spelled(b"\0\xffsesame\n"), r"\x00\xffsesame\x0a");
    }

    proptest! {
        #[test]
        fn pieces_do_not_change_the_answer(
            bytes in proptest::collection::vec(
                prop_oneof![proptest::sample::select(b"\n\0\x01\x02E".to_vec()), any::<u8>()], 0..80,
            ),
            piece in 1usize..9,
        ) {
            let field = LengthField { at: 1, width: 2, little: false, plus: 3 };
            for end in [
                AnswerEnd::Line,
                AnswerEnd::Bytes(20),
                AnswerEnd::Length(field),
                AnswerEnd::Pattern("EE".to_owned()),
            ] {
                prop_assert_eq!(
                    answer(&end, &bytes, piece).ok(),
                    answer(&end, &bytes, 1000).ok()
                );
            }
        }
    }
}
