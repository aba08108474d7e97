//! Where in an answer a value stands that a later request carries, as a capture.
//!
//! Every capture is tried on the recorded answer before it is believed.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::atoms::{Atom, Position};
use super::read::Recorded;
use crate::names::word;

/// Deepest JSON that is looked through.
const DEPTH: usize = 32;
/// Characters before a value that a pattern takes along.
const CONTEXT: usize = 24;
/// Values as long as this are looked for wherever they stand.
const TOKEN: usize = 16;

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// What a variable for it may be called.
    pub(super) name: String,
    /// As a workload writes it.
    pub(super) capture: String,
    /// Whether it gives a list, of which the value is one.
    pub(super) is_list: bool,
}

/// Where the value of `atom` is in an answer.
pub(super) fn find(one: &Recorded, atom: &Atom) -> Option<Source> {
    let value = atom.value.as_str();
    in_headers(one, value)
        .or_else(|| in_json(&one.body, value))
        // A link stands among others like it, of which any will do.
        .or_else(|| in_links(&one.body, atom))
        .or_else(|| in_tags(&one.body, value))
        .or_else(|| in_text(&one.body, atom))
}

fn single(name: &str, capture: String) -> Source {
    Source {
        name: word(name),
        capture,
        is_list: false,
    }
}

fn in_headers(one: &Recorded, value: &str) -> Option<Source> {
    for header in &one.entry.response.headers {
        if header.name.eq_ignore_ascii_case("set-cookie") {
            // Several stand on lines of their own.
            for line in header.value.lines() {
                let pair = line.split(';').next().unwrap_or_default();
                if let Some((name, found)) = pair.split_once('=')
                    && found == value
                    && is_token(name)
                {
                    return Some(single(name, format!("cookie.{name}")));
                }
            }
        } else if header.value == value && is_token(&header.name) {
            return Some(single(&header.name, format!("header.{}", header.name)));
        }
    }
    None
}

fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn in_json(body: &str, value: &str) -> Option<Source> {
    if !body.trim_start().starts_with(['{', '[']) || !body.contains(value) {
        return None;
    }
    let root: Value = serde_json::from_str(body).ok()?;
    let mut path = Vec::new();
    if !leaf(&root, value, &mut path, 0) {
        return None;
    }
    let is_list = path.iter().any(Option::is_none);
    let mut capture = "$".to_owned();
    for key in &path {
        match key {
            Some(key) if is_plain(key) => capture.push_str(&format!(".{key}")),
            Some(key) => capture.push_str(&format!(
                "['{}']",
                key.replace('\\', "\\\\").replace('\'', "\\'")
            )),
            None => capture.push_str("[*]"),
        }
    }
    if capture.contains("{{") || capture.contains("{%") {
        return None;
    }
    let keys: Vec<&str> = path.iter().flatten().map(String::as_str).collect();
    let name = keys[keys.len().saturating_sub(2)..].join("_");
    Some(Source {
        name: word(&name),
        capture,
        is_list,
    })
}

fn is_plain(key: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && key.chars().all(is_word)
}

/// Finds the path of a leaf; `None` in it is any entry of a list.
fn leaf(node: &Value, value: &str, path: &mut Vec<Option<String>>, depth: usize) -> bool {
    if depth > DEPTH {
        return false;
    }
    match node {
        Value::String(text) => text == value,
        Value::Number(number) => number.to_string() == value,
        Value::Array(items) => {
            path.push(None);
            let found = items.iter().any(|item| leaf(item, value, path, depth + 1));
            if !found {
                path.pop();
            }
            found
        }
        Value::Object(map) => {
            for (key, item) in map {
                path.push(Some(key.clone()));
                if leaf(item, value, path, depth + 1) {
                    return true;
                }
                path.pop();
            }
            false
        }
        Value::Null | Value::Bool(_) => false,
    }
}

