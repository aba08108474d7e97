//! mbox: messages one after another, each behind a line that begins with `From `.
//!
//! What is written here comes back as it was, byte for byte. What other programs write is read as Dovecot reads it: a
//! separator follows an empty line and has a date (RFC 4155), or stands where the message's `Content-Length` ends. In a
//! file whose first separator has no date, a separator is followed by a header field. Any other line that begins with
//! `From ` is text.
//!
//! The marks of a message, such as that it was read, are fields in front of its head ([`crate::marks`]).

use std::collections::VecDeque;
use std::io::{self, BufRead, Cursor, Write};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::marks::{self, MARK_BYTES};
use crate::message::{Message, Read};

const FROM: &[u8] = b"From ";
/// Some programs begin a text file with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Longest separator. A longer line is text.
const FROM_BYTES: usize = 1024;

/// Reads the messages of an mbox.
#[derive(Debug)]
pub struct Mbox<R> {
    reader: R,
    /// Bytes that were read, and are to be read again before the rest of the reader.
    again: Cursor<Vec<u8>>,
    /// Pieces of lines that were looked at ahead of their turn.
    peeked: VecDeque<Vec<u8>>,
    most: usize,
    /// The separator in front of the next message.
    begun: Option<Vec<u8>>,
    /// Messages so far.
    count: u64,
    has_started: bool,
    /// The first separator has a date, so all have.
    is_dated: bool,
    /// No `Content-Length` was wrong yet.
    trusts_lengths: bool,
}

impl<R: BufRead> Mbox<R> {
    /// Takes messages of at most so many bytes.
    pub fn new(reader: R, most: usize) -> Self {
        Self {
            reader,
            again: Cursor::default(),
            peeked: VecDeque::new(),
            most,
            begun: None,
            count: 0,
            has_started: false,
            is_dated: false,
            trusts_lengths: true,
        }
    }

    /// A piece of a line, at most as long as a separator: memory is bounded whatever the line.
    fn piece(&mut self) -> io::Result<Vec<u8>> {
        match self.peeked.pop_front() {
            Some(piece) => Ok(piece),
            None => self.read_piece(),
        }
    }

    fn read_piece(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        let mut again = io::Read::take(&mut self.again, FROM_BYTES as u64);
        again.read_until(b'\n', &mut piece)?;
        if !piece.ends_with(b"\n") && piece.len() < FROM_BYTES {
            let room = (FROM_BYTES - piece.len()) as u64;
            io::Read::take(&mut self.reader, room).read_until(b'\n', &mut piece)?;
        }
        Ok(piece)
    }

    /// Has these bytes read once more, before what follows.
    fn read_again(&mut self, mut bytes: Vec<u8>) {
        bytes.extend(self.peeked.drain(..).flatten());
        io::Read::read_to_end(&mut self.again, &mut bytes).expect("memory can be read");
        self.again = Cursor::new(bytes);
    }

    /// Returns true for a separator, given that it stands where one may.
    fn is_separator(&mut self, piece: &[u8]) -> io::Result<bool> {
        if !piece.starts_with(FROM) {
            return Ok(false);
        }
        match self.is_dated {
            true => Ok(received(piece).is_some()),
            false => self.is_field_next(),
        }
    }

    fn is_field_next(&mut self) -> io::Result<bool> {
        if self.peeked.is_empty() {
            let piece = self.read_piece()?;
            self.peeked.push_back(piece);
        }
        Ok(self.peeked.front().is_some_and(|piece| is_field(piece)))
    }

