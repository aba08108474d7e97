//! Prepares a message for delivery: removes fields that no recipient may see, or that only this
//! server may write. Everything else stays byte for byte.

use std::borrow::Cow;

use crate::findings;
use crate::head::{fields, head_bytes, is_called};

/// Returns the message as its recipients may see it: without `Bcc`, and without forged
/// authentication results in this server's name (RFC 8601, 5).
pub fn as_delivered<'a>(message: &'a [u8], server: &str) -> Cow<'a, [u8]> {
    let goes = |field: &[u8]| is_blind_copy(field) || is_in_the_name_of(field, server);
    let (head, body) = message.split_at(head_bytes(message));
    if !fields(head).any(goes) {
        return Cow::Borrowed(message);
    }
    let mut kept = Vec::with_capacity(message.len());
    for field in fields(head).filter(|field| !goes(field)) {
        kept.extend_from_slice(field);
    }
    kept.extend_from_slice(body);
    Cow::Owned(kept)
}

fn is_blind_copy(field: &[u8]) -> bool {
    is_called(field, "Bcc") || is_called(field, "Resent-Bcc")
}

/// Returns true if a field claims to be this server's authentication results. Readers may skip
/// comments and strip quotes and backslashes, so the name counts anywhere before the first result.
fn is_in_the_name_of(field: &[u8], server: &str) -> bool {
    if !is_called(field, findings::FIELD) {
        return false;
    }
    let mut said = Vec::new();
    let (mut comments, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for byte in field.iter().skip_while(|byte| **byte != b':') {
        match byte {
            _ if is_escaped => {}
            b'"' => is_quoted = !is_quoted,
            b'(' => comments += 1,
            b')' => comments = comments.saturating_sub(1),
            b';' if comments == 0 && !is_quoted => break,
            _ => {}
        }
        is_escaped = !is_escaped && *byte == b'\\';
        if *byte != b'\\' {
            said.push(*byte);
        }
    }
    let is_of_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"._-".contains(byte);
    let mut names = said.split(|byte| !is_of_name(byte));
    names.any(|name| name.eq_ignore_ascii_case(server.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_stripped(message: &str, expected: &str) {
        let stripped = as_delivered(message.as_bytes(), "here.example");
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
    fn nobody_says_in_this_servers_name_what_it_found() {
        let check = |value: &str, is_kept: bool| {
            let message = format!("Authentication-Results: {value}\r\nSubject: x\r\n\r\nb");
            let expected = match is_kept {
                true => message.as_str(),
                false => "Subject: x\r\n\r\nb",
            };
            check_stripped(&message, expected);
        };
        check("here.example; spf=pass", false);
        check("(no; not) HERE.example 1; spf=pass", false);
        check("\"here.\\example\"; spf=pass", false);
        check("\";\" here.example", false);
        check("\r\n\there.example;\r\n\tspf=pass", false);
        check("there.example; spf=pass smtp.mailfrom=here.example", true);
        check_stripped("authentication-results : here.example\n\n", "\n");
        check_stripped("X: here.example\n\n", "X: here.example\n\n");
    }

    proptest! {
        #[test]
        fn no_parser_finds_a_blind_copy_in_what_is_left(
            lines in prop::collection::vec("([ \t]?(Bcc|bcc|BCC|To|X)[ ]?:?[ a@,]{0,6})?(\r\n|\n)", 0..12)
        ) {
            let message = lines.concat();
            let stripped = as_delivered(message.as_bytes(), "here.example");
            let parsed = mail_parser::MessageParser::new().parse(stripped.as_ref());
            let found = parsed.is_some_and(|it| it.header(mail_parser::HeaderName::Bcc).is_some());
            prop_assert!(!found, "{:?}", String::from_utf8_lossy(&stripped));
        }
    }
}
