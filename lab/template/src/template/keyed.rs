//! Where a key may be used: only for an HMAC or a token, so that no key is sent or stored.

use std::ops::Range;

use lab_filters::KeyKind;

use super::error::{Help, TemplateError};
use super::token::{Token, TokenKind, mark};
use crate::key::Key;

/// The default algorithm of a token.
const USUAL_ALGORITHM: &str = "HS256";

/// Checks all calls of `key` in an expression, or in the code of a text, that starts at `start` of its template.
pub(super) fn check(tokens: &[Token], start: usize, keys: &[Key]) -> Result<(), TemplateError> {
    for (i, token) in tokens.iter().enumerate() {
        let called = token.kind == TokenKind::Name && mark(tokens, i + 1, "(");
        let is_filter = i > 0 && mark(tokens, i - 1, "|");
        if called && token.text == "key" && !is_filter {
            check_call(tokens, i, keys).map_err(|(at, message, help)| TemplateError {
                message,
                at: start + at.start..start + at.end,
                help: Some(help),
            })?;
        }
    }
    Ok(())
}

type Fault = (Range<usize>, String, Help);

fn check_call(tokens: &[Token], i: usize, keys: &[Key]) -> Result<(), Fault> {
    let place = |token: &Token| token.at..token.at + token.text.len();
    let usage = || {
        Help::Text(
            "a key makes a keyed hash or a token: `text | hmac(key('api'))`, `jwt(claims, key('api'), 'RS256')`"
                .to_owned(),
        )
    };
    let name = tokens
        .get(i + 2)
        .filter(|token| token.kind == TokenKind::Text && mark(tokens, i + 3, ")"));
    let Some(name) = name else {
        let message = "`key()` takes the name of a key as a text".to_owned();
        return Err((place(&tokens[i]), message, usage()));
    };
    let text = &name.text[1..name.text.len() - 1];
    let Some(key) = keys.iter().find(|key| key.name == text) else {
        let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        let help = match names.is_empty() {
            false => Help::names(text, &names, "the keys are"),
            true => Help::Text(format!(
                "name it at the top of the workload: `keys: {{ {text}: {{ file: {text}.pem }} }}`"
            )),
        };
        return Err((place(name), format!("there is no key `{text}`"), help));
    };
    let user = user(tokens, i).ok_or_else(|| {
        let message = "a key stands only where it signs".to_owned();
        (place(&tokens[i]), message, usage())
    })?;
    let wanted = match user {
        "hmac" => Some(KeyKind::Secret),
        algorithm => KeyKind::of_token(algorithm),
    };
    match wanted.and_then(|wanted| key.mismatch(wanted, user)) {
        None => Ok(()),
        Some(message) => {
            let help = "name another one of the `keys`, or another algorithm".to_owned();
            Err((place(name), message, Help::Text(help)))
        }
    }
}

/// Returns the user of a key: `hmac`, or the algorithm of a token, which is empty if it is no constant.
fn user<'a>(tokens: &[Token<'a>], i: usize) -> Option<&'a str> {
    let is_whole = |after: usize| mark(tokens, after, ",") || mark(tokens, after, ")");
    let before = i.checked_sub(1).filter(|_| is_whole(i + 4))?;
    if mark(tokens, before, "(") {
        let filter = tokens.get(before.checked_sub(1)?)?;
        return (filter.text == "hmac").then_some("hmac");
    }
    let open = opening(tokens, before)?;
    let function = tokens.get(open.checked_sub(1)?)?;
    if function.text != "jwt" {
        return None;
    }
    Some(match tokens.get(i + 5) {
        _ if mark(tokens, i + 4, ")") => USUAL_ALGORITHM,
        Some(token) if token.kind == TokenKind::Text => &token.text[1..token.text.len() - 1],
        _ => "",
    })
}

/// Returns the parenthesis of the call whose first argument ends at this comma.
fn opening(tokens: &[Token], comma: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..comma).rev() {
        let token = &tokens[at];
        if token.kind != TokenKind::Mark {
            continue;
        }
        match token.text {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth > 0 => depth -= 1,
            "(" => return mark(tokens, comma, ",").then_some(at),
            "[" | "{" | "," if depth == 0 => return None,
            _ => {}
        }
    }
    None
}
