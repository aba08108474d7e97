//! mbox: messages one after another, each behind a line that begins with `From `.
//!
//! What is written here comes back as it was, byte for byte. Its marks are fields in front of the head, which
//! reading takes off again; fields of the same names further down, which other programs write, are read and left
//! where they are.
//!
//! ```text
//! Status: RO
//! X-Status: AF
//! X-Keywords: $Junk work       where there are any
//! X-Plimsoll: no-line-end      where there are keywords, where the message has no line end at its end, and
//!                              where it could be taken for one of these two lines
//! ```

use std::io::{self, BufRead, Write};

use groupware_text::{KEYWORD_BYTES, KEYWORDS, keywords};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::message::{Flags, Message, Read};

const FROM: &[u8] = b"From ";
/// Longest line that parts messages. What is longer is text.
const FROM_BYTES: usize = 1024;
/// Bytes of a message in which its marks are looked for.
const HEAD_BYTES: usize = 256 << 10;
/// Bytes that the marks in front of a message take, at most.
const MARK_BYTES: usize = 128 + KEYWORDS * (KEYWORD_BYTES + 1);

/// Reads the messages of an mbox.
#[derive(Debug)]
pub struct Mbox<R> {
    reader: R,
    most: usize,
    /// The line before the next message.
    begun: Option<Vec<u8>>,
    /// Messages so far.
    count: u64,
    has_started: bool,
}

impl<R: BufRead> Mbox<R> {
    /// Takes messages of at most so many bytes.
    pub fn new(reader: R, most: usize) -> Self {
        Self {
            reader,
            most,
            begun: None,
            count: 0,
            has_started: false,
        }
    }

    /// A piece of a line, at most as long as what parts messages: memory is bounded whatever the line.
    fn piece(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        let mut reader = io::Read::take(&mut self.reader, FROM_BYTES as u64);
        reader.read_until(b'\n', &mut piece)?;
        Ok(piece)
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
        let mut is_line_start = true;
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                break;
            }
            if is_line_start && piece.starts_with(FROM) {
                self.begun = Some(piece);
                break;
            }
            let is_quoted = is_line_start && is_quoted(&piece);
            is_line_start = piece.ends_with(b"\n");
            body.push(&piece[usize::from(is_quoted)..]);
        }
        let found = body.finish().map(|bytes| message(bytes, &begun));
        let found = found.filter(|message| message.bytes.len() <= self.most);
        Ok(Some(match found {
            Some(message) => Read::Message(message),
            None => Read::TooLarge(format!("message {}", self.count)),
        }))
    }

    /// What is in front of the first message counts for nothing.
    fn first(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut is_line_start = true;
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                return Ok(None);
            }
            if is_line_start && piece.starts_with(FROM) {
                return Ok(Some(piece));
            }
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

/// Bytes up to a bound; beyond it, nothing is kept.
struct Body {
    bytes: Option<Vec<u8>>,
    most: usize,
}

impl Body {
    fn new(most: usize) -> Self {
        Self {
            bytes: Some(Vec::new()),
            most,
        }
    }

    fn push(&mut self, piece: &[u8]) {
        if let Some(bytes) = &mut self.bytes {
            // Neither the marks nor the line ends behind it are a part of the message.
            match bytes.len() + piece.len() <= self.most + MARK_BYTES {
                true => bytes.extend_from_slice(piece),
                false => self.bytes = None,
            }
        }
    }