    fn next_message(&mut self) -> io::Result<Option<Read>> {
        if !self.has_started {
            self.has_started = true;
            self.begun = self.first()?;
        }
        let Some(begun) = self.begun.take() else {
            return Ok(None);
        };
        self.count += 1;
        let mut body = Body::new(self.most);
        loop {
            let piece = self.piece()?;
            if body.is_length_wrong(piece.is_empty())
                && let Some(tail) = body.take_from_separator()
            {
                self.trusts_lengths = false;
                self.read_again([tail, piece].concat());
                self.begun = Some(self.piece()?);
                break;
            }
            if piece.is_empty() {
                break;
            }
            if body.can_end() && self.is_separator(&piece)? && body.ends_here() {
                self.begun = Some(piece);
                break;
            }
            body.push(&piece, self.trusts_lengths);
        }
        let found = body.finish().map(|bytes| message(bytes, &begun));
        let found = found.filter(|message| message.bytes.len() <= self.most);
        Ok(Some(match found {
            Some(message) => Read::Message(message),
            None => Read::TooLarge(format!("message {}", self.count)),
        }))
    }

    /// The first separator. The text in front of it counts for nothing, unless it is a message itself.
    fn first(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (mut is_line_start, mut is_behind_empty, mut is_first) = (true, true, true);
        loop {
            let mut piece = self.piece()?;
            if is_first && piece.starts_with(BYTE_ORDER_MARK) {
                piece.drain(..BYTE_ORDER_MARK.len());
            }
            if piece.is_empty() || (is_first && is_field(&piece)) {
                return Ok(None);
            }
            if is_line_start && piece.starts_with(FROM) {
                self.is_dated = received(&piece).is_some();
                if self.is_dated || (is_behind_empty && self.is_field_next()?) {
                    return Ok(Some(piece));
                }
            }
            is_first = false;
            is_behind_empty = is_line_start && is_empty_line(&piece);
            is_line_start = piece.ends_with(b"\n");
        }
    }
}

impl<R: BufRead> Iterator for Mbox<R> {
    type Item = io::Result<Read>;

    fn next(&mut self) -> Option<io::Result<Read>> {
        self.next_message().transpose()
    }
}

/// A message while it is read, as it stands in the file, up to a bound; beyond it, nothing is kept.
struct Body {
    bytes: Option<Vec<u8>>,
    /// Bytes so far, kept or not.
    count: usize,
    most: usize,
    is_line_start: bool,
    is_behind_empty: bool,
    has_head: bool,
    /// Where the message ends by its `Content-Length`.
    end: Option<usize>,
    /// The first line before that end that looks like a separator.
    separator: Option<usize>,
}

impl Body {
    fn new(most: usize) -> Self {
        Self {
            bytes: Some(Vec::new()),
            count: 0,
            // The marks, the line ends behind a message, and signs of quotation are no part of the message.
            most: most.saturating_add(most / 4).saturating_add(MARK_BYTES),
            is_line_start: true,
            is_behind_empty: false,
            has_head: false,
            end: None,
            separator: None,
        }
    }

    /// Returns true where the next line may be a separator.
    fn can_end(&self) -> bool {
        self.is_line_start && (self.is_behind_empty || self.end == Some(self.count))
    }

    /// Notes a line that looks like a separator. Returns false if the message goes on behind it.
    fn ends_here(&mut self) -> bool {
        let is_within = self.end.is_some_and(|end| self.count < end);
        if is_within {
            self.separator.get_or_insert(self.count);
        }
        !is_within
    }

    /// Returns true if the message has gone on, or the file has ended, where the `Content-Length` doesn't say so.
    fn is_length_wrong(&self, is_file_end: bool) -> bool {
        // An empty line follows a message.
        let is_past = |end| self.count > end + 2;
        self.end
            .is_some_and(|end| is_past(end) || (is_file_end && self.count < end))
    }

    /// Takes off everything from the first line on that looked like a separator.
    fn take_from_separator(&mut self) -> Option<Vec<u8>> {
        self.end = None;
        let at = self.separator.take()?;
        let bytes = self.bytes.as_mut()?;
        Some(bytes.split_off(at))
    }

