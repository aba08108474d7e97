//! Tokens of the code in templates, to find names and their places.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Name,
    Number,
    /// A quoted text without a backslash.
    Text,
    Mark,
}

/// A token of an expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// Returns, for each token that is a parenthesis, the number of arguments up to its closing one. One pass for all:
/// separate scans would repeat nested calls.
pub(super) fn arguments(tokens: &[Token]) -> Vec<Option<usize>> {
    let mut counts = vec![None; tokens.len()];
    let mut open: Vec<Open> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_mark = token.kind == TokenKind::Mark;
        match token.text {
            ")" | "]" | "}" if is_mark => {
                if let Some(closed) = open.pop() {
                    counts[closed.at] = Some(closed.commas + usize::from(closed.any));
                }
                continue;
            }
            "," if is_mark => {
                if let Some(around) = open.last_mut() {
                    around.commas += 1;
                }
            }
            _ => {}
        }
        if let Some(around) = open.last_mut() {
            around.any = true;
        }
        if is_mark && matches!(token.text, "(" | "[" | "{") {
            open.push(Open {
                at,
                commas: 0,
                any: false,
            });
        }
    }
    counts
}

/// Returns the first parenthesis nested deeper than `most`.
pub(super) fn too_deep<'a, 't>(tokens: &'a [Token<'t>], most: usize) -> Option<&'a Token<'t>> {
    let mut depth = 0_usize;
    tokens.iter().find(|token| {
        match token.text {
            "(" | "[" | "{" if token.kind == TokenKind::Mark => depth += 1,
            ")" | "]" | "}" if token.kind == TokenKind::Mark => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > most
    })
}

/// An open parenthesis, and its content so far.
struct Open {
    at: usize,
    commas: usize,
    any: bool,
}

pub(super) fn mark(tokens: &[Token], at: usize, text: &str) -> bool {
    tokens
        .get(at)
        .is_some_and(|t| t.kind == TokenKind::Mark && t.text == text)
}

pub(super) fn expect(tokens: &[Token], at: &mut usize, text: &str) -> Option<()> {
    let found = mark(tokens, *at, text);
    *at += 1;
    found.then_some(())
}

/// Returns the tokens of an expression; an attribute (`.name`) is one mark, since it is no variable.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    // An unterminated quote is a mark. Later quotes of its kind follow backslashes, or they would end it, so they are
    // unterminated as well: the rest is scanned once, not for each of them.
    let mut unended = Vec::new();
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let run = |test: fn(char) -> bool| rest.find(|c| !test(c)).unwrap_or(rest.len());
        let (kind, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_alphabetic() || first == '_' {
            (TokenKind::Name, run(|c| c.is_alphanumeric() || c == '_'))
        } else if first.is_ascii_digit() {
            (
                TokenKind::Number,
                run(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_'),
            )
        } else if first == '.' {
            (
                TokenKind::Mark,
                1 + rest[1..]
                    .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .unwrap_or(rest.len() - 1),
            )
        } else if let Some(length) = text_length(rest, first, &mut unended) {
            let kind = if rest[..length].contains('\\') {
                TokenKind::Mark
            } else {
                TokenKind::Text
            };
            (kind, length)
        } else {
            (TokenKind::Mark, first.len_utf8())
        };
        tokens.push(Token {
            kind,
            text: &rest[..length],
            at,
        });
        at += length;
    }
    tokens
}

/// Returns the tokens of the code in an expression, or in a text with statements.
pub(super) fn words(source: &str, is_text: bool) -> Vec<Token<'_>> {
    match is_text {
        true => code_tokens(source),
        false => tokens(source),
    }
}

/// Returns the tokens of the code in a text with statements; the text between is no code.
pub(super) fn code_tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|i| at + i) {
        at = open + 1;
        let end = match text[at..].chars().next() {
            Some('{') => "}}",
            Some('%') => "%}",
            Some('#') => {
                at = text[at..].find("#}").map_or(text.len(), |i| at + i + 2);
                continue;
            }
            _ => continue,
        };
        let close = text[at + 1..].find(end).map_or(text.len(), |i| at + 1 + i);
        let code = &text[at + 1..close];
        found.extend(tokens(code).into_iter().map(|t| Token {
            at: t.at + at + 1,
            ..t
        }));
        at = close;
    }
    found
}

/// Returns the length of the quoted text at the start of `rest`, if `first` is a terminated quote.
fn text_length(rest: &str, first: char, unended: &mut Vec<char>) -> Option<usize> {
    if !matches!(first, '"' | '\'') || unended.contains(&first) {
        return None;
    }
    let length = quoted_length(rest, first);
    if length.is_none() {
        unended.push(first);
    }
    length
}

/// Returns the length of the quoted text at the start of `rest`, including quotes.
fn quoted_length(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return Some(i + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_counted_for_each_parenthesis() {
        let check = |source: &str, expected: &[Option<usize>]| {
            let tokens = tokens(source);
            let counts = arguments(&tokens).into_iter().zip(&tokens);
            let counts = counts.filter(|(_, token)| token.text == "(");
            let counts: Vec<_> = counts.map(|(count, _)| count).collect();
            assert_eq!(counts, expected, "{source}");
        };
        check("f()", &[Some(0)]);
        check("f(1)", &[Some(1)]);
        check("f(())", &[Some(1), Some(0)]);
        check("f([])", &[Some(1)]);
        check("f(1, g(2, 3), [4, 5])", &[Some(3), Some(2)]);
        check("f(1, g(2", &[None, None]);
        check("f(','", &[None]);
        check("f(',')", &[Some(1)]);
        check(") f(1)", &[Some(1)]);
    }

    #[test]
    fn what_is_too_deep_is_found_where_it_begins() {
        let at = |source: &str| too_deep(&tokens(source), 2).map(|token| token.at);
        assert_eq!(at("((1)) + [(2)]"), None);
        assert_eq!(at(") (a[f(1)])"), Some(6));
        assert_eq!(at("'((('"), None);
    }

    #[test]
    fn quotes_behind_backslashes_end_nothing() {
        let kinds = |source: &str| -> Vec<_> {
            let tokens = tokens(source);
            let words = tokens.iter().map(|token| (token.kind, token.text));
            words.map(|(kind, text)| (kind, text.to_owned())).collect()
        };
        let marks = |source: &str| {
            kinds(source)
                .iter()
                .all(|(kind, _)| *kind == TokenKind::Mark)
        };
        assert!(marks(r"'\'\'\'"));
        assert!(marks(r#"'\'\"\'"#));
        assert_eq!(
            kinds(r#"'\' "a""#).last(),
            Some(&(TokenKind::Text, "\"a\"".to_owned()))
        );
        assert_eq!(kinds("'a' 'b").len(), 3);
        assert_eq!(kinds("'a' 'b'").len(), 2);
    }
}
