//! Flags and keywords of a message in an mbox: fields before its head, which reading removes. Fields of the same names
//! further down, written by other programs, are read and kept in place; so are those of Thunderbird and Gmail.
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

/// The number of bytes of a message that are searched for flags and keywords.
const HEAD_BYTES: usize = 256 << 10;
/// The maximum size of the fields before a message in bytes.
pub(crate) const MARK_BYTES: usize = 128 + KEYWORDS * (KEYWORD_BYTES + 1);

const STATUS: &[u8] = b"Status: ";
const X_STATUS: &[u8] = b"X-Status: ";
const X_KEYWORDS: &[u8] = b"X-Keywords: ";
const X_PLIMSOLL: &[u8] = b"X-Plimsoll: ";
/// A word in the value of `X-Plimsoll`: the line end after the message doesn't belong to it.
const NO_LINE_END: &str = "no-line-end";

/// The data of a message in an mbox besides its bytes.
#[derive(Default)]
pub(crate) struct Marks {
    pub(crate) flags: Flags,
    pub(crate) keywords: Vec<String>,
    has_no_line_end: bool,
}

/// Reads the flags and keywords of a message. Fields written before its head are removed.
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

/// Returns the `Content-Length` of a message written by another program, given its head. A message written by this
/// module is quoted, and its sender's `Content-Length` doesn't apply to the file.
pub(crate) fn content_length(head: &[u8]) -> Option<usize> {
    if own(head).is_some() {
        return None;
    }
    let mut values = fields(head).filter_map(|field| value(&field, b"content-length:"));
    let length = values.next()?;
    std::str::from_utf8(&length).ok()?.trim().parse().ok()
}

/// Parses the fields written before a head; returns their values and length.
fn own(bytes: &[u8]) -> Option<(Marks, usize)> {
    let mut rest = bytes;
    let mut marks = Marks::default();
    note(&mut marks.flags, take_line(&mut rest, STATUS)?);
    note(&mut marks.flags, take_line(&mut rest, X_STATUS)?);
    let mut after = rest;
    let words = take_line(&mut after, X_KEYWORDS);
    marks.keywords = words.map(keywords_of).unwrap_or_default();
    // Without a following `X-Plimsoll`, the field is another program's and stays in place.
    if let Some(more) = take_line(&mut after, X_PLIMSOLL) {
        let mut more = more.split(u8::is_ascii_whitespace);
        marks.has_no_line_end = more.any(|word| word == NO_LINE_END.as_bytes());
        rest = after;
    }
    Some((marks, bytes.len() - rest.len()))
}

/// Removes a first line with this prefix, and returns the rest of the line.
fn take_line<'a>(rest: &mut &'a [u8], begin: &[u8]) -> Option<&'a [u8]> {
    let value = rest.strip_prefix(begin)?;
    let end = value.iter().position(|byte| *byte == b'\n')?;
    *rest = &value[end + 1..];
    Some(&value[..end])
}

fn keywords_of(line: &[u8]) -> Vec<String> {
    keywords(String::from_utf8_lossy(line).split_ascii_whitespace())
}

/// Returns the fields of a head, each unfolded.
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

/// Returns the value of a field if it has this name, given in lower case with a colon.
fn value(field: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let (begin, value) = field.split_at_checked(name.len())?;
    begin
        .eq_ignore_ascii_case(name)
        .then(|| value.trim_ascii().to_vec())
}

/// Reads the flags and keywords that another program has put among the fields of a head.
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
    // Expunged: Thunderbird removes it from the file later.
    flags.trashed |= bits & 0x0008 != 0;
    flags.forwarded |= bits & 0x1000 != 0;
}

/// Labels that Gmail assigns itself, and that don't become keywords.
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

/// Reads the labels of a Gmail export. The user's own labels become keywords.
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

/// Writes the flags and keywords of a message before it.
///
/// # Errors
/// If writing fails.
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

/// Writes the data that `Status` and `X-Status` can't hold.
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