    fn push(&mut self, piece: &[u8], trusts_length: bool) {
        let is_empty = self.is_line_start && is_empty_line(piece);
        if let Some(bytes) = &mut self.bytes {
            match bytes.len() + piece.len() <= self.most {
                true => bytes.extend_from_slice(piece),
                // Without its bytes, nothing can be read again.
                false => (self.bytes, self.end) = (None, None),
            }
        }
        self.count += piece.len();
        if is_empty && !self.has_head {
            self.has_head = true;
            let head = self.bytes.as_deref().filter(|_| trusts_length);
            let length = head.and_then(marks::content_length);
            let end = length.and_then(|length| self.count.checked_add(length));
            self.end = end.filter(|end| *end <= self.most);
        }
        self.is_line_start = piece.ends_with(b"\n");
        self.is_behind_empty = is_empty;
    }

    /// The message without signs of quotation and the empty line behind it.
    fn finish(self) -> Option<Vec<u8>> {
        let raw = self.bytes?;
        let mut bytes = Vec::with_capacity(raw.len());
        for line in raw.split_inclusive(|byte| *byte == b'\n') {
            bytes.extend_from_slice(&line[usize::from(is_quoted(line))..]);
        }
        for end in [&b"\r\n"[..], b"\n"] {
            let is_empty_line = bytes
                .strip_suffix(end)
                .is_some_and(|before| before.is_empty() || before.ends_with(b"\n"));
            if is_empty_line {
                bytes.truncate(bytes.len() - end.len());
                break;
            }
        }
        Some(bytes)
    }
}

fn is_empty_line(line: &[u8]) -> bool {
    matches!(line, b"\n" | b"\r\n")
}

/// Returns true if the line begins a header field.
fn is_field(line: &[u8]) -> bool {
    let name = line.iter().position(|byte| *byte == b':').unwrap_or(0);
    name > 0 && line[..name].iter().all(u8::is_ascii_graphic)
}

/// Returns true if a line is `From ` behind one `>` or more.
fn is_quoted(line: &[u8]) -> bool {
    let bare = line.iter().position(|byte| *byte != b'>').unwrap_or(0);
    bare > 0 && line[bare..].starts_with(FROM)
}

fn message(mut bytes: Vec<u8>, begun: &[u8]) -> Message {
    let marks = marks::take(&mut bytes);
    Message {
        bytes,
        received_us: received(begun),
        flags: marks.flags,
        keywords: marks.keywords,
    }
}

/// The moment of a separator: `From ada@example Sat Jan  3 01:05:34 1996`, UTC.
fn received(begun: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(begun);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    // The sender may have spaces, and some write a zone: the moment is where it can be read.
    (2..words.len()).find_map(|at| {
        let [month, day, clock] = words.get(at..at + 3)?.try_into().ok()?;
        let years = words.get(at + 3..)?.iter().take(2);
        let year = years
            .into_iter()
            .find(|word| word.len() == 4 && word.parse::<u16>().is_ok())?;
        let text = format!("{month} {day} {clock} {year}");
        let moment = DateTime::strptime("%b %d %H:%M:%S %Y", &text)
            .or_else(|_| DateTime::strptime("%b %d %H:%M %Y", &text));
        let moment = moment.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
        Some(moment.as_microsecond())
    })
}

/// Writes a message behind those that are there.
///
/// # Errors
/// The disk's.
pub fn write_mbox(to: &mut impl Write, message: &Message) -> io::Result<()> {
    let micros = message.received_us.unwrap_or_default();
    let moment = jiff::Timestamp::from_microsecond(micros).unwrap_or_default();
    let moment = moment.strftime("%a %b %e %H:%M:%S %Y");
    writeln!(to, "From MAILER-DAEMON {moment}")?;
    marks::write(to, message)?;
    for line in message.bytes.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(FROM) || is_quoted(line) {
            to.write_all(b">")?;
        }
        to.write_all(line)?;
    }
    if !message.bytes.ends_with(b"\n") {
        to.write_all(b"\n")?;
    }
    to.write_all(b"\n")
}
