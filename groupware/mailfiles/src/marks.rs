//! Marks of a message in an mbox: fields in front of its head, which reading takes off again. Fields of the same names
//! further down, which other programs write, are read and left where they are; so are those of Thunderbird and Gmail.
//!
//! ```text
//! Status: RO
//! X-Status: AF
//! X-Keywords: $Junk work       where there are any
//! X-Plimsoll: no-line-end      where there are keywords, where the message has no line end at its end, and
//!                              where it could be taken for one of these two lines
//! ```

use std::io::{self, Write};

use groupware_text::{KEYWORD_BYTES, KEYWORDS, keywords};

use crate::message::{Flags, Message};

/// Bytes of a message in which its marks are looked for.
const HEAD_BYTES: usize = 256 << 10;
/// Most bytes of the marks in front of a message.
pub(crate) const MARK_BYTES: usize = 128 + KEYWORDS * (KEYWORD_BYTES + 1);

const STATUS: &[u8] = b"Status: ";
const X_STATUS: &[u8] = b"X-Status: ";
const X_KEYWORDS: &[u8] = b"X-Keywords: ";
const X_PLIMSOLL: &[u8] = b"X-Plimsoll: ";
/// Among the words of the last of them: the line end behind the message is none of its own.
const NO_LINE_END: &str = "no-line-end";

/// What stands of a message in an mbox besides its bytes.
#[derive(Default)]
pub(crate) struct Marks {
    pub(crate) flags: Flags,
    pub(crate) keywords: Vec<String>,
    has_no_line_end: bool,
}

/// Reads the marks of a message. Those that were written in front of it are taken off.
pub(crate) fn take(bytes: &mut Vec<u8>) -> Marks {
    match own(bytes) {
        Some((marks, length)) => {
            bytes.drain(..length);
            if marks.has_no_line_end && bytes.ends_with(b"\n") {
                bytes.pop();
            }
            marks
        }
        None => in_head(bytes),
    }
}

/// The `Content-Length` of a message that another program wrote, given its head. A message with marks of this module is
/// quoted, and its sender's `Content-Length` says nothing about the file.
pub(crate) fn content_length(head: &[u8]) -> Option<usize> {
    if own(head).is_some() {
        return None;
    }
    let mut values = fields(head).filter_map(|field| value(&field, b"content-length:"));
    let length = values.next()?;
    std::str::from_utf8(&length).ok()?.trim().parse().ok()
}

/// The marks that are written in front of a head, and their bytes.
fn own(bytes: &[u8]) -> Option<(Marks, usize)> {
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

/// The fields of a head, each in one line.
fn fields(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .take_while(|line| !line.trim_ascii().is_empty())
        .peekable();
    std::iter::from_fn(move || {
        let mut field = lines.next()?.to_vec();
        while let Some(more) = lines.next_if(|line| matches!(line.first(), Some(b' ' | b'\t'))) {
            field.extend_from_slice(more);
        }
        Some(field)
    })
}

/// The value of a field if it has this name, in lower case with a colon.
fn value(field: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let (begin, value) = field.split_at_checked(name.len())?;
    begin
        .eq_ignore_ascii_case(name)
        .then(|| value.trim_ascii().to_vec())
}

/// The marks that another program has put among the fields of a head.
fn in_head(bytes: &[u8]) -> Marks {
    let mut marks = Marks::default();
    for field in fields(bytes) {
        for name in [&b"status:"[..], b"x-status:"] {
            note(&mut marks.flags, &value(&field, name).unwrap_or_default());
        }
        for name in [&b"x-keywords:"[..], b"x-mozilla-keys:"] {
            if let Some(words) = value(&field, name) {
                marks.keywords.extend(keywords_of(&words));
            }
        }
        if let Some(digits) = value(&field, b"x-mozilla-status:") {
            note_mozilla(&mut marks.flags, bits(&digits));
        }
        if let Some(digits) = value(&field, b"x-mozilla-status2:") {
            marks.flags.trashed |= bits(&digits) & MOZILLA_DELETED_BY_IMAP != 0;
        }
        if let Some(labels) = value(&field, b"x-gmail-labels:") {
            note_gmail(&mut marks, &String::from_utf8_lossy(&labels));
        }
    }
    let words = std::mem::take(&mut marks.keywords);
    marks.keywords = marks.flags.without_flags(words.iter().map(String::as_str));
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

/// A bit of `X-Mozilla-Status2`. See `nsMsgMessageFlags.idl` of Thunderbird for all of them.
const MOZILLA_DELETED_BY_IMAP: u32 = 0x0020_0000;

fn bits(digits: &[u8]) -> u32 {
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    u32::from_str_radix(digits, 16).unwrap_or_default()
}

fn note_mozilla(flags: &mut Flags, bits: u32) {
    flags.read |= bits & 0x0001 != 0;
    flags.answered |= bits & 0x0002 != 0;
    flags.flagged |= bits & 0x0004 != 0;
    // Expunged: Thunderbird takes it out of the file later.
    flags.trashed |= bits & 0x0008 != 0;
    flags.forwarded |= bits & 0x1000 != 0;
}

/// Labels that Gmail gives by itself, and that say nothing that a keyword should.
const GMAIL_LABELS: [&str; 9] = [
    "inbox",
    "archived",
    "opened",
    "important",
    "sent",
    "chat",
    "spam",
    "muted",
    "snoozed",
];

/// Notes the labels of an export of Gmail. The labels of its user become keywords.
fn note_gmail(marks: &mut Marks, labels: &str) {
    let flags = &mut marks.flags;
    flags.read = true;
    let mut words = Vec::new();
    for label in labels
        .split(',')
        .map(|label| label.trim().trim_matches('"'))
    {
        let label = label.to_owned();
        match label.to_ascii_lowercase().as_str() {
            "unread" => flags.read = false,
            "starred" => flags.flagged = true,
            "trash" => flags.trashed = true,
            "draft" | "drafts" => flags.draft = true,
            known if GMAIL_LABELS.contains(&known) || known.starts_with("category ") => {}
            _ => words.push(label.replace(' ', "_")),
        }
        if label.eq_ignore_ascii_case("spam") {
            words.push("$Junk".to_owned());
        }
    }
    marks.keywords.extend(words);
}

/// Writes the marks of a message in front of it.
///
/// # Errors
/// The disk's.
pub(crate) fn write(to: &mut impl Write, message: &Message) -> io::Result<()> {
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
    write_more(to, message)
}

/// Writes what the two lines before it can't say.
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
