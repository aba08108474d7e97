//! Text into HTML: nothing in it can open a tag, end an attribute, or steer the page.

use crate::format::plain;

/// The text, safe between tags and inside double-quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in plain(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;
    use proptest::prelude::*;

    #[test]
    fn the_five_characters() {
        assert_eq!(
            escape("<a b=\"c\">&'"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#39;"
        );
    }

    proptest! {
        #[test]
        fn nothing_of_markup_survives(text in ".{0,200}") {
            let escaped = escape(&text);
            let forbidden = ['<', '>', '"', '\'', '\0', '\u{1b}'];
            prop_assert!(!escaped.contains(forbidden));
        }
    }
}
