//! Words of the code in templates, for names to be found and placed.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Name,
    Number,
    /// A quoted text without a backslash.
    Text,
    Mark,
}

/// A word of an expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// The number of arguments between the parenthesis that comes first and the one that closes it.
pub(super) fn arguments(tokens: &[Token]) -> Option<usize> {
    let (mut depth, mut commas, mut any) = (0usize, 0, false);
    for token in tokens {
        match token.text {
            "(" | "[" | "{" if token.kind == TokenKind::Mark => depth += 1,
            ")" | "]" | "}" if token.kind == TokenKind::Mark => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(if any { commas + 1 } else { 0 });
                }
                continue;
            }
            "," if depth == 1 => commas += 1,
            _ => {}
        }
        any |= depth > 1 || !(token.text == "(" && depth == 1);
    }
    None
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

/// Words of an expression; an attribute (`.name`) is one mark, since it is no variable.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
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
        } else if let ('"' | '\'', Some(length)) = (first, quoted_length(rest, first)) {
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

/// Words of the code in a text with statements; what lies between is text, not code.
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

/// Length of the quoted text that `rest` begins with, quotes included.
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
