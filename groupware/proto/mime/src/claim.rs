//! The domains that an address field can be read to contain.

use crate::head::{fields, head_bytes, is_called};

/// Returns true if fields of this name contain an address of the domain in any reading: by the
/// standard, which permits white space and comments even within an address (RFC 5322, 4.4), or by
/// programs that only look at the words. Quoted text is a name.
pub fn names_domain(message: &[u8], wanted: &str, domain: &str) -> bool {
    let head = &message[..head_bytes(message)];
    let mut called = fields(head).filter(|field| is_called(field, wanted));
    called.any(|field| {
        let colon = field.iter().position(|byte| *byte == b':');
        let said = &field[colon.map_or(0, |at| at + 1)..];
        let words = bare(said).unwrap_or_else(|| unquoted(said));
        let joined: Vec<u8> = words.iter().copied().filter(|byte| *byte != b' ').collect();
        holds(&words, domain) || holds(&joined, domain)
    })
}

/// Replaces comments and quoted text by spaces; `None` if one has no end.
fn bare(said: &[u8]) -> Option<Vec<u8>> {
    let (mut comments, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    let mut kept = Vec::with_capacity(said.len());
    for byte in said {
        let is_inside = is_quoted || comments > 0;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_inside,
            b'"' if comments == 0 => is_quoted = !is_quoted,
            b'(' if !is_quoted => comments += 1,
            b')' if comments > 0 => comments -= 1,
            _ if is_inside || byte.is_ascii_whitespace() => kept.push(b' '),
            _ => kept.push(*byte),
        }
    }
    (comments == 0 && !is_quoted).then_some(kept)
}

/// Replaces the characters of quotes and comments by spaces, since programs interpret them differently.
fn unquoted(said: &[u8]) -> Vec<u8> {
    let signs = said.iter().map(|byte| match byte {
        b'"' | b'(' | b')' | b'\\' => b' ',
        byte if byte.is_ascii_whitespace() => b' ',
        byte => *byte,
    });
    signs.collect()
}

fn holds(words: &[u8], domain: &str) -> bool {
    let ends = |byte: &u8| b"<>[],;:@ ".contains(byte);
    let mut parts = words.split(|byte| *byte == b'@').skip(1);
    parts.any(|part| {
        let name = part.split(ends).next().unwrap_or_default();
        let dots = name.iter().rev().take_while(|byte| **byte == b'.').count();
        name[..name.len() - dots].eq_ignore_ascii_case(domain.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn says(value: &str) -> bool {
        let message = format!("To: x@here.example\r\nFrom: {value}\r\n\r\nFrom: y@here.example");
        names_domain(message.as_bytes(), "From", "here.example")
    }

    #[test]
    fn addresses_are_found_however_they_are_written() {
        for own in [
            "ada@here.example",
            "Ada <ada@HERE.example.>",
            "ada@(x)here.example",
            "ada@here(a (deep) \\) one).example",
            "ada @ here . example",
            "ada@here.\r\n example",
            "\"a\\\"da\"@here.example",
            "<@there.example:ada@here.example>",
            "team: x@y, ada@here.example;",
            "ada@here.example <x@y>",
            "ada@here.example phone 7 <x@y>",
            "\"no end ada@here.example",
            "(no end <ada@here.example>",
        ] {
            assert!(says(own), "{own}");
        }
        for foreign in [
            "",
            "x@y",
            "\"ada@here.example\" <x@y>",
            "x@y (for ada@here.example)",
            "x@where.example",
            "x@here.example.org",
            "x@sub.here.example",
            "here.example@y",
            "=?utf-8?q?ada=40here.example?= <x@y>",
        ] {
            assert!(!says(foreign), "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_may_stand_within_an_address_hides_it(
            gaps in prop::collection::vec("( |\r\n\t|\\([a-z@., ]{0,5}\\)){0,3}", 5),
        ) {
            let [a, b, c, d, e] = &gaps[..] else { unreachable!() };
            let said = format!("{a}ada{b}@{c}here{d}.example{e}");
            prop_assert!(says(&said), "{:?}", said);
        }

        #[test]
        fn whatever_comes_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let message = [b"From:".as_slice(), &bytes, b"\r\n\r\n"].concat();
            names_domain(&message, "From", "here.example");
        }
    }
}
