//! Splits a message into parts, to a bounded depth and number.
//!
//! A message within a message is one part, as an attachment: it is never split, so that nesting
//! costs nothing.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::address::cut;
use crate::flowed::unflow;
use crate::names::safe_name;
use crate::params::Field;
use crate::transfer::Encoding;
use crate::{charset, head, limits, uuencode};

/// One part of a message.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    /// Type and subtype in lower case, such as `text/plain`.
    pub kind: String,
    /// The `Content-Type` field's value with its parameters, unfolded.
    pub content_type: String,
    /// `attachment`, `inline`, or any other value, with parameters; empty if missing.
    pub disposition: String,
    /// The `Content-ID` without its brackets.
    pub id: Option<String>,
    /// The `Content-Location`: the address by which HTML in the same message refers to it.
    pub location: Option<String>,
    /// The boundary of a multipart, whose parts follow.
    pub boundary: Option<String>,
    /// The name by which the part can be fetched; unique within the message. Multiparts have none.
    pub name: String,
    /// Whether the message names it.
    pub is_named: bool,
    /// The number of parts within it, at all levels. They follow it.
    pub inner: usize,
    is_attachment: bool,
    charset: Option<String>,
    flow: Flow,
    encoding: Encoding,
    /// The part's encoded content.
    content: &'a [u8],
}

/// The meaning of lines of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Fixed,
    Flowed { delsp: bool },
}

/// Text types that are files, not to be read in place.
const FILES: [&str; 8] = [
    "text/calendar",
    "text/x-vcalendar",
    "text/vcard",
    "text/x-vcard",
    "text/directory",
    "text/rtf",
    "text/csv",
    "text/rfc822-headers",
];

/// Encoded bytes that are enough to detect the kind of a picture.
const MAGIC_BYTES: usize = 256;

impl Part<'_> {
    /// Returns true if it only contains other parts.
    pub fn is_multipart(&self) -> bool {
        self.boundary.is_some()
    }

    /// Returns true if it is text to be read in place. Text of an unknown kind is plain text (RFC 2046, 4.1.4).
    pub fn is_text(&self) -> bool {
        let is_file = self.is_attachment || FILES.contains(&self.kind.as_str());
        !self.is_multipart() && !is_file && self.kind.starts_with("text/")
    }

    /// Returns true if its text has markup.
    pub fn is_html(&self) -> bool {
        self.kind == "text/html"
    }

    /// Returns true if it is neither text to be read in place nor a multipart.
    pub fn is_attachment(&self) -> bool {
        !self.is_multipart() && !self.is_text()
    }

    /// Returns true if the message marks it as an attachment.
    pub fn is_apart(&self) -> bool {
        self.is_attachment
    }

    /// Detects the kind of a picture by its content, among those that can hold no script. The
    /// declared types are unreliable.
    pub fn picture(&self) -> Option<&'static str> {
        let can_be = self.kind.starts_with("image/") || self.kind == "application/octet-stream";
        if !can_be || self.is_multipart() {
            return None;
        }
        let begin = &self.content[..self.content.len().min(MAGIC_BYTES)];
        let (begin, _) = self.encoding.decode(begin);
        picture_kind(&begin)
    }

    /// Returns the decoded content; content that can't be decoded is returned as it is.
    pub fn data(&self) -> Cow<'_, [u8]> {
        let (data, footer) = self.encoding.decode(self.content);
        match self.is_text() && !footer.trim_ascii().is_empty() {
            true => Cow::Owned([&data, &b"\n"[..], footer.trim_ascii_start()].concat()),
            false => data,
        }
    }

    /// Returns the content as text; undecodable characters are replaced.
    pub fn text(&self) -> String {
        let (data, label) = (self.data(), self.charset.as_deref());
        if self.is_html() {
            return charset::decode_html(&data, label);
        }
        let text = charset::decode(&data, label);
        match self.flow {
            Flow::Fixed => text,
            Flow::Flowed { delsp } => unflow(&text, delsp),
        }
    }
}

/// Detects the kind of a picture by its first bytes, among those that can hold no script.
pub fn picture_kind(begin: &[u8]) -> Option<&'static str> {
    Some(match begin {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "image/webp",
        _ => return None,
    })
}

