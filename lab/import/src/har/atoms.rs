//! The parts of a request that may come from a server: segments of its path, values of its query, its form, its JSON,
//! and its headers.

use lab_workload::is_json_number;
use percent_encoding::percent_decode_str;

use super::body::FORM;
use crate::draft::{Body, Json, Request};
use crate::text::{HOLE, Text};

/// The parameter with the server's address, for headers that name the origin or referring page.
pub(super) const ORIGIN: &str = "origin";
/// Shortest value that is searched in parts: shorter ones occur in unrelated words.
const LOOKED_FOR: usize = 6;
/// Shortest word of a text that counts as a value.
const WORD: usize = 8;
/// Most words of a text that count.
const MAX_WORDS: usize = 200;
/// Longest integer that a template computes with.
const MAX_DIGITS: usize = 38;

/// The position of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    Path,
    Query,
    Form,
    Json,
    Header,
    /// A field of a multipart form.
    Part,
    /// A field of a form in text form.
    Field,
    /// A word of any other text.
    Word,
}

/// A value of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Atom {
    pub(super) place: Position,
    /// Its name; for a segment, the path before it.
    pub(super) name: String,
    /// Decoded.
    pub(super) value: String,
    /// Its form in the target, if it is there.
    raw: String,
}

/// All values of a request whose target is recorded as `target`.
pub(super) fn atoms(request: &mut Request) -> Vec<Atom> {
    let mut found = Vec::new();
    if let Some(target) = request.target.as_literal() {
        of_target(target, &mut found);
    }
    for (name, value) in &request.headers {
        let Some(text) = value.as_literal() else {
            continue;
        };
        // `Bearer abc`: the first word is the scheme.
        let value = text.rsplit(' ').next().unwrap_or(text);
        push(&mut found, Position::Header, name, value, value);
    }
    match &mut request.body {
        Body::Form(fields) => {
            for (name, value) in fields {
                let value = value.as_literal().unwrap_or_default();
                push(&mut found, Position::Form, name, value, value);
            }
        }
        Body::Json(json) => json.leaves("", &mut |key, leaf| {
            let value = match leaf {
                Json::Text(text) => text.as_literal().unwrap_or_default(),
                Json::Plain(plain) => plain.as_str(),
                Json::List(_) | Json::Map(_) => "",
            };
            push(&mut found, Position::Json, key, value, value);
        }),
        Body::Text(text) => {
            let kind = request.headers.iter();
            let mut kind = kind.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            let kind = kind.next().and_then(|(_, kind)| kind.as_literal());
            let kind = kind.unwrap_or_default();
            let text = text.with_holes();
            match kind.split(';').next().unwrap_or_default() {
                FORM => of_pairs(&text, Position::Field, &mut found),
                kind if kind.starts_with("multipart/") => {}
                _ => of_words(&text, &mut found),
            }
            of_parts(kind, &text, &mut found);
        }
        Body::None | Body::Bytes(_) => {}
    }
    found
}

/// The fields of a multipart form; files are unchanged.
fn of_parts(kind: &str, text: &str, found: &mut Vec<Atom>) {
    let Some((_, boundary)) = kind.split_once("boundary=") else {
        return;
    };
    let boundary = boundary
        .split(';')
        .next()
        .unwrap_or_default()
        .trim_matches('"');
    if !kind.starts_with("multipart/") || boundary.is_empty() {
        return;
    }
    for part in text.split(&format!("--{boundary}")) {
        let Some((head, value)) = part.split_once("\r\n\r\n") else {
            continue;
        };
        let name = head
            .split("name=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let value = value.trim_end_matches("\r\n");
        let is_plain = !head.contains("filename=") && !value.contains(HOLE);
        if let Some(name) = name.filter(|_| is_plain) {
            push(found, Position::Part, name, value, value);
        }
    }
}

fn push(found: &mut Vec<Atom>, place: Position, name: &str, value: &str, raw: &str) {
    if !value.is_empty() {
        found.push(Atom {
            place,
            name: name.to_owned(),
            value: value.to_owned(),
            raw: raw.to_owned(),
        });
    }
}

fn of_target(target: &str, found: &mut Vec<Atom>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let from = path.find("://").map_or(0, |at| at + 3);
    let from = path[from..].find('/').map_or(path.len(), |at| from + at);
    let mut at = from;
    for segment in path[from..].split('/').skip(1) {
        at += 1;
        let decoded = percent_decode_str(segment).decode_utf8_lossy();
        push(found, Position::Path, &path[from..at], &decoded, segment);
        at += segment.len();
    }
    of_pairs(query, Position::Query, found);
}

/// Names with values, encoded like a query.
fn of_pairs(text: &str, place: Position, found: &mut Vec<Atom>) {
    for pair in text.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let plus = value.replace('+', " ");
        let decoded = percent_decode_str(&plus).decode_utf8_lossy();
        push(found, place, name, &decoded, value);
    }
}

