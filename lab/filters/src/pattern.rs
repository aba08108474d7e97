//! Regular expressions and JSON paths, each compiled once per thread.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

use crate::json_path::JsonPath;

/// Maximum cached patterns; more than any workload has, unless patterns contain values.
const KEPT: usize = 256;
/// Largest compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Maximum length of a text after replacement.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// Maximum length of a text that is parsed as JSON.
const MAX_JSON_BYTES: usize = 1 << 20;

thread_local! {
    static PATTERNS: RefCell<HashMap<Box<str>, Regex>> = RefCell::default();
    static PATHS: RefCell<HashMap<Box<str>, JsonPath>> = RefCell::default();
}

/// Returns the first group of a pattern's first match, or the whole match without groups.
pub(crate) fn first(text: &str, pattern: &str) -> Result<Option<String>, String> {
    let found = |regex: &Regex| {
        let captures = regex.captures(text)?;
        let found = captures.get(1).or_else(|| captures.get(0))?;
        Some(found.as_str().to_owned())
    };
    with_pattern(pattern, found)
}

/// Replaces all matches of a pattern; `$1` and `$name` are groups of the match.
pub(crate) fn replace_all(text: &str, pattern: &str, by: &str) -> Result<String, String> {
    let replaced = |regex: &Regex| {
        let (mut out, mut end) = (String::new(), 0);
        for found in regex.captures_iter(text) {
            let Some(whole) = found.get(0) else { continue };
            out.push_str(&text[end..whole.start()]);
            found.expand(by, &mut out);
            end = whole.end();
            if out.len() > MAX_TEXT_BYTES {
                return Err(format!("the new text has more than {MAX_TEXT_BYTES} bytes"));
            }
        }
        out.push_str(&text[end..]);
        Ok(out)
    };
    with_pattern(pattern, replaced)?
}

/// Returns the result of a JSON path in a text: the only value, or a list of several; `None` without any.
pub(crate) fn json_path(text: &str, path: &str) -> Result<Option<serde_json::Value>, String> {
    if text.len() > MAX_JSON_BYTES {
        return Err(format!(
            "{} bytes are more than the {MAX_JSON_BYTES} that are read as JSON",
            text.len()
        ));
    }
    let document: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let compile =
        || JsonPath::parse(path).map_err(|error| format!("`{path}` is no JSON path: {error}"));
    PATHS.with_borrow_mut(|kept| {
        let found = kept_or_made(kept, path, compile)?.query(&document).all();
        Ok(match &*found {
            [] => None,
            [one] => Some((*one).clone()),
            all => Some(all.iter().map(|one| (*one).clone()).collect()),
        })
    })
}

/// Compiles a regular expression, of bounded size.
///
/// # Errors
/// An invalid or too large expression.
pub fn regex(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_PATTERN_BYTES)
        .build()
}

/// Accepts a pattern between slashes, as in captures.
fn with_pattern<T>(pattern: &str, act: impl FnOnce(&Regex) -> T) -> Result<T, String> {
    let inner = pattern
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix('/'));
    let inner = inner.unwrap_or(pattern);
    let compile =
        || regex(inner).map_err(|error| format!("`{pattern}` is no regular expression: {error}"));
    PATTERNS.with_borrow_mut(|kept| kept_or_made(kept, inner, compile).map(act))
}

fn kept_or_made<'k, T>(
    kept: &'k mut HashMap<Box<str>, T>,
    text: &str,
    make: impl FnOnce() -> Result<T, String>,
) -> Result<&'k T, String> {
    if !kept.contains_key(text) {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(text.into(), make()?);
    }
    Ok(&kept[text])
}
