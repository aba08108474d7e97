//! The head of a message as bytes: where it ends, its fields, and taking fields out. Everything
//! that is not asked for stays byte for byte.

use std::borrow::Cow;

use crate::{MimeError, limits};

/// Length of the head, the empty line that ends it included.
pub fn head_bytes(message: &[u8]) -> usize {
    let mut at = 0;
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if matches!(line, b"\n" | b"\r\n") {
            break;
        }
    }
    at
}

/// The fields of a head, each with the lines that continue it and their ends. A line without a
/// colon is continued by nothing, as lenient parsers have it.
fn fields(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = head;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut lines = rest.split_inclusive(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let mut end = first.len();
        if first.contains(&b':') {
            let continues = |line: &&[u8]| matches!(line.first(), Some(b' ' | b'\t'));
            end += lines.take_while(continues).map(<[u8]>::len).sum::<usize>();
        }
        let (field, after) = rest.split_at(end);
        rest = after;
        Some(field)
    })
}

/// The name of a field; a line without a colon has none.
fn name(field: &[u8]) -> Option<&[u8]> {
    let colon = field.iter().position(|byte| *byte == b':')?;
    Some(field[..colon].trim_ascii())
}

fn is_blind_copy(field: &[u8]) -> bool {
    name(field).is_some_and(|name| {
        name.eq_ignore_ascii_case(b"bcc") || name.eq_ignore_ascii_case(b"resent-bcc")
    })
}

/// The message as its recipients may see it: without `Bcc`.
pub fn without_blind_copies(message: &[u8]) -> Cow<'_, [u8]> {
    let (head, body) = message.split_at(head_bytes(message));
    if !fields(head).any(is_blind_copy) {
        return Cow::Borrowed(message);
    }
    let mut kept = Vec::with_capacity(message.len());
    for field in fields(head).filter(|field| !is_blind_copy(field)) {
        kept.extend_from_slice(field);
    }
    kept.extend_from_slice(body);
    Cow::Owned(kept)
}

/// Whether these bytes have a field at all.
pub(crate) fn is_head(head: &[u8]) -> bool {
    fields(head).any(|field| name(field).is_some())
}

/// Whether the head has a field of this name.
pub fn has_field(message: &[u8], wanted: &str) -> bool {
    let head = &message[..head_bytes(message)];
    fields(head)
        .filter_map(name)
        .any(|name| name.eq_ignore_ascii_case(wanted.as_bytes()))
}

/// How often the head has a field of this name.
pub fn count_fields(message: &[u8], wanted: &str) -> usize {
    let head = &message[..head_bytes(message)];
    fields(head)
        .filter_map(name)
        .filter(|name| name.eq_ignore_ascii_case(wanted.as_bytes()))
        .count()
}

/// Refuses a message that is larger than one may be.
///
/// # Errors
/// [`MimeError::TooLarge`].
pub fn check(message: &[u8]) -> Result<(), MimeError> {
    let too_large = |text: String| Err(MimeError::TooLarge(text));
    if message.len() > limits::MESSAGE_BYTES {
        let megabytes = limits::MESSAGE_BYTES >> 20;
        return too_large(format!("A message has at most {megabytes} MiB."));
    }
    let head = &message[..head_bytes(message)];
    if head.len() > limits::HEAD_BYTES {
        let kilobytes = limits::HEAD_BYTES >> 10;
        return too_large(format!(
            "The head of a message has at most {kilobytes} KiB."
        ));
    }
    if fields(head).count() > limits::HEAD_FIELDS {
        let most = limits::HEAD_FIELDS;
        return too_large(format!("The head of a message has at most {most} fields."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_stripped(message: &str, expected: &str) {
        let stripped = without_blind_copies(message.as_bytes());
        assert_eq!(String::from_utf8_lossy(&stripped), expected);
    }

    #[test]
    fn blind_copies_go_with_their_continuations_and_nothing_else_does() {
        check_stripped(
            "From: a\r\nBcc: b@x,\r\n c@x\r\nTo: d\r\n\r\nBcc: e\r\n",
            "From: a\r\nTo: d\r\n\r\nBcc: e\r\n",
        );
        check_stripped("bCC : b\nSubject: x\n\nb", "Subject: x\n\nb");
        check_stripped(" Bcc: b\nSubject: x\n\n", "Subject: x\n\n");
        check_stripped("Resent-Bcc:\n b\n\n", "\n");
        check_stripped(
            "Subject: Bcc: b\n Bcc: b\n\n",
            "Subject: Bcc: b\n Bcc: b\n\n",
        );
        check_stripped("Bcc: only a head", "");
        // Lenient parsers find a field in the second line.
        check_stripped("Bcc\r\n Bcc: b\n\n", "Bcc\r\n\n");
        check_stripped("\r\nBcc: in the body", "\r\nBcc: in the body");
    }

    #[test]
    fn heads_end_at_the_first_empty_line() {
        assert_eq!(head_bytes(b"A: b\r\n\r\nbody"), 8);
        assert_eq!(head_bytes(b"A: b\n\nbody"), 6);
        assert_eq!(head_bytes(b"\nbody"), 1);
        assert_eq!(head_bytes(b"A: b"), 4);
        assert_eq!(head_bytes(b""), 0);
    }

    #[test]
    fn heads_are_bounded() {
        assert!(check("A: b\n".repeat(limits::HEAD_FIELDS).as_bytes()).is_ok());
        assert!(check("A: b\n".repeat(100_000).as_bytes()).is_err());
        assert!(check(&vec![b'a'; limits::HEAD_BYTES + 1]).is_err());
        let message = [b"A: b\n\n".to_vec(), vec![b'a'; limits::MESSAGE_BYTES]].concat();
        assert!(check(&message).is_err());
        assert!(check(&message[..limits::MESSAGE_BYTES]).is_ok());
    }

    proptest! {
        #[test]
        fn no_parser_finds_a_blind_copy_in_what_is_left(
            lines in prop::collection::vec("([ \t]?(Bcc|bcc|BCC|To|X)[ ]?:?[ a@,]{0,6})?(\r\n|\n)", 0..12)
        ) {
            let message = lines.concat();
            let stripped = without_blind_copies(message.as_bytes());
            let parsed = mail_parser::MessageParser::new().parse(stripped.as_ref());
            let found = parsed.is_some_and(|it| it.header(mail_parser::HeaderName::Bcc).is_some());
            prop_assert!(!found, "{:?}", String::from_utf8_lossy(&stripped));
        }
    }
}
