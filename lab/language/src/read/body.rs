//! JSON bodies: a YAML tree compiled to one text template.
//!
//! A string of the tree is a template. Its substituted values are escaped as JSON strings. A string that is exactly one
//! `{{ … }}` becomes a number if its value is one (`index`, `neighbour(1)`, `int_in(1, 6)`, arithmetic, `true`,
//! `none`), and a value captured by a JSON path keeps its type: a number, a boolean, a list, or an object. Other
//! variables are text and stay strings. `{{ index | string }}` makes a string of a number. In messages of services,
//! whose fields are known, a text field is always a string.

use lab_workload::template::{Escape, Symbols, TemplateError};
use lab_workload::{Field, Template};

use crate::error::Problems;
use lab_units::parts::{At, Json, Scalar};

/// Compiles a JSON body; `None` if a problem was reported.
pub(super) fn json(
    json: &At<Json>,
    symbols: Symbols<'_>,
    problems: &mut Problems,
) -> Option<Template> {
    message(json, &Field::Plain, symbols, problems)
}

/// Compiles a message whose fields are known.
pub(super) fn message(
    json: &At<Json>,
    of: &Field,
    symbols: Symbols<'_>,
    problems: &mut Problems,
) -> Option<Template> {
    let mut parts = Vec::new();
    let complete = write((&json.value, of), symbols, &mut parts, problems);
    complete.then(|| Template::concatenate(&parts))
}

/// Appends the parts of a value. The file's reader bounds the depth.
fn write(
    (json, of): (&Json, &Field),
    symbols: Symbols<'_>,
    parts: &mut Vec<Template>,
    problems: &mut Problems,
) -> bool {
    let mut complete = true;
    match json {
        Json::Null => parts.push(Template::literal("null")),
        Json::Scalar(scalar) => {
            complete &= match of {
                Field::Text => write_text(scalar, symbols, parts, problems),
                _ => write_scalar(scalar, symbols, parts, problems),
            };
        }
        Json::List(items) => {
            parts.push(Template::literal("["));
            for (i, item) in items.iter().enumerate() {
                parts.push(Template::literal(if i > 0 { "," } else { "" }));
                complete &= write((item, of), symbols, parts, problems);
            }
            parts.push(Template::literal("]"));
        }
        Json::Table(table) => {
            parts.push(Template::literal("{"));
            for (i, (key, value)) in table.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                parts.push(Template::literal(&format!(
                    "{comma}{}:",
                    quoted(&key.value)
                )));
                let inner = match of {
                    Field::Message(kind) => kind.field(&key.value),
                    Field::Map(inner) => Some((**inner).clone()),
                    Field::Text | Field::Plain => None,
                };
                let of = inner.unwrap_or(Field::Plain);
                complete &= write((value, &of), symbols, parts, problems);
            }
            parts.push(Template::literal("}"));
        }
    }
    complete
}

fn write_scalar(
    scalar: &At<Scalar>,
    symbols: Symbols<'_>,
    parts: &mut Vec<Template>,
    problems: &mut Problems,
) -> bool {
    let Scalar::Text(text) = &scalar.value else {
        let number = match &scalar.value {
            Scalar::Float(number) => number.json(),
            other => other.to_string(),
        };
        parts.push(Template::literal(&number));
        return true;
    };
    if !text.contains('{') {
        parts.push(Template::literal(&quoted(text)));
        return true;
    }
    let parsed = Template::parse_with(text, symbols, Escape::JsonValue);
    push((scalar, text), parsed, parts, problems)
}

/// Appends a text, whatever its type in YAML, or its template's value.
fn write_text(
    scalar: &At<Scalar>,
    symbols: Symbols<'_>,
    parts: &mut Vec<Template>,
    problems: &mut Problems,
) -> bool {
    let text = scalar.written();
    let parsed = Template::parse_with(&text, symbols, Escape::JsonString);
    push((scalar, &text), parsed, parts, problems)
}

fn push(
    (scalar, text): (&At<Scalar>, &str),
    parsed: Result<Template, TemplateError>,
    parts: &mut Vec<Template>,
    problems: &mut Problems,
) -> bool {
    match parsed {
        Ok(template) => {
            parts.push(template);
            true
        }
        Err(error) => {
            let span = &scalar.span;
            problems.push(span.text_problem("in the JSON body", text, &error.into()));
            false
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = text.to_owned();
    Escape::JsonValue.apply(&mut out, 0);
    out
}
