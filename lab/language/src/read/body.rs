//! JSON bodies: a YAML tree compiled to one text template.
//!
//! A string of the tree is a template. Its substituted values are escaped as JSON strings. A string
//! that is exactly one `{{ … }}` becomes a number where its value is one (`index`, `neighbour(1)`,
//! `int_in(1, 6)`, arithmetic, `true`, `none`); variables are text and stay strings.
//! `{{ index ~ '' }}` makes a string of a number.

use lab_workload::Template;
use lab_workload::template::{Escape, Symbols};

use crate::error::Problems;
use crate::file::{At, Json, Scalar};

/// Compiles a JSON body; `None` when a problem was noted.
pub(super) fn json(
    json: &At<Json>,
    symbols: Symbols<'_>,
    problems: &mut Problems,
) -> Option<Template> {
    let mut parts = Vec::new();
    let complete = write(&json.value, symbols, &mut parts, problems);
    complete.then(|| Template::concatenate(&parts))
}

/// Appends the parts of a value. Depth is bounded by the reader of the file.
fn write(
    json: &Json,
    symbols: Symbols<'_>,
    parts: &mut Vec<Template>,
    problems: &mut Problems,
) -> bool {
    let mut complete = true;
    match json {
        Json::Null => parts.push(Template::literal("null")),
        Json::Scalar(scalar) => complete &= write_scalar(scalar, symbols, parts, problems),
        Json::List(items) => {
            parts.push(Template::literal("["));
            for (i, item) in items.iter().enumerate() {
                parts.push(Template::literal(if i > 0 { "," } else { "" }));
                complete &= write(item, symbols, parts, problems);
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
                complete &= write(value, symbols, parts, problems);
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
        parts.push(Template::literal(&scalar.text()));
        return true;
    };
    if !text.contains('{') {
        parts.push(Template::literal(&quoted(text)));
        return true;
    }
    match Template::parse_with(text, symbols, Escape::JsonValue) {
        Ok(template) => {
            parts.push(template);
            true
        }
        Err(error) => {
            problems.push(
                scalar
                    .span
                    .text_problem("in the JSON body", text, &error.into()),
            );
            false
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = text.to_owned();
    Escape::JsonValue.apply(&mut out, 0);
    out
}
