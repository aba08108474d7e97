//! Records of GoReplay: a line of type, id, and time; then the request as sent; then a line of faces.

use std::borrow::Cow;

use super::entry::{Entry, Skip};
use super::moment::Moment;

/// The line between records.
pub(super) const SEPARATOR: &[u8] = "🐵🙈🙉".as_bytes();

/// Parses a record; `None` if it is no request.
pub(super) fn entry(record: &[u8]) -> Result<Option<Entry<'_>>, Skip> {
    let end = record
        .iter()
        .position(|b| *b == b'\n')
        .ok_or(Skip::Format)?;
    let (head, payload) = (&record[..end], &record[end + 1..]);
    let mut words = head.split(|b| *b == b' ');
    match words.next() {
        Some(b"1") => {}
        Some(b"2" | b"3") => return Ok(None),
        _ => return Err(Skip::Format),
    }
    let moment = words.nth(1).and_then(Moment::number);
    let mut entry = Entry {
        moment: Some(moment.ok_or(Skip::Moment)?),
        ..Entry::default()
    };
    let mut rest = payload;
    let mut is_first = true;
    let mut is_chunked = false;
    while let Some(at) = rest.iter().position(|b| *b == b'\n') {
        let line = rest[..at].strip_suffix(b"\r").unwrap_or(&rest[..at]);
        rest = &rest[at + 1..];
        if is_first {
            if !entry.set_request(line) {
                return Err(Skip::Request);
            }
            is_first = false;
            continue;
        }
        if line.is_empty() {
            break;
        }
        let Some(colon) = line.iter().position(|b| *b == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match () {
            () if name.eq_ignore_ascii_case(b"host") => entry.host = Cow::Borrowed(value),
            () if name.eq_ignore_ascii_case(b"user-agent") => {
                entry.agent = Some(Cow::Borrowed(value));
            }
            () if name.eq_ignore_ascii_case(b"content-type") => {
                entry.content_type = Cow::Borrowed(value);
            }
            () if name.eq_ignore_ascii_case(b"transfer-encoding") => is_chunked = true,
            () => {}
        }
    }
    if is_first {
        return Err(Skip::Request);
    }
    // A template can't send a compressed or chunked body.
    if is_chunked && !rest.is_empty() {
        return Err(Skip::Body);
    }
    entry.body = Cow::Borrowed(rest);
    Ok(Some(entry))
}