/// Returns all parts in order, a multipart before its parts.
pub fn parts(message: &[u8]) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    collect(message, limits::PART_LEVELS, "", &mut found);
    name_all(&mut found);
    found
}

/// Collects the part in these bytes, which is within a part of this kind, and its parts.
fn collect<'a>(bytes: &'a [u8], levels: usize, within: &str, found: &mut Vec<Part<'a>>) {
    if found.len() >= limits::PARTS {
        return;
    }
    let mut part = read(bytes, levels, within);
    let Some(boundary) = part.boundary.take() else {
        match part.kind == "text/plain" && part.is_text() && within != "multipart/alternative" {
            true => split_files(part, found),
            false => found.push(part),
        }
        return;
    };
    let pieces = pieces(part.content, boundary.as_bytes());
    if pieces.is_empty() {
        // The content is shown as text.
        found.push(as_plain_text(part));
        return;
    }
    part.boundary = Some(boundary);
    let (at, kind) = (found.len(), part.kind.clone());
    found.push(part);
    for piece in pieces {
        collect(piece, levels - 1, &kind, found);
    }
    found[at].inner = found.len() - at - 1;
}

fn as_plain_text(part: Part<'_>) -> Part<'_> {
    Part {
        kind: "text/plain".to_owned(),
        content_type: "text/plain".to_owned(),
        boundary: None,
        is_attachment: false,
        ..part
    }
}

/// Extracts the `uuencode` files of a text.
fn split_files<'a>(part: Part<'a>, found: &mut Vec<Part<'a>>) {
    let (content, mut at) = (part.content, 0);
    let push_text = |from: usize, to: usize, found: &mut Vec<Part<'a>>| {
        let content = &content[from..to];
        if !content.trim_ascii().is_empty() || (from, to) == (0, part.content.len()) {
            found.push(Part {
                content,
                ..part.clone()
            });
        }
    };
    while part.encoding == Encoding::Plain
        && found.len() < limits::PARTS
        && let Some(file) = uuencode::find(content, at)
    {
        push_text(at, file.start, found);
        found.push(Part {
            kind: "application/octet-stream".to_owned(),
            content_type: "application/octet-stream".to_owned(),
            disposition: "attachment".to_owned(),
            name: safe_name(&charset::decode(file.name, None)),
            is_named: true,
            is_attachment: true,
            charset: None,
            flow: Flow::Fixed,
            encoding: Encoding::Uuencode,
            content: &content[file.start..file.end],
            id: None,
            location: None,
            boundary: None,
            inner: 0,
        });
        at = file.end;
    }
    push_text(at, content.len(), found);
}

fn read<'a>(bytes: &'a [u8], levels: usize, within: &str) -> Part<'a> {
    let (head, content) = split(bytes);
    let field = |name| head::value(head, name).map(Field::parse);
    let content_type = field("Content-Type").unwrap_or_default();
    let disposition = field("Content-Disposition").unwrap_or_default();
    let text = |name: &str| {
        let value = head::value(head, name)?;
        let text = charset::text_of_head(value.trim_ascii()).into_owned();
        Some(text).filter(|text| !text.is_empty())
    };
    let kind = kind(&content_type.value, within);
    let boundary = content_type
        .param("boundary")
        .filter(|_| kind.starts_with("multipart/") && levels > 0)
        .map(|boundary| boundary.trim_end().to_owned())
        .filter(|boundary| (1..=limits::BOUNDARY_BYTES).contains(&boundary.len()));
    let file_name = disposition
        .param("filename")
        .or_else(|| content_type.param("name"))
        .map(safe_name)
        .filter(|name| !name.is_empty());
    let is = |name: &str, value: &str| {
        let said = content_type.word(name);
        said.is_some_and(|said| said.eq_ignore_ascii_case(value))
    };
    let part = Part {
        content_type: match content_type.value.is_empty() {
            true => kind.clone(),
            false => line(&content_type),
        },
        disposition: line(&disposition),
        id: text("Content-ID").map(|id| cut(bare_id(&id), limits::NAME_BYTES).into_owned()),
        location: text("Content-Location")
            .map(|it| {
                it.chars()
                    .filter(|letter| !letter.is_whitespace())
                    .collect()
            })
            .filter(|it: &String| it.len() <= limits::LOCATION_BYTES),
        boundary,
        is_named: file_name.is_some(),
        name: file_name.unwrap_or_default(),
        inner: 0,
        is_attachment: disposition.value == "attachment",
        charset: content_type.word("charset").map(str::to_owned),
        flow: match kind == "text/plain" && is("format", "flowed") {
            true => Flow::Flowed {
                delsp: is("delsp", "yes"),
            },
            false => Flow::Fixed,
        },
        encoding: text("Content-Transfer-Encoding").map_or(Encoding::Plain, |it| Encoding::of(&it)),
        content,
        kind,
    };
    let is_bare_multipart =
        part.kind.starts_with("multipart/") && levels > 0 && part.boundary.is_none();
    if is_bare_multipart {
        as_plain_text(part)
    } else {
        part
    }
}

