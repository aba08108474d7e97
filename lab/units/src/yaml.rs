//! Formats texts as YAML, and as templates that render to themselves.

use std::fmt::Write as _;

/// Words that YAML parses as another type than text, in any case.
const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A scalar of one line that parses to `value`: plain if that is unambiguous, else in double quotes.
#[must_use]
pub fn text(value: &str) -> String {
    if is_plain(value) {
        return value.to_owned();
    }
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_shown(c) => out.push(c),
            c => {
                // Writing to a string can't fail.
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

/// Returns true if a scalar needs no quotes, also within `{ }` and `[ ]`.
fn is_plain(value: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '/';
    let goes_on = |c: char| c.is_ascii_alphanumeric() || "/ _.-+=?&~()".contains(c);
    value.starts_with(begins)
        && value.chars().all(goes_on)
        && !value.ends_with(' ')
        && !WORDS.contains(&value.to_ascii_lowercase().as_str())
}

/// Returns true if a character is valid and visible in a double-quoted scalar.
fn is_shown(c: char) -> bool {
    let bidirectional =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let line_breaks = matches!(c, '\u{2028}' | '\u{2029}');
    let others = matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !c.is_control() && !bidirectional && !line_breaks && !others
}

/// A template that renders to `value`, in any context: no brace of it starts an expression.
#[must_use]
pub fn literal(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars().peekable();
    while let Some(c) = rest.next() {
        let opens = c == '{' && rest.peek().is_none_or(|next| "{%#".contains(*next));
        match opens {
            true => out.push_str("{{ '{' }}"),
            false => out.push(c),
        }
    }
    out
}

/// A comment, with `#` before each line.
#[must_use]
pub fn comment(indent: usize, text: &str) -> String {
    let visible = |c: char| if is_shown(c) { c } else { ' ' };
    let line = |line: &str| {
        let line: String = line.chars().map(visible).collect();
        format!("{:indent$}# {}", "", line.trim_end())
            .trim_end()
            .to_owned()
            + "\n"
    };
    text.lines().map(line).collect()
}

/// A short name for a study or workload: lower-case letters, digits, and hyphens, 40 at most.
#[must_use]
pub fn short_name(text: &str, otherwise: &str) -> String {
    let mut name = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' | '0'..='9' => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
        if name.len() == 40 {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    match name.is_empty() {
        true => otherwise.to_owned(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stand_as_they_are() {
        for (value, written) in [
            (
                "GET /mail/inbox?count=10&x=1",
                "GET /mail/inbox?count=10&x=1",
            ),
            ("no", "\"no\""),
            ("1e3", "\"1e3\""),
            ("a: b", "\"a: b\""),
            ("", "\"\""),
            (
                "a\u{7}\"\\\u{2028}ä",
                "\"a\\U00000007\\\"\\\\\\U00002028ä\"",
            ),
        ] {
            assert_eq!(text(value), written);
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        for (given, name) in [
            ("Shop.example:8080/Cart", "shop-example-8080-cart"),
            ("…", "draft"),
            ("--a--", "a"),
        ] {
            assert_eq!(short_name(given, "draft"), name);
        }
        assert_eq!(short_name(&"x".repeat(99), "draft").len(), 40);
    }

    #[test]
    fn comments_stay_comments() {
        assert_eq!(comment(2, "a\nb\u{2028}c"), "  # a\n  # b c\n");
    }
}
