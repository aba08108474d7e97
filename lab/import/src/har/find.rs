//! Finds the place in a response of a value that a later request contains, as a capture.
//!
//! Every capture is tested on the recorded response.

use std::sync::LazyLock;

use html_escape::decode_html_entities;
use lab_workload::{HtmlPath, is_json_number};
use regex::Regex;
use serde_json::{Number, Value};

use super::atoms::{Atom, Position};
use super::read::Recorded;
use lab_units::names::word;

/// Deepest JSON that is searched.
const DEPTH: usize = 32;
/// Characters before a value that a pattern includes.
const CONTEXT: usize = 24;
/// Values of at least this length are searched everywhere.
const TOKEN: usize = 16;
/// Values of at least this length are searched in quotes.
const QUOTED: usize = 8;
/// Most places of a value in a response that are tried.
const PLACES: usize = 8;

/// The place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// A name for its variable.
    pub(super) name: String,
    /// The capture in workload form.
    pub(super) capture: String,
    /// True if it gives a list that contains the value.
    pub(super) is_list: bool,
}

/// Finds the value of `atom` in a response.
pub(super) fn find(one: &Recorded, atom: &Atom) -> Option<Source> {
    let value = atom.value.as_str();
    in_headers(one, value)
        .or_else(|| in_json(one, value))
        // A link is one of similar ones, any of which will do.
        .or_else(|| in_links(&one.body, atom))
        .or_else(|| in_tags(&one.body, value))
        .or_else(|| in_page(one, value))
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
            // Several are on separate lines.
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

fn in_json(one: &Recorded, value: &str) -> Option<Source> {
    let body = one.body.as_str();
    if !body.trim_start().starts_with(['{', '[']) || !one.holds(value) {
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
        Value::Number(number) => is_number(number, value),
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

/// Returns true if `value` is this number, digit for digit as in the body.
fn is_number(number: &Number, value: &str) -> bool {
    let same = || is_json_number(value) && value.parse::<f64>().ok() == number.as_f64();
    number.to_string() == value || (number.is_f64() && same())
}

static TAG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)<(?:input|meta|button|option)\b[^<>]*>").expect("a pattern"));
static ATTRIBUTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"([A-Za-z-]+)\s*=\s*("[^"]*"|'[^']*')"#).expect("a pattern"));

/// A hidden field, or a `meta` with a name: its value is after or before that name.
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

/// A segment after the same path as in the request: `/items/17` in a link.
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

static UNSEEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?is)<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)\s*>").expect("a pattern")
});
static ANY_TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"<([A-Za-z][A-Za-z0-9-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)>"#).expect("a pattern")
});
static ANY_ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>`]+))?"#).expect("a pattern")
});

/// A tag as browsers parse it: names in lower case, values without quotes and entities.
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

fn tags(page: &str) -> Vec<Tag> {
    let page = UNSEEN.replace_all(page, "");
    let tag = |found: regex::Captures<'_>| Tag {
        name: found[1].to_ascii_lowercase(),
        attributes: ANY_ATTRIBUTE
            .captures_iter(&found[2])
            .map(|one| {
                let held = one.get(2).map_or("", |value| value.as_str());
                let held = held.trim_matches(['"', '\'']);
                (
                    one[1].to_ascii_lowercase(),
                    decode_html_entities(held).into_owned(),
                )
            })
            .collect(),
    };
    ANY_TAG.captures_iter(&page).map(tag).collect()
}

/// An attribute of any element: with entities, in capitals, or without quotes. The element is identified by its name,
/// its id, or the attribute itself.
fn in_page(one: &Recorded, value: &str) -> Option<Source> {
    if !one.body.contains('<') || !one.holds(value) {
        return None;
    }
    let tags = tags(&one.body);
    let is_sound = |text: &str| {
        let sound = |c: char| c.is_ascii_alphanumeric() || "-_.:[]$".contains(c);
        !text.is_empty() && text.len() <= 100 && text.chars().all(sound)
    };
    for tag in &tags {
        let holds = tag.attributes.iter().find(|(_, held)| held == value);
        let Some((attribute, _)) = holds.filter(|(name, _)| is_sound(name)) else {
            continue;
        };
        let by = |key: &'static str| {
            Some((
                key,
                tag.get(key)
                    .filter(|held| is_sound(held) && *held != value)?,
            ))
        };
        let known = by("name").or_else(|| by("id")).or_else(|| by("property"));
        let selector = match known {
            Some((key, held)) => format!("{}[{key}=\"{held}\"]", tag.name),
            None => format!("{}[{attribute}]", tag.name),
        };
        let selects = |other: &&Tag| {
            other.name == tag.name
                && match known {
                    Some((key, held)) => other.get(key) == Some(held),
                    None => true,
                }
                && other.get(attribute).is_some()
        };
        let path = format!("({selector})@{attribute}");
        let is_first = tags
            .iter()
            .find(selects)
            .and_then(|first| first.get(attribute))
            == Some(value);
        if is_first && HtmlPath::parse(&path).is_ok() {
            let name = known.map_or(attribute.as_str(), |(_, held)| held);
            return Some(single(name, format!("html{path}")));
        }
    }
    None
}

/// A long or quoted value, after the text before it on its line.
fn in_text(body: &str, atom: &Atom) -> Option<Source> {
    let value = atom.value.as_str();
    if value.len() < QUOTED {
        return None;
    }
    let places = body.match_indices(value).take(PLACES);
    let pattern = places
        .filter_map(|(at, _)| pattern_at(body, at, value))
        .next()?;
    let name = match atom.place {
        Position::Path => "token",
        _ => atom.name.as_str(),
    };
    Some(single(name, pattern))
}

/// A pattern whose first match is the value at a place of a response.
fn pattern_at(body: &str, at: usize, value: &str) -> Option<String> {
    let line = body[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut from = at.saturating_sub(CONTEXT).max(line);
    while !body.is_char_boundary(from) {
        from += 1;
    }
    let before = &body[from..at];
    let is_quoted = before.ends_with(['"', '\'', '`']);
    if before.trim().len() < 3 || (value.len() < TOKEN && !is_quoted) {
        return None;
    }
    let pattern = format!("/{}([^\"'<>&\\s]+)/", regex::escape(before));
    (gives(body, &pattern, value) == Some(false)).then_some(pattern)
}

/// Whether a pattern finds a value: `Some(false)` as its first match, `Some(true)` as a later one, which needs all
/// matches.
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