static TAG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)<(?:input|meta|button|option)\b[^<>]*>").expect("a pattern"));
static ATTRIBUTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"([A-Za-z-]+)\s*=\s*("[^"]*"|'[^']*')"#).expect("a pattern"));

/// A hidden field, or a `meta` with a name: its value stands after or before that name.
fn in_tags(body: &str, value: &str) -> Option<Source> {
    for tag in TAG.find_iter(body).map(|found| found.as_str()) {
        if !tag.contains(value) {
            continue;
        }
        let attributes: Vec<_> = ATTRIBUTE.captures_iter(tag).collect();
        let of = |names: &[&str]| {
            let found = attributes
                .iter()
                .find(|one| names.contains(&one[1].to_ascii_lowercase().as_str()));
            found.map(|one| {
                (
                    one.get(0).map_or(0, |m| m.start()),
                    one[0].to_owned(),
                    one[2].to_owned(),
                )
            })
        };
        let Some((name_at, name, quoted)) = of(&["name"]) else {
            continue;
        };
        let Some((value_at, _, held)) = of(&["value", "content"]) else {
            continue;
        };
        if held.trim_matches(['"', '\'']) != value {
            continue;
        }
        let quote = &held[..1];
        let key = if tag[value_at..].to_ascii_lowercase().starts_with("value") {
            "value"
        } else {
            "content"
        };
        let holds = format!("{key}={quote}([^{quote}]*){quote}");
        let name = regex::escape(&name);
        let pattern = match name_at < value_at {
            true => format!("{name}[^>]*{holds}"),
            false => format!("{holds}[^>]*{name}"),
        };
        let pattern = format!("/{pattern}/");
        if gives(body, &pattern, value) == Some(false) {
            return Some(single(quoted.trim_matches(['"', '\'']), pattern));
        }
    }
    None
}

/// A segment after the path that it has in the request: `/items/17` in a link.
fn in_links(body: &str, atom: &Atom) -> Option<Source> {
    let before = atom.name.trim_end_matches('/');
    if atom.place != Position::Path || before.is_empty() {
        return None;
    }
    let class = match atom.value.bytes().all(|b| b.is_ascii_digit()) {
        true => "[0-9]+",
        false => "[A-Za-z0-9_.~%-]+",
    };
    let pattern = format!("/{}/({class})/g", regex::escape(before));
    let last = before.rsplit('/').next().unwrap_or_default();
    gives(body, &pattern, &atom.value).map(|_| Source {
        name: word(&format!("{last}_id")),
        capture: pattern,
        is_list: true,
    })
}

/// A long value after what comes before it on its line.
fn in_text(body: &str, atom: &Atom) -> Option<Source> {
    let value = atom.value.as_str();
    if value.len() < TOKEN {
        return None;
    }
    let at = body.find(value)?;
    let line = body[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut from = at.saturating_sub(CONTEXT).max(line);
    while !body.is_char_boundary(from) {
        from += 1;
    }
    let before = &body[from..at];
    if before.trim().len() < 3 {
        return None;
    }
    let pattern = format!("/{}([^\"'<>&\\s]+)/", regex::escape(before));
    let name = match atom.place {
        Position::Path => "token",
        _ => atom.name.as_str(),
    };
    (gives(body, &pattern, value) == Some(false)).then(|| single(name, pattern))
}

/// Whether a pattern gives a value: `Some(false)` as its first match, `Some(true)` as a later one, where
/// it gives them all.
fn gives(body: &str, pattern: &str, value: &str) -> Option<bool> {
    let takes_all = pattern.ends_with("/g");
    let inner = pattern.strip_prefix('/')?;
    let inner = inner
        .strip_suffix("/g")
        .or_else(|| inner.strip_suffix('/'))?;
    let regex = Regex::new(inner).ok()?;
    let mut matches = regex.captures_iter(body).filter_map(|found| found.get(1));
    match takes_all {
        true => matches
            .position(|found| found.as_str() == value)
            .map(|at| at > 0),
        false => (matches.next()?.as_str() == value).then_some(false),
    }
}
