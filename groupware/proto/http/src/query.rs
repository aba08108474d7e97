//! The query of an address: form-encoded names and values.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Parses names and values in order (`application/x-www-form-urlencoded`, as browsers do): invalid UTF-8 is
/// replaced, a name without a value has an empty one, and an empty part between two `&` is skipped.
pub fn query_pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts.map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(name), decoded(value))
    })
}

fn decoded(text: &str) -> String {
    if !text.bytes().any(|byte| matches!(byte, b'+' | b'%')) {
        return text.to_owned();
    }
    let spaced = text.replace('+', " ");
    let decoded: Cow<'_, [u8]> = percent_decode(spaced.as_bytes()).into();
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_browsers_do() {
        let check = |query: &str, expected: &[(&str, &str)]| {
            let found: Vec<_> = query_pairs(query).collect();
            let found: Vec<_> = found
                .iter()
                .map(|(name, value)| (&**name, &**value))
                .collect();
            assert_eq!(found, expected, "{query}");
        };
        check("", &[]);
        check("&&", &[]);
        check("a", &[("a", "")]);
        check("a=&=b&c", &[("a", ""), ("", "b"), ("c", "")]);
        check("a=b=c&a=d", &[("a", "b=c"), ("a", "d")]);
        check(
            "since=2026-01-01T00%3a00:00Z&x=1+2%2B3",
            &[("since", "2026-01-01T00:00:00Z"), ("x", "1 2+3")],
        );
        check("%C3%A9=\u{e9}%", &[("\u{e9}", "\u{e9}%")]);
        check("a=%FF%2&b=%zz", &[("a", "\u{fffd}%2"), ("b", "%zz")]);
    }
}
