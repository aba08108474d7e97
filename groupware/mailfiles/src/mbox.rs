//! mbox: messages one after another, each behind a line that begins with `From `.
//!
//! What is written here comes back as it was, but for a line end at the end of a message that has
//! none. Its marks are two fields in front of the head, which reading takes off again; fields of the
//! same names further down, which other programs write, are read and left where they are.

use std::io::{self, BufRead, Write};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::message::{Flags, Message, Read};

const FROM: &[u8] = b"From ";
/// Longest line that parts messages. What is longer is text.
const FROM_BYTES: usize = 1024;
/// Bytes of a message in which its marks are looked for.
const HEAD_BYTES: usize = 256 << 10;

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
        Ok(Some(match body.finish() {
            Some(bytes) => Read::Message(message(bytes, &begun)),
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
            // The empty line at the end is no part of the message.
            match bytes.len() + piece.len() <= self.most + 2 {
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
        (bytes.len() <= self.most).then_some(bytes)
    }
}

/// Whether a line is `From ` behind one `>` or more.
fn is_quoted(line: &[u8]) -> bool {
    let bare = line.iter().position(|byte| *byte != b'>').unwrap_or(0);
    bare > 0 && line[bare..].starts_with(FROM)
}

fn message(mut bytes: Vec<u8>, begun: &[u8]) -> Message {
    let flags = match own_marks(&bytes) {
        Some((flags, length)) => {
            bytes.drain(..length);
            flags
        }
        None => marks_in_head(&bytes),
    };
    Message {
        bytes,
        received_us: received(begun),
        flags,
    }
}

const STATUS: &[u8] = b"Status: ";
const X_STATUS: &[u8] = b"X-Status: ";

/// The marks that are written in front of a head, and how many bytes they take.
fn own_marks(bytes: &[u8]) -> Option<(Flags, usize)> {
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
    let (first, second) = (lines.next()?, lines.next()?);
    lines.next()?;
    let mut flags = Flags::default();
    note(&mut flags, first.strip_prefix(STATUS)?);
    note(&mut flags, second.strip_prefix(X_STATUS)?);
    Some((flags, first.len() + second.len() + 2))
}

/// The marks that another program has put among the fields of a head.
fn marks_in_head(bytes: &[u8]) -> Flags {
    let mut flags = Flags::default();
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    for line in head.split(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            break;
        }
        for name in [&b"status:"[..], b"x-status:"] {
            let begin = &line[..line.len().min(name.len())];
            if begin.eq_ignore_ascii_case(name) {
                note(&mut flags, &line[name.len()..]);
            }
        }
    }
    flags
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