/// Words of a text that may be values: letters, digits, and other characters of tokens.
fn of_words(text: &str, found: &mut Vec<Atom>) {
    let parts = |c: char| !(c.is_ascii_alphanumeric() || "-_.~+/=".contains(c));
    let words = text.split(parts).filter(|word| {
        let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
        // Words that start with slashes are addresses.
        word.len() >= WORD
            && !word.starts_with('/')
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_alphabetic)
    });
    for word in words.take(MAX_WORDS) {
        push(found, Position::Word, "body", word, word);
    }
}

/// Returns true if a value is in its request as recorded.
pub(super) fn stands(request: &mut Request, atom: &Atom) -> bool {
    match (atom.place, &mut request.body) {
        (Position::Path | Position::Query, _) => request.target.with_holes().contains(&atom.raw),
        (Position::Header, _) => request
            .headers
            .iter()
            .any(|(name, value)| *name == atom.name && value.with_holes().contains(&atom.value)),
        (Position::Form, Body::Form(fields)) => fields
            .iter()
            .any(|(name, value)| *name == atom.name && value.as_literal() == Some(&atom.value)),
        (Position::Json, Body::Json(json)) => {
            let mut stands = false;
            json.leaves("", &mut |key, leaf| {
                stands |= key == atom.name
                    && match leaf {
                        Json::Text(text) => text.as_literal() == Some(&atom.value),
                        Json::Plain(plain) => *plain == atom.value,
                        Json::List(_) | Json::Map(_) => false,
                    };
            });
            stands
        }
        (Position::Part | Position::Field | Position::Word, Body::Text(text)) => {
            text.with_holes().contains(&atom.raw)
        }
        _ => false,
    }
}

/// Replaces an atom with an expression, and all others of its request with the same value.
pub(super) fn put(request: &mut Request, atom: &Atom, code: &str) {
    match atom.place {
        Position::Path | Position::Query => put_in_target(request, atom, code),
        Position::Header => {
            for (name, value) in &mut request.headers {
                let is_it = value
                    .as_literal()
                    .is_some_and(|text| text.ends_with(&atom.value));
                if *name == atom.name && is_it {
                    value.replace(&atom.value, code);
                }
            }
        }
        Position::Form => {
            if let Body::Form(fields) = &mut request.body {
                for (_, value) in fields.iter_mut().filter(|(name, _)| *name == atom.name) {
                    if value.as_literal() == Some(&atom.value) {
                        *value = Text::code(code);
                    }
                }
            }
        }
        Position::Part => {
            if let Body::Text(text) = &mut request.body
                && atom.value.len() >= LOOKED_FOR
            {
                text.replace(&atom.value, code);
            }
        }
        Position::Field => {
            if let Body::Text(text) = &mut request.body {
                text.replace_between(&atom.raw, &escaped(atom, code), "&=");
            }
        }
        Position::Word => {}
        Position::Json => {
            if let Body::Json(json) = &mut request.body {
                json.leaves("", &mut |key, leaf| put_in_leaf(key, leaf, atom, code));
            }
        }
    }
}

fn put_in_leaf(key: &str, leaf: &mut Json, atom: &Atom, code: &str) {
    if key != atom.name {
        return;
    }
    match leaf {
        // A number from a response would be sent as a number.
        Json::Text(text) if text.as_literal() == Some(&atom.value) => {
            let is_plain = is_json_number(&atom.value) || ["true", "false"].contains(&&*atom.value);
            *text = match is_plain {
                true => Text::code(&format!("{code} | string")),
                false => Text::code(code),
            };
        }
        Json::Plain(plain) if *plain == atom.value => {
            let is_whole = plain.len() <= MAX_DIGITS && !plain.contains(['.', 'e', 'E']);
            *leaf = match (is_json_number(plain), is_whole) {
                (true, true) => Json::Text(Text::code(&format!("{code} | int"))),
                (true, false) => Json::Text(Text::code(&format!("{code} | number"))),
                (false, _) => return,
            };
        }
        _ => {}
    }
}

/// Segment by segment, so that a value never matches within another.
fn put_in_target(request: &mut Request, atom: &Atom, code: &str) {
    let separators = if atom.place == Position::Path {
        "/"
    } else {
        "&="
    };
    request
        .target
        .replace_between(&atom.raw, &escaped(atom, code), separators);
}

/// The expression, encoded if the value was.
fn escaped(atom: &Atom, code: &str) -> String {
    match atom.raw == atom.value {
        true => code.to_owned(),
        false => format!("{code} | urlencode"),
    }
}
