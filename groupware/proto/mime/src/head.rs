//! The head of a message as bytes: its end, its fields, and its bounds.

use crate::{MimeError, limits};

/// Length of the head, including the empty line that ends it.
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

/// The fields of a head, each with its continuation lines and their ends. A line without a colon
/// has no continuation, as in lenient parsers.
pub(crate) fn fields(head: &[u8]) -> impl Iterator<Item = &[u8]> {
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

/// Returns the name of a field; a line without a colon has none.
pub(crate) fn name(field: &[u8]) -> Option<&[u8]> {
    let colon = field.iter().position(|byte| *byte == b':')?;
    Some(field[..colon].trim_ascii())
}

/// Returns true if a field has this name.
pub(crate) fn is_called(field: &[u8], wanted: &str) -> bool {
    name(field).is_some_and(|name| name.eq_ignore_ascii_case(wanted.as_bytes()))
}

/// Returns the text behind the colon of the first field of this name.
pub(crate) fn value<'a>(head: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let field = fields(head).find(|field| is_called(field, wanted))?;
    let colon = field.iter().position(|byte| *byte == b':')?;
    Some(&field[colon + 1..])
}

/// Length of the fields before the first line that is no field.
pub(crate) fn fields_bytes(head: &[u8]) -> usize {
    let is_field = |field: &&[u8]| name(field).is_some_and(|name| !name.contains(&b' '));
    fields(head).take_while(is_field).map(<[u8]>::len).sum()
}

/// Returns true if these bytes contain a field.
pub(crate) fn is_head(head: &[u8]) -> bool {
    fields(head).any(|field| name(field).is_some())
}

/// Returns true if the head has a field of this name.
pub fn has_field(message: &[u8], wanted: &str) -> bool {
    let head = &message[..head_bytes(message)];
    fields(head).any(|field| is_called(field, wanted))
}

/// The number of fields of this name in the head.
pub fn count_fields(message: &[u8], wanted: &str) -> usize {
    let head = &message[..head_bytes(message)];
    fields(head)
        .filter(|field| is_called(field, wanted))
        .count()
}

/// Rejects a message that exceeds the bounds.
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
    use super::*;

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
}
