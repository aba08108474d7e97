//! Converts the body of a recorded request to that of a workload's request.
//!
//! Recorders differ: with or without base64, as one text or as fields, with or without a content type.

use std::collections::HashSet;

use serde_json::Value;
use url::form_urlencoded;

use super::coding::base64;
use super::read::{Param, Recorded, Sent};
use crate::draft::{Body, Json};
use crate::multipart::{self, BOUNDARY, Part};
use crate::text::Text;

/// Longest body that is written out.
const MAX_TEXT: usize = 200 << 10;

pub(super) const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
const MULTIPART: &str = "multipart/form-data";

/// A body and its content type.
#[derive(Debug, Default)]
pub(super) struct TypedBody {
    pub(super) body: Body,
    /// The header to send; `None` if the body implies it.
    pub(super) kind: Option<String>,
}

impl TypedBody {
    fn of(body: Body, kind: &str) -> Self {
        Self {
            body,
            kind: (!kind.is_empty()).then(|| kind.to_owned()),
        }
    }

    fn implied(body: Body) -> Self {
        Self { body, kind: None }
    }
}

/// The body of a request.
pub(super) fn of(one: &Recorded, said: &mut Vec<String>) -> TypedBody {
    let Some(sent) = &one.entry.request.body else {
        return TypedBody::default();
    };
    let header = one
        .sent("content-type")
        .filter(|kind| !kind.trim().is_empty());
    let kind: String = header
        .unwrap_or(&sent.kind)
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    let place = format!("{} {}", one.entry.request.method, one.url.path());
    let text = match text_of(sent) {
        Ok(text) => text,
        Err(count) => {
            said.push(format!(
                "{place}: its body is no text; as many bytes of any kind are sent"
            ));
            return TypedBody::of(Body::Bytes(count), &kind);
        }
    };
    if text.is_empty() {
        return of_fields(&sent.params, &kind, &place, said);
    }
    if text.len() > MAX_TEXT {
        return TypedBody::of(too_long(text.len(), &place, said), &kind);
    }
    let kind = match kind.is_empty() {
        true => guessed(&text, &place, said),
        false => kind,
    };
    of_text(&text, &kind, &place, said)
}

/// The text of a body, or its number of bytes if it is no text. Invalid base64 is taken unchanged.
fn text_of(sent: &Sent) -> Result<String, u64> {
    let Some(bytes) = sent.is_base64.then(|| base64(&sent.text)).flatten() else {
        return Ok(sent.text.clone());
    };
    let count = bytes.len() as u64;
    let text = String::from_utf8(bytes).map_err(|_| count)?;
    let is_binary = |c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\n' | '\u{c}');
    match text.contains(is_binary) {
        true => Err(count),
        false => Ok(text),
    }
}

/// The media type without its parameters, in lower case.
fn essence(kind: &str) -> String {
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// The content type that a body suggests, if the recording has none.
fn guessed(text: &str, place: &str, said: &mut Vec<String>) -> String {
    let trimmed = text.trim_start();
    if trimmed.starts_with(['{', '[']) && serde_json::from_str::<Value>(text).is_ok() {
        return JSON.to_owned();
    }
    if let Some(boundary) = trimmed
        .strip_prefix("--")
        .and_then(|rest| rest.lines().next())
        && trimmed.contains("form-data")
    {
        return format!("{MULTIPART}; boundary={boundary}");
    }
    if is_form(text) {
        return FORM.to_owned();
    }
    if trimmed.starts_with("<?xml") {
        return "application/xml".to_owned();
    }
    said.push(format!(
        "{place}: its body has no content type in the recording, and is sent as text/plain"
    ));
    String::new()
}

/// Returns true if a text only consists of pairs of names and values.
fn is_form(text: &str) -> bool {
    let is_legal = |b: u8| b.is_ascii_alphanumeric() || b"%+-._*~".contains(&b);
    text.split('&').all(|pair| {
        let pair = pair.split_once('=');
        pair.is_some_and(|(name, value)| {
            !name.is_empty() && name.bytes().chain(value.bytes()).all(is_legal)
        })
    })
}

fn of_text(text: &str, kind: &str, place: &str, said: &mut Vec<String>) -> TypedBody {
    let essence = essence(kind);
    if essence == FORM {
        let pairs: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes())
            .into_owned()
            .collect();
        if is_each_once(&pairs) {
            return TypedBody::implied(form(&pairs));
        }
    }
    if essence.ends_with("json")
        && let Some(json) = Json::parse(text)
    {
        let body = Body::Json(json);
        return match essence == JSON {
            true => TypedBody::implied(body),
            false => TypedBody::of(body, kind),
        };
    }
    if essence == MULTIPART && text.contains('\u{fffd}') {
        said.push(format!(
            "{place}: the files in its body are no text, and not as they were"
        ));
    }
    TypedBody::of(Body::Text(Text::literal(text)), kind)
}