    /// Without the empty line behind a message.
    fn finish(self) -> Option<Vec<u8>> {
        let mut bytes = self.bytes?;
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

/// Whether a line is `From ` behind one `>` or more.
fn is_quoted(line: &[u8]) -> bool {
    let bare = line.iter().position(|byte| *byte != b'>').unwrap_or(0);
    bare > 0 && line[bare..].starts_with(FROM)
}

fn message(mut bytes: Vec<u8>, begun: &[u8]) -> Message {
    let marks = match own_marks(&bytes) {
        Some((marks, length)) => {
            bytes.drain(..length);
            if marks.has_no_line_end && bytes.ends_with(b"\n") {
                bytes.pop();
            }
            marks
        }
        None => marks_in_head(&bytes),
    };
    Message {
        bytes,
        received_us: received(begun),
        flags: marks.flags,
        keywords: marks.keywords,
    }
}

const STATUS: &[u8] = b"Status: ";
const X_STATUS: &[u8] = b"X-Status: ";
const X_KEYWORDS: &[u8] = b"X-Keywords: ";
const X_PLIMSOLL: &[u8] = b"X-Plimsoll: ";
/// Among the words of the last of them: the line end behind the message is none of its own.
const NO_LINE_END: &str = "no-line-end";

/// What stands of a message in an mbox besides its bytes.
#[derive(Default)]
struct Marks {
    flags: Flags,
    keywords: Vec<String>,
    has_no_line_end: bool,
}

/// The marks that are written in front of a head, and how many bytes they take.
fn own_marks(bytes: &[u8]) -> Option<(Marks, usize)> {
    let mut rest = bytes;
    let mut marks = Marks::default();
    note(&mut marks.flags, take_line(&mut rest, STATUS)?);
    note(&mut marks.flags, take_line(&mut rest, X_STATUS)?);
    let mut after = rest;
    let words = take_line(&mut after, X_KEYWORDS);
    marks.keywords = words.map(keywords_of).unwrap_or_default();
    // Without the line behind it, another program's: it stays where it is.
    if let Some(more) = take_line(&mut after, X_PLIMSOLL) {
        let mut more = more.split(u8::is_ascii_whitespace);
        marks.has_no_line_end = more.any(|word| word == NO_LINE_END.as_bytes());
        rest = after;
    }
    Some((marks, bytes.len() - rest.len()))
}

/// Takes a line that begins so off the front, and gives what follows in it.
fn take_line<'a>(rest: &mut &'a [u8], begin: &[u8]) -> Option<&'a [u8]> {
    let value = rest.strip_prefix(begin)?;
    let end = value.iter().position(|byte| *byte == b'\n')?;
    *rest = &value[end + 1..];
    Some(&value[..end])
}

fn keywords_of(line: &[u8]) -> Vec<String> {
    keywords(String::from_utf8_lossy(line).split_ascii_whitespace())
}

/// The marks that another program has put among the fields of a head.
fn marks_in_head(bytes: &[u8]) -> Marks {
    let mut marks = Marks::default();
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    for line in head.split(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            break;
        }
        let value = |name: &[u8]| {
            let (begin, value) = line.split_at_checked(name.len())?;
            begin.eq_ignore_ascii_case(name).then_some(value)
        };
        for name in [&b"status:"[..], b"x-status:"] {
            note(&mut marks.flags, value(name).unwrap_or_default());
        }
        if let Some(words) = value(b"x-keywords:") {
            marks.keywords = keywords_of(words);
        }
    }
    marks
}

fn note(flags: &mut Flags, letters: &[u8]) {
    for letter in letters {
        match letter {
            b'R' => flags.read = true,
            b'A' => flags.answered = true,
            b'F' => flags.flagged = true,
            b'P' => flags.forwarded = true,
            b'T' => flags.draft = true,
            b'D' => flags.trashed = true,
            _ => {}
        }
    }
}

/// The moment in the line in front of a message: `From ada@example Sat Jan  3 01:05:34 1996`, UTC.
fn received(begun: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(begun).ok()?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    // The sender may have spaces, and some write a zone: the moment is where it can be read.
    (2..words.len()).find_map(|at| {
        let [month, day, clock] = words.get(at..at + 3)?.try_into().ok()?;
        let years = words.get(at + 3..)?.iter().take(2);
        let year = years
            .into_iter()
            .find(|word| word.len() == 4 && word.parse::<u16>().is_ok())?;
        let text = format!("{month} {day} {clock} {year}");
        let moment = DateTime::strptime("%b %d %H:%M:%S %Y", text).ok()?;
        let moment = moment.to_zoned(TimeZone::UTC).ok()?.timestamp();
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
    let flags = message.flags;
    let status = if flags.read { "RO" } else { "O" };
    let more = [
        (flags.answered, "A"),
        (flags.flagged, "F"),
        (flags.forwarded, "P"),
        (flags.draft, "T"),
        (flags.trashed, "D"),
    ];
    let more: String = more
        .iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, letter)| *letter)
        .collect();
    write!(to, "Status: {status}\nX-Status: {more}\n")?;
    write_more(to, message)?;
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

/// What the two lines before it can't tell.
fn write_more(to: &mut impl Write, message: &Message) -> io::Result<()> {
    let words = keywords(message.keywords.iter().map(String::as_str));
    let bytes = &message.bytes;
    let end = match bytes.ends_with(b"\n") {
        true => "",
        false => NO_LINE_END,
    };
    if !words.is_empty() {
        writeln!(to, "X-Keywords: {}", words.join(" "))?;
    }
    let is_like_one = bytes.starts_with(X_KEYWORDS) || bytes.starts_with(X_PLIMSOLL);
    if !words.is_empty() || !end.is_empty() || is_like_one {
        writeln!(to, "X-Plimsoll: {end}")?;
    }
    Ok(())
}
