//! mbox: a sequence of messages, each after a line that begins with `From `.
//!
//! Messages written here are read back byte for byte. Files of other programs are read as in Dovecot: a separator
//! follows an empty line and has a date (RFC 4155), or is where the message's `Content-Length` ends. In a file whose
//! first separator has no date, a separator is followed by a header field. Any other line that begins with `From ` is
//! text.
//!
//! The flags and keywords of a message are fields before its head ([`crate::marks`]).

use std::collections::VecDeque;
use std::io::{self, BufRead, Cursor, Write};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::marks::{self, MARK_BYTES};
use crate::message::{Message, Read};

const FROM: &[u8] = b"From ";
/// A prefix that some programs write to text files.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// The maximum length of a separator. A longer line is text.
const FROM_BYTES: usize = 1024;

/// Reads the messages of an mbox.
#[derive(Debug)]
pub struct Mbox<R> {
    reader: R,
    /// Bytes that are read again before the rest of the reader.
    again: Cursor<Vec<u8>>,
    /// Pieces of lines that were read ahead.
    peeked: VecDeque<Vec<u8>>,
    most: usize,
    /// The separator before the next message.
    begun: Option<Vec<u8>>,
    /// The number of messages so far.
    count: u64,
    has_started: bool,
    /// True if the first separator has a date: then all have.
    is_dated: bool,
    /// True until a `Content-Length` was wrong.
    trusts_lengths: bool,
}

impl<R: BufRead> Mbox<R> {
    /// Creates a reader for messages of at most `most` bytes.
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

    /// Reads a piece of a line, at most as long as a separator: memory is bounded for any line length.
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

    /// Puts bytes back, to be read again before the rest.
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

    /// Finds the first separator. Text before it is ignored, unless it is a message itself.
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

/// A message being read, with the bytes of the file up to a limit. Beyond the limit, no bytes are stored.
struct Body {
    bytes: Option<Vec<u8>>,
    /// The number of bytes so far, stored or not.
    count: usize,
    most: usize,
    is_line_start: bool,
    is_behind_empty: bool,
    has_head: bool,
    /// The end of the message by its `Content-Length`.
    end: Option<usize>,
    /// The position of the first apparent separator before that end.
    separator: Option<usize>,
}

impl Body {
    fn new(most: usize) -> Self {
        Self {
            bytes: Some(Vec::new()),
            count: 0,
            // Flags, keywords, line ends after a message, and quotation signs don't count as parts of the message.
            most: most.saturating_add(most / 4).saturating_add(MARK_BYTES),
            is_line_start: true,
            is_behind_empty: false,
            has_head: false,
            end: None,
            separator: None,
        }
    }

    /// Returns true if the next line may be a separator.
    fn can_end(&self) -> bool {
        self.is_line_start && (self.is_behind_empty || self.end == Some(self.count))
    }

    /// Records an apparent separator. Returns false if the message continues after it.
    fn ends_here(&mut self) -> bool {
        let is_within = self.end.is_some_and(|end| self.count < end);
        if is_within {
            self.separator.get_or_insert(self.count);
        }
        !is_within
    }

    /// Returns true if the message or the file doesn't end where the `Content-Length` ends.
    fn is_length_wrong(&self, is_file_end: bool) -> bool {
        // An empty line follows a message.
        let is_past = |end| self.count > end + 2;
        self.end
            .is_some_and(|end| is_past(end) || (is_file_end && self.count < end))
    }

    /// Removes and returns the bytes from the first apparent separator on.
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
                // Dropped bytes can't be read again.
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

    /// Returns the message without quotation signs and the empty line after it.
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

/// Returns true if a line is `From ` after one or more `>`.
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

/// Parses the time of a separator: `From ada@example Sat Jan  3 01:05:34 1996`, UTC.
fn received(begun: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(begun);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    // The sender may contain spaces, and some programs add a zone: any position with a valid time counts.
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

/// Appends a message to an mbox.
///
/// # Errors
/// If writing fails.
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