fn is_each_once(pairs: &[(String, String)]) -> bool {
    let mut names = HashSet::new();
    pairs.iter().all(|(name, _)| names.insert(name))
}

fn form(pairs: &[(String, String)]) -> Body {
    let field = |(name, value): &(String, String)| (name.clone(), Text::literal(value));
    Body::Form(pairs.iter().map(field).collect())
}

/// A body of which the recording only has the fields.
fn of_fields(params: &[Param], kind: &str, place: &str, said: &mut Vec<String>) -> TypedBody {
    if params.is_empty() {
        return TypedBody::default();
    }
    let essence = essence(kind);
    let has_file = params.iter().any(|param| param.file.is_some());
    if essence == MULTIPART || (essence.is_empty() && has_file) {
        return of_parts(params, kind, place, said);
    }
    if essence == FORM || essence.is_empty() {
        let pairs = decoded(params);
        if is_each_once(&pairs) {
            return TypedBody::implied(form(&pairs));
        }
        let text = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&pairs)
            .finish();
        return TypedBody::of(Body::Text(Text::literal(&text)), FORM);
    }
    said.push(format!(
        "{place}: its body ({essence}) is left out: the recording has it as fields of a form"
    ));
    TypedBody::default()
}

/// Decodes fields, which not all recorders do. A character that no encoded form contains shows that all are decoded;
/// without one, an escape (`%2B`) shows that they are not.
fn decoded(params: &[Param]) -> Vec<(String, String)> {
    let texts = || {
        let both = |param: &Param| (param.name.clone(), param.value.clone().unwrap_or_default());
        params.iter().map(both)
    };
    let is_legal = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"%+-._*~!'()@:/,;$?".contains(&b))
    };
    let has_escape = |text: &str| {
        text.match_indices('%').any(|(at, _)| {
            let digits = text.get(at + 1..at + 3).unwrap_or_default();
            digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit())
        })
    };
    let is_encoded = texts().all(|(name, value)| is_legal(&name) && is_legal(&value))
        && texts().any(|(name, value)| has_escape(&name) || has_escape(&value));
    if !is_encoded {
        return texts().collect();
    }
    let text = |text: &str| {
        let plus = text.replace('+', " ");
        percent_encoding::percent_decode_str(&plus)
            .decode_utf8_lossy()
            .into_owned()
    };
    texts()
        .map(|(name, value)| (text(&name), text(&value)))
        .collect()
}

fn of_parts(params: &[Param], kind: &str, place: &str, said: &mut Vec<String>) -> TypedBody {
    let mut parts = Vec::with_capacity(params.len());
    for param in params {
        let value = param.value.as_deref().unwrap_or_default();
        if let Some(file) = param.file.as_deref().filter(|_| value.is_empty()) {
            said.push(format!(
                "{place}: the recording lacks the content of its file {file}; an empty one is sent"
            ));
        }
        parts.push(Part {
            name: param.name.clone(),
            file: param.file.clone(),
            kind: param.kind.chars().filter(|c| !c.is_control()).collect(),
            value: Text::literal(value),
        });
    }
    let named = kind.split_once("boundary=");
    let named = named.and_then(|(_, rest)| rest.split(';').next());
    let named = named.map_or("", |text| text.trim().trim_matches('"'));
    let wish = if named.is_empty() { BOUNDARY } else { named };
    let boundary = multipart::boundary(wish, &parts);
    let text = multipart::body(parts, &boundary);
    let count = text.with_holes().len();
    let kind = format!("{MULTIPART}; boundary={boundary}");
    if count > MAX_TEXT {
        return TypedBody::of(too_long(count, place, said), &kind);
    }
    TypedBody::of(Body::Text(text), &kind)
}

fn too_long(count: usize, place: &str, said: &mut Vec<String>) -> Body {
    said.push(format!(
        "{place}: its body of {count} bytes is sent as bytes of any kind"
    ));
    Body::Bytes(count as u64)
}
