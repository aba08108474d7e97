//! Serialization of parameter values (OpenAPI 3, `style` and `explode`; Swagger 2, `collectionFormat`; RFC 6570).

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

use super::refs::Spec;

/// Characters that a path or query must escape.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b'/')
    .add(b'<')
    .add(b'=')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
/// Deepest object that is written as names with brackets.
const DEPTH: usize = 8;

/// The style of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Simple,
    Label,
    Matrix,
    /// Values separated by this.
    Form(&'static str),
    DeepObject,
}

pub(super) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

fn text(parameter: &Value, key: &str) -> String {
    let text = parameter.get(key).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// The style of a parameter, and whether entries are separate.
fn style_of(parameter: &Value) -> (Style, bool) {
    let (style, explodes) = match text(parameter, "collectionFormat").as_str() {
        "multi" => (Style::Form(","), true),
        "ssv" => (Style::Form("%20"), false),
        "tsv" => (Style::Form("%09"), false),
        "pipes" => (Style::Form("%7C"), false),
        "csv" => (Style::Form(","), false),
        _ => match (
            text(parameter, "style").as_str(),
            text(parameter, "in").as_str(),
        ) {
            ("label", _) => (Style::Label, false),
            ("matrix", _) => (Style::Matrix, false),
            ("simple", _) | ("", "path" | "header") => (Style::Simple, false),
            ("spaceDelimited", _) => (Style::Form("%20"), false),
            ("pipeDelimited", _) => (Style::Form("%7C"), false),
            ("deepObject", _) => (Style::DeepObject, true),
            // The default of Swagger 2 is lists with commas.
            _ => (Style::Form(","), parameter.get("type").is_none()),
        },
    };
    let said = parameter.get("explode").and_then(Value::as_bool);
    (style, said.unwrap_or(explodes))
}

/// Entries of a value, with names if it is an object.
fn entries(spec: &Spec<'_>, value: &Value) -> Vec<(Option<String>, String)> {
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| (None, spec.text_of(item)))
            .collect(),
        Value::Object(map) => map
            .iter()
            .map(|(name, item)| (Some(name.clone()), spec.text_of(item)))
            .collect(),
        plain => vec![(None, spec.text_of(plain))],
    }
}

/// Entries in one text: `a,b`, or for an object `name,a`, or with separate entries `name=a`.
fn one_text(
    entries: &[(Option<String>, String)],
    separator: &str,
    explodes: bool,
    encode: fn(&str) -> String,
) -> String {
    let equals = if explodes { "=" } else { separator };
    let entry = |(name, value): &(Option<String>, String)| match name {
        Some(name) => format!("{}{equals}{}", encode(name), encode(value)),
        None => encode(value),
    };
    entries
        .iter()
        .map(entry)
        .collect::<Vec<_>>()
        .join(separator)
}

/// A value in a path: its prefix, and the value, both encoded.
pub(super) fn of_path(spec: &Spec<'_>, parameter: &Value, value: &Value) -> (String, String) {
    let name = text(parameter, "name");
    let (style, explodes) = style_of(parameter);
    let entries = entries(spec, value);
    match style {
        Style::Label => {
            let separator = if explodes { "." } else { "," };
            (
                ".".to_owned(),
                one_text(&entries, separator, explodes, escaped),
            )
        }
        Style::Matrix => {
            let key = escaped(&name);
            let is_object = value.is_object();
            match explodes {
                true if is_object => (";".to_owned(), one_text(&entries, ";", true, escaped)),
                true => {
                    let again = format!(";{key}=");
                    (again.clone(), one_text(&entries, &again, true, escaped))
                }
                false => (format!(";{key}="), one_text(&entries, ",", false, escaped)),
            }
        }
        Style::Simple | Style::Form(_) | Style::DeepObject => {
            (String::new(), one_text(&entries, ",", explodes, escaped))
        }
    }
}

/// A value in a query, a form, or cookies: pairs of names and values, both encoded.
pub(super) fn of_query(spec: &Spec<'_>, parameter: &Value, value: &Value) -> Vec<(String, String)> {
    let name = text(parameter, "name");
    let key = escaped(&name);
    if parameter.get("content").is_some() {
        let json = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        return vec![(key, escaped(&json))];
    }
    let (style, explodes) = style_of(parameter);
    match (style, value) {
        (Style::DeepObject, Value::Object(_)) => {
            let mut pairs = Vec::new();
            deep(spec, &key, value, &mut pairs, 0);
            pairs
        }
        (_, Value::Array(items)) if explodes => items
            .iter()
            .map(|item| (key.clone(), escaped(&spec.text_of(item))))
            .collect(),
        (_, Value::Object(map)) if explodes => map
            .iter()
            .map(|(name, item)| (escaped(name), escaped(&spec.text_of(item))))
            .collect(),
        _ => {
            let separator = match style {
                Style::Form(separator) => separator,
                _ => ",",
            };
            let text = one_text(&entries(spec, value), separator, false, escaped);
            vec![(key, text)]
        }
    }
}

fn deep(
    spec: &Spec<'_>,
    key: &str,
    value: &Value,
    pairs: &mut Vec<(String, String)>,
    depth: usize,
) {
    match value {
        Value::Object(map) if depth < DEPTH => {
            for (name, inner) in map {
                deep(
                    spec,
                    &format!("{key}[{}]", escaped(name)),
                    inner,
                    pairs,
                    depth + 1,
                );
            }
        }
        Value::Array(items) if depth < DEPTH => {
            for inner in items {
                deep(spec, key, inner, pairs, depth + 1);
            }
        }
        plain => pairs.push((key.to_owned(), escaped(&spec.text_of(plain)))),
    }
}

/// A value in a header, which is not encoded.
pub(super) fn of_header(spec: &Spec<'_>, parameter: &Value, value: &Value) -> String {
    if parameter.get("content").is_some() && !value.is_string() {
        return value.to_string();
    }
    let (_, explodes) = style_of(parameter);
    one_text(&entries(spec, value), ",", explodes, str::to_owned)
}