/// Splits a part into head and content. Bytes that are no head are content.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (head, content) = bytes.split_at(head::head_bytes(bytes));
    // A head that exceeds the bound is none.
    let head = &head[..head.len().min(limits::HEAD_BYTES)];
    if !head::is_head(head) && !head.trim_ascii().is_empty() {
        return (b"", bytes);
    }
    // Without an empty line, the text behind the fields is content.
    match content.is_empty() && !head.ends_with(b"\n\n") && !head.ends_with(b"\n\r\n") {
        true => bytes.split_at(head::fields_bytes(head)),
        false => (head, content),
    }
}

/// The kind of a part, from its declared one.
fn kind(said: &str, within: &str) -> String {
    let default = match within == "multipart/digest" {
        true => "message/rfc822",
        false => "text/plain",
    };
    let is_token = |text: &str| {
        let signs = b"!#$%&'*+-.^_`{|}~";
        let is_one = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
        !text.is_empty() && text.bytes().all(is_one)
    };
    match said.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => {
            cut(said, limits::NAME_BYTES).into_owned()
        }
        None if said == "multipart" => "multipart/mixed".to_owned(),
        None if said.is_empty() => default.to_owned(),
        // An unreadable type is plain text (RFC 2045, 5.2).
        _ => "text/plain".to_owned(),
    }
}

fn line(field: &Field) -> String {
    cut(&field.rendered(), limits::SUBJECT_BYTES).into_owned()
}

fn bare_id(id: &str) -> &str {
    let inner = id.split_once('<').map_or(id, |(_, inner)| inner);
    inner
        .split_once('>')
        .map_or(inner, |(inner, _)| inner)
        .trim()
}

/// Returns the pieces between the boundary lines (RFC 2046, 5.1.1). Without the last boundary line,
/// the last piece extends to the end.
fn pieces<'a>(content: &'a [u8], boundary: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut from = None;
    let mut at = 0;
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if let Some(rest) = line
            .strip_prefix(b"--")
            .and_then(|it| it.strip_prefix(boundary))
        {
            let rest = rest.trim_ascii_end();
            if rest.is_empty() || rest == b"--" {
                pieces.extend(from.map(|from| without_line_end(&content[from..at])));
                from = rest.is_empty().then_some(at + line.len());
                if from.is_none() || pieces.len() >= limits::PARTS {
                    return pieces;
                }
            }
        }
        at += line.len();
    }
    pieces.extend(from.map(|from| &content[from.min(at)..]));
    pieces
}

/// The line end before a boundary belongs to the boundary.
fn without_line_end(piece: &[u8]) -> &[u8] {
    let piece = piece.strip_suffix(b"\n").unwrap_or(piece);
    piece.strip_suffix(b"\r").unwrap_or(piece)
}

/// Gives each part a unique name.
fn name_all(parts: &mut [Part<'_>]) {
    let mut taken = HashSet::new();
    for (number, part) in parts.iter_mut().enumerate() {
        if part.is_multipart() {
            part.name.clear();
            continue;
        }
        if part.name.is_empty() {
            part.name = format!("part-{number}.{}", extension(part));
        }
        if taken.contains(&part.name) {
            part.name = format!("{number}-{}", part.name);
        }
        taken.insert(part.name.clone());
    }
}

fn extension(part: &Part<'_>) -> &'static str {
    match part.picture().unwrap_or(&part.kind) {
        "text/html" => "html",
        "text/calendar" => "ics",
        "text/vcard" | "text/x-vcard" => "vcf",
        "text/csv" => "csv",
        "message/rfc822" => "eml",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        kind if kind.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests;
