//! The parts of a message. Multiparts are taken apart here, to a bounded depth and number; one
//! part's head, and its encodings, are for `mail-parser`.
//!
//! A message within a message is one part, as an attachment: it is never looked into, so that no
//! depth of nesting costs anything.

use std::borrow::Cow;
use std::collections::HashSet;

use mail_parser::decoders::{
    base64::base64_decode, charsets::map::charset_decoder,
    quoted_printable::quoted_printable_decode,
};
use mail_parser::{ContentType, HeaderName, HeaderValue, Message, MessageParser};

use crate::address::cut;
use crate::{head, limits};

/// One part of a message.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    /// Type and subtype in lower case, such as `text/plain`.
    pub kind: String,
    /// The `Content-Type` field's value with its parameters, unfolded.
    pub content_type: String,
    /// `attachment`, `inline`, or whatever the message says, with parameters; empty without one.
    pub disposition: String,
    /// The `Content-ID` without its brackets.
    pub id: Option<String>,
    /// The boundary of a multipart, whose parts follow.
    pub boundary: Option<String>,
    /// The name under which the part can be had; unique within the message. Multiparts have none.
    pub name: String,
    is_attachment: bool,
    charset: Option<String>,
    encoding: Encoding,
    /// The part's content as it stands in the message.
    content: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Plain,
    Base64,
    QuotedPrintable,
}

impl Part<'_> {
    /// Whether it is only there to hold others.
    pub fn is_multipart(&self) -> bool {
        self.boundary.is_some()
    }

    /// Whether it is text that is meant to be read in place.
    pub fn is_text(&self) -> bool {
        !self.is_attachment && matches!(self.kind.as_str(), "text/plain" | "text/html")
    }

    /// Whether it is neither text to be read in place nor a multipart.
    pub fn is_attachment(&self) -> bool {
        !self.is_multipart() && !self.is_text()
    }

    /// The content, decoded. What can't be decoded is given as it stands.
    pub fn data(&self) -> Cow<'_, [u8]> {
        let decoded = match self.encoding {
            Encoding::Plain => None,
            Encoding::Base64 => base64_decode(self.content),
            Encoding::QuotedPrintable => quoted_printable_decode(self.content),
        };
        decoded.map_or(Cow::Borrowed(self.content), Cow::Owned)
    }

    /// The content as text; what its character set doesn't know is replaced.
    pub fn text(&self) -> String {
        let data = self.data();
        let charset = self.charset.as_deref().unwrap_or("utf-8");
        if !charset.eq_ignore_ascii_case("utf-8")
            && let Some(decode) = charset_decoder(charset.to_ascii_lowercase().as_bytes())
        {
            return decode(&data);
        }
        String::from_utf8_lossy(&data).into_owned()
    }
}

/// All parts in the order in which they stand, a multipart before those in it.
pub fn parts(message: &[u8]) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    collect(message, limits::PART_LEVELS, false, &mut found);
    name_all(&mut found);
    found
}

fn collect<'a>(bytes: &'a [u8], levels: usize, in_digest: bool, found: &mut Vec<Part<'a>>) {
    if found.len() >= limits::PARTS {
        return;
    }
    let part = read(bytes, levels, in_digest);
    let inner = part.boundary.clone().map(|boundary| {
        let is_digest = part.kind == "multipart/digest";
        (boundary, is_digest, part.content)
    });
    found.push(part);
    if let Some((boundary, is_digest, content)) = inner {
        for piece in pieces(content, boundary.as_bytes()) {
            collect(piece, levels - 1, is_digest, found);
        }
    }
}

fn read(bytes: &[u8], levels: usize, in_digest: bool) -> Part<'_> {
    let (head, content) = bytes.split_at(head::head_bytes(bytes));
    // A head that no message may have is none.
    let head = &head[..head.len().min(limits::HEAD_BYTES)];
    let parsed = MessageParser::new().parse_headers(head);
    let parsed = parsed.as_ref().filter(|_| head::is_head(head));
    // Without a single field, what looked like a head is content.
    let content = match parsed {
        None if !head.trim_ascii().is_empty() => bytes,
        _ => content,
    };
    let content_type = field(parsed, HeaderName::ContentType);
    let disposition = field(parsed, HeaderName::ContentDisposition);
    let text = |name: HeaderName<'static>| {
        parsed
            .and_then(|it| it.header(name))
            .and_then(HeaderValue::as_text)
    };
    let kind = match content_type {
        Some(kind) => format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("plain")),
        None if in_digest => "message/rfc822".to_owned(),
        None => "text/plain".to_owned(),
    };
    let kind = cut(&kind.to_ascii_lowercase(), limits::NAME_BYTES).into_owned();
    let boundary = content_type
        .filter(|_| kind.starts_with("multipart/") && levels > 0)
        .and_then(|kind| kind.attribute("boundary"))
        .filter(|boundary| (1..=70).contains(&boundary.len()));
    let encoding = match text(HeaderName::ContentTransferEncoding).map(str::trim) {
        Some(name) if name.eq_ignore_ascii_case("base64") => Encoding::Base64,
        Some(name) if name.eq_ignore_ascii_case("quoted-printable") => Encoding::QuotedPrintable,
        _ => Encoding::Plain,
    };
    let file_name = disposition
        .and_then(|it| it.attribute("filename"))
        .or_else(|| content_type.and_then(|it| it.attribute("name")));
    Part {
        content_type: rendered(content_type).unwrap_or_else(|| kind.clone()),
        disposition: rendered(disposition).unwrap_or_default(),
        id: text(HeaderName::ContentId).map(|id| cut(id, limits::NAME_BYTES).into_owned()),
        boundary: boundary.map(str::to_owned),
        name: file_name.map(safe_name).unwrap_or_default(),
        is_attachment: disposition.is_some_and(ContentType::is_attachment),
        charset: content_type
            .and_then(|it| it.attribute("charset"))
            .map(str::to_owned),
        encoding,
        content,
        kind,
    }
}

