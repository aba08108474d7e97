//! The method of a request line.

use super::names::unknown_name;
use crate::text_error::TextError;

/// The most common methods; a near match of one of them is a typing error.
const COMMON: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Valid methods that resemble a common one: of Exchange's WebDAV.
const NEAR: &[&str] = &["BDELETE"];
/// Longest method.
const MAX_BYTES: usize = 64;

/// Returns what is wrong with the method of a request line, if anything. Every token of capital letters is a method
/// (RFC 9110, section 9.1, allows servers to define methods): `PROPFIND`, `REPORT`, `PURGE`.
#[must_use]
pub fn method_problem(method: &str, rest: &str) -> Option<TextError> {
    let error = |message: String, help: String| {
        Some(TextError::new(message, 0..method.len().max(1)).help(help))
    };
    if COMMON.contains(&method) || NEAR.contains(&method) {
        return None;
    }
    if rest.is_empty() && (method.starts_with('/') || method.contains("://")) {
        let (message, _) = unknown_name("method", method, COMMON);
        return error(message, format!("write the method first: `GET {method}`"));
    }
    if method == "CONNECT" {
        let message = "`CONNECT` makes a tunnel of its connection".to_owned();
        let help = "ask the server itself: `GET /path`".to_owned();
        return error(message, help);
    }
    let capital =
        |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&b);
    let upper = method.to_ascii_uppercase();
    let slip = |common: &&&str| strsim::damerau_levenshtein(&upper, common) <= 1;
    let meant = COMMON.iter().find(slip);
    if method.len() <= MAX_BYTES
        && method.starts_with(|c: char| c.is_ascii_uppercase())
        && method.bytes().all(capital)
        && meant.is_none()
    {
        return None;
    }
    let help = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "a method is a word of capital letters, such as `GET` or `PROPFIND`".to_owned(),
    };
    error(format!("there is no method `{method}`"), help)
}

#[cfg(test)]
mod tests;
