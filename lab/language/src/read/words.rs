//! Splits a typed command line into words.

use crate::text_error::TextError;

/// Returns the words of a line and their offsets: they end at white space outside of quotes and of `{{ … }}` and `{% …
/// %}`. Quotes, double or single, around a word are removed; nothing is escaped within them.
///
/// # Errors
/// A line without words, and one with an unterminated quote.
pub(super) fn words(line: &str) -> Result<Vec<(usize, String)>, TextError> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let begin = line.len() - rest.len();
        let (word, after, skipped) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let end = end_of(&rest[1..], |c| c == quote).ok_or_else(|| {
                    let message = format!("the quote {quote} doesn't end");
                    TextError::new(message, begin..line.len())
                })?;
                let after = &rest[end + 2..];
                if !after.is_empty() && !after.starts_with(char::is_whitespace) {
                    let message = "a word ends with its quote; leave a space behind it";
                    let at = line.len() - after.len();
                    return Err(TextError::new(message, begin..at));
                }
                (&rest[1..=end], after, 1)
            }
            _ => {
                let end = end_of(rest, char::is_whitespace).unwrap_or(rest.len());
                (&rest[..end], &rest[end..], 0)
            }
        };
        words.push((begin + skipped, word.to_owned()));
        rest = after.trim_start();
    }
    match words.is_empty() {
        true => Err(TextError::new("there is no command", 0..line.len())
            .help("write one as you type it: `SET key:{{ index }} \"a text\"`")),
        false => Ok(words),
    }
}

/// Returns the first place of such a character outside of code; `None` if there is none.
fn end_of(text: &str, is_end: impl Fn(char) -> bool) -> Option<usize> {
    let mut code: Option<&str> = None;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        match code {
            Some(close) if rest.starts_with(close) => code = None,
            Some(_) => {}
            None if rest.starts_with("{{") => code = Some("}}"),
            None if rest.starts_with("{%") => code = Some("%}"),
            None if rest.starts_with("{#") => code = Some("#}"),
            None if is_end(c) => return Some(at),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_end_at_spaces_outside_of_quotes_and_code() {
        let check = |line: &str, expected: &[(usize, &str)]| {
            let words = words(line).unwrap();
            let words: Vec<_> = words
                .iter()
                .map(|(at, word)| (*at, word.as_str()))
                .collect();
            assert_eq!(words, expected, "{line}");
        };
        check(" PING ", &[(1, "PING")]);
        check("GET key:{{ index }}", &[(0, "GET"), (4, "key:{{ index }}")]);
        check(
            r#"SET k "two words" '"' "{{ "a" ~ name }}" """#,
            &[
                (0, "SET"),
                (4, "k"),
                (7, "two words"),
                (19, "\""),
                (23, r#"{{ "a" ~ name }}"#),
                (42, ""),
            ],
        );
        check(
            "A {% if x %}b c{% endif %}",
            &[(0, "A"), (2, "{% if x %}b"), (14, "c{% endif %}")],
        );
        check("É é", &[(0, "É"), (3, "é")]);
        for bad in ["", "  ", "SET \"a", "SET 'a'b", "SET \"{{ \" }}"] {
            assert!(words(bad).is_err(), "{bad}");
        }
    }
}
