//! Pictures embedded in HTML as `data:` addresses (RFC 2397). They are extracted before the HTML is
//! parsed, since no other attribute is as long, and restored where an image refers to them.

use std::borrow::Cow;

use mail_parser::decoders::base64::base64_decode;

/// The scheme of their placeholder addresses.
pub(super) const SCHEME: &str = "data";
/// Most pictures of one text.
const MOST: usize = 100;
/// Longest type of a picture, with parameters.
const TYPE_BYTES: usize = 100;
/// Letters of base64 that are enough to detect a picture.
const MAGIC_LETTERS: usize = 32;

/// Returns the HTML with a number in place of each picture, and the pictures as addresses that browsers show.
pub(super) fn take(html: &str) -> (Cow<'_, str>, Vec<String>) {
    let mut found = Vec::new();
    let (mut rest, mut kept) = (html, String::new());
    while let Some(at) = next(rest).filter(|_| found.len() < MOST) {
        let (before, from) = rest.split_at(at + "data:".len());
        kept.push_str(before);
        rest = from;
        if let Some((uri, after)) = picture(from) {
            kept.push_str(&found.len().to_string());
            found.push(uri);
            rest = after;
        }
    }
    match found.is_empty() {
        true => (Cow::Borrowed(html), found),
        false => (Cow::Owned(kept + rest), found),
    }
}

/// Returns the picture of a placeholder address.
pub(super) fn uri<'a>(found: &'a [String], value: &str) -> Option<&'a str> {
    let number = value
        .trim()
        .strip_prefix("data:")
        .or(value.trim().strip_prefix("DATA:"))?;
    let number: usize = number.parse().ok()?;
    found.get(number).map(String::as_str)
}

/// Returns the offset of the next such address. The text is scanned once.
fn next(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut colons = text.match_indices(':');
    colons.find_map(|(at, _)| {
        let from = at.checked_sub(4)?;
        bytes[from..at]
            .eq_ignore_ascii_case(b"data")
            .then_some(from)
    })
}

/// Returns the picture whose type and data start a text, and the rest.
fn picture(text: &str) -> Option<(String, &str)> {
    let begin = text.as_bytes();
    let comma = begin[..begin.len().min(TYPE_BYTES)]
        .iter()
        .position(|byte| *byte == b',')?;
    let (kind, data) = (&text[..comma], &text[comma + 1..]);
    let is_base64 = kind.to_ascii_lowercase().ends_with(";base64");
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "+/=".contains(letter);
    let end = data.find(|letter| !is_letter(letter)).unwrap_or(data.len());
    let (data, after) = data.split_at(end);
    let magic = base64_decode(&data.as_bytes()[..data.len().min(MAGIC_LETTERS)])?;
    let kind = groupware_mail::picture_kind(&magic).filter(|_| is_base64)?;
    Some((format!("data:{kind};base64,{data}"), after))
}
