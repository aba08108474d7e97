//! Readable bodies: JSON indented, long ones truncated, binary ones named.

use serde_json::Value;

/// A body as lines, and the omitted rest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) lines: Vec<String>,
    /// Appended after the lines, if something is missing.
    pub(crate) more: Option<String>,
}

/// Formats a body of this content type, `whole` bytes long: at most `most` lines of at most `width` characters.
pub(crate) fn body(
    bytes: &[u8],
    (whole, left_out): (u64, u64),
    kind: Option<&str>,
    encoding: Option<&str>,
    (most, width): (usize, usize),
) -> Shown {
    let nothing = |more: String| Shown {
        lines: Vec::new(),
        more: Some(more),
    };
    if bytes.is_empty() {
        return Shown {
            lines: Vec::new(),
            more: (whole > 0).then(|| format!("{whole} bytes")),
        };
    }
    let kind = kind.unwrap_or("no content type");
    if let Some(encoding) = encoding {
        return nothing(format!(
            "{whole} bytes of {kind}, as {}",
            one_line(encoding)
        ));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        // Without its parameters, such as the boundary of a form.
        let kind = kind.split(';').next().unwrap_or(kind);
        return nothing(format!("{whole} bytes of {}", one_line(kind)));
    };
    let indented = indented(text);
    let text = indented.as_deref().unwrap_or(text);
    let mut lines = text.lines();
    let shown: Vec<String> = lines
        .by_ref()
        .take(most)
        .map(|line| cut(&one_line(line), width))
        .collect();
    let left = lines.count();
    let more = match (left, left_out) {
        (0, 0) => None,
        (0, left_out) => Some(format!("{left_out} bytes more were not kept")),
        (left, _) => Some(format!("{left} lines more, of {whole} bytes in all")),
    };
    Shown { lines: shown, more }
}

/// Removes control characters.
pub(crate) fn one_line(text: &str) -> String {
    let visible = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c => c,
    };
    text.chars().map(visible).collect()
}

/// The start of a long line, with an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text
            .chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => text.to_owned(),
    }
}

/// A JSON document with a line for each field, in its own order; `None` if it is none.
fn indented(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) || serde_json::from_str::<Value>(text).is_err() {
        return None;
    }
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let mut before = None;
    for c in text.chars() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        if c.is_whitespace() {
            continue;
        }
        let is_empty = matches!((before, c), (Some('{'), '}') | (Some('['), ']'));
        match c {
            '}' | ']' => {
                depth -= 1;
                if !is_empty {
                    new_line(&mut out, depth);
                }
            }
            _ if matches!(before, Some('{' | '[')) => new_line(&mut out, depth),
            _ => {}
        }
        out.push(c);
        match c {
            '{' | '[' => depth += 1,
            ',' => new_line(&mut out, depth),
            ':' => out.push(' '),
            '"' => quoted = true,
            _ => {}
        }
        before = Some(c);
    }
    Some(out)
}

/// Deeper levels are not indented further.
const MOST_INDENT: usize = 20;

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(MOST_INDENT)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_has_a_line_for_each_field() {
        let json = r#"{"b":[1,{"a \"x\" {":null}],"a":{},"c":[]}"#;
        let lines = indented(json).unwrap();
        assert_eq!(
            lines,
            "{\n  \"b\": [\n    1,\n    {\n      \"a \\\"x\\\" {\": null\n    }\n  ],\n  \"a\": {},\n  \"c\": []\n}"
        );
        assert_eq!(indented("{not json}"), None);
    }

    #[test]
    fn what_is_too_long_says_how_much_is_missing() {
        let text = "line\n".repeat(10);
        let shown = body(text.as_bytes(), (50, 0), Some("text/plain"), None, (3, 3));
        assert_eq!(shown.lines, ["li…", "li…", "li…"]);
        assert_eq!(
            shown.more.as_deref(),
            Some("7 lines more, of 50 bytes in all")
        );
        let shown = body(b"x", (8, 7), None, None, (3, 3));
        assert_eq!(shown.more.as_deref(), Some("7 bytes more were not kept"));
        let shown = body(&[0xff, 0xfe], (2, 0), Some("image/png\u{1b}"), None, (3, 3));
        assert_eq!(shown.more.as_deref(), Some("2 bytes of image/png\u{fffd}"));
        let shown = body(b"x", (1, 0), None, Some("gzip"), (3, 3));
        assert_eq!(
            shown.more.as_deref(),
            Some("1 bytes of no content type, as gzip")
        );
    }

    proptest! {
        /// Indentation changes no value, and control characters are removed.
        #[test]
        fn any_json_stays_what_it_is(text in "[\\[\\]{}:,\"\\\\a0 \u{1b}\n]{0,40}") {
            if let Some(lines) = indented(&text) {
                let before: Value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(before, serde_json::from_str::<Value>(&lines).unwrap());
            }
            let shown = body(text.as_bytes(), (text.len() as u64, 0), None, None, (5, 40));
            prop_assert!(shown.lines.len() <= 5);
            prop_assert!(shown.lines.iter().all(|line| !line.contains(char::is_control)));
        }
    }
}