fn field<'a>(parsed: Option<&'a Message<'a>>, name: HeaderName<'a>) -> Option<&'a ContentType<'a>> {
    parsed?.header(name)?.as_content_type()
}

/// A field's value in one line, parameters quoted.
fn rendered(field: Option<&ContentType<'_>>) -> Option<String> {
    let field = field?;
    let mut text = field.ctype().to_owned();
    if let Some(subtype) = field.subtype() {
        text = format!("{text}/{subtype}");
    }
    for attribute in field.attributes().unwrap_or_default() {
        let value = attribute.value.replace(['"', '\\'], "_");
        text += &format!("; {}=\"{value}\"", attribute.name);
    }
    Some(cut(&text, limits::SUBJECT_BYTES).into_owned())
}

/// The pieces between the boundary's lines (RFC 2046, 5.1.1). Without the last line, the last
/// piece goes on to the end.
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

/// A file's name that is one, wherever it is saved to.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last
        .chars()
        .map(|letter| if letter.is_control() { '_' } else { letter })
        .collect();
    cut(
        clean.trim().trim_start_matches('.'),
        limits::FILE_NAME_BYTES,
    )
    .into_owned()
}

/// Gives each part a name of its own.
fn name_all(parts: &mut [Part<'_>]) {
    let mut taken = HashSet::new();
    for (number, part) in parts.iter_mut().enumerate() {
        if part.is_multipart() {
            part.name.clear();
            continue;
        }
        if part.name.is_empty() {
            part.name = format!("part-{number}.{}", extension(&part.kind));
        }
        if taken.contains(&part.name) {
            part.name = format!("{number}-{}", part.name);
        }
        taken.insert(part.name.clone());
    }
}

fn extension(kind: &str) -> &'static str {
    match kind {
        "text/plain" => "txt",
        "text/html" => "html",
        "text/calendar" => "ics",
        "message/rfc822" => "eml",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "application/pdf" => "pdf",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(message: &str) -> String {
        let parts = parts(message.as_bytes());
        let shown = parts.iter().map(|part| match part.is_multipart() {
            true => part.kind.clone(),
            false => format!("{} {} {:?}", part.kind, part.name, part.text()),
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn parts_are_told_apart() {
        let message = "Content-Type: multipart/mixed; boundary=\"a\"\r\n\r\npreamble\r\n\
            --a\r\nContent-Type: multipart/alternative; boundary=aa\r\n\r\n\
            --aa\r\n\r\nplain\r\n--aa\r\nContent-Type: text/html; charset=iso-8859-1\r\n\
            Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>=E9</p>\r\n--aa--\r\n\
            --a\r\nContent-Type: application/pdf; name=\"../x/r.pdf\"\r\n\
            Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\naGk=\r\n\
            --a \r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nb\r\n--a--\r\nend\r\n";
        assert_eq!(
            shape(message),
            "multipart/mixed\nmultipart/alternative\ntext/plain part-2.txt \"plain\"\n\
             text/html part-3.html \"<p>é</p>\"\napplication/pdf r.pdf \"hi\"\n\
             message/rfc822 part-5.eml \"Subject: inner\\r\\n\\r\\nb\""
        );
    }

    #[test]
    fn what_is_broken_is_shown_as_it_stands() {
        assert_eq!(shape("no head"), "text/plain part-0.txt \"no head\"");
        assert_eq!(shape("\n\u{fc}"), "text/plain part-0.txt \"ü\"");
        assert_eq!(
            shape("Content-Type: multipart/mixed; boundary=a\n\n--a\n\nno end"),
            "multipart/mixed\ntext/plain part-1.txt \"no end\""
        );
        assert_eq!(
            shape("Content-Type: multipart/mixed\n\nno boundary"),
            "multipart/mixed part-0.bin \"no boundary\""
        );
        assert_eq!(
            shape("Content-Transfer-Encoding: base64\n\n!!"),
            "text/plain part-0.txt \"!!\""
        );
        assert_eq!(
            shape("Content-Type: text/plain; charset=no-such\n\n\u{fc}"),
            "text/plain part-0.txt \"ü\""
        );
    }

    #[test]
    fn equal_names_are_made_different() {
        let part = "--a\nContent-Disposition: attachment; filename=x.txt\n\n1\n";
        let message = format!(
            "Content-Type: multipart/mixed; boundary=a\n\n{part}{part}--a\nContent-Disposition: \
             attachment; filename=2-x.txt\n\n2\n--a--"
        );
        let parts = parts(message.as_bytes());
        let names: HashSet<_> = parts.iter().map(|part| &part.name).collect();
        assert_eq!(names.len(), parts.len());
    }

    #[test]
    fn nesting_and_numbers_are_bounded() {
        let mut deep = String::new();
        for level in 0..5000 {
            deep += &format!("Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n");
        }
        assert_eq!(parts(deep.as_bytes()).len(), limits::PART_LEVELS + 1);
        let messages = "Content-Type: message/rfc822\n\n".repeat(300_000);
        assert_eq!(parts(messages.as_bytes()).len(), 1);
        let wide = format!(
            "Content-Type: multipart/mixed; boundary=b\n\n{}",
            "--b\n\n".repeat(100_000)
        );
        assert!(parts(wide.as_bytes()).len() <= limits::PARTS + 1);
    }
}
