//! Checks a response against its request's expectations. It reads no connection and keeps nothing.

use std::time::Duration;

use lab_workload::{
    Comparison, Expectation, JsonPath, JsonState, Template, UserScope, compare_numbers,
    is_json_number,
};
use serde_json::Value;

use crate::time::Nanos;
use lab_filters::reading::json::{Json, Kind, Leaf};

/// How many characters of the actual value an error shows.
const SHOWN: usize = 80;

/// A whole response.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'a> {
    pub(crate) status: u16,
    /// Decoded; empty if nothing reads it.
    pub(crate) body: &'a [u8],
    /// The size of the body in bytes, after any decoding.
    pub(crate) size: u64,
    /// From the send to the last byte.
    pub(crate) took: Nanos,
}

/// Judges a response by one expectation. `header` is the value of the header that it names.
///
/// # Errors
/// A message with what the response has instead.
pub(super) fn expect(
    expectation: &Expectation,
    answer: Whole<'_>,
    json: &mut Json<'_>,
    header: Option<&str>,
    scope: &mut UserScope,
) -> Result<(), String> {
    let mut rendered = |template: &Template| {
        let mut text = String::new();
        let done = template.render(scope, &mut text);
        done.map(|()| text).map_err(|error| error.to_string())
    };
    match expectation {
        Expectation::Json { path, value } => equals(path, &rendered(value)?, json),
        Expectation::Number {
            path,
            comparison,
            value,
        } => compares(path, *comparison, &rendered(value)?, json),
        Expectation::Found { path, state } => found(path, *state, json),
        Expectation::Graphql => graphql(json.tree()?),
        Expectation::Schema(schema) => schema.judge(json.tree()?),
        Expectation::Contains(text) => contains(answer.body, &rendered(text)?, true),
        Expectation::NotContains(text) => contains(answer.body, &rendered(text)?, false),
        Expectation::Size { low, high } => size(answer.size, *low, *high),
        Expectation::Time { below } => time(Duration::from_nanos(answer.took), *below),
        Expectation::Header { name, text } => {
            let value = header.ok_or_else(|| format!("no header `{name}`"))?;
            let wanted = rendered(text)?;
            judge(value.contains(&wanted), || {
                let (value, wanted) = (shown(value), shown(&wanted));
                format!("header `{name}` is {value}, without {wanted}")
            })
        }
    }
}

fn judge(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// Returns the start of the actual value, as far as it fits.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("`{start}{more}`")
}

/// Describes the values that a path finds.
fn shown_leaves(found: &[Leaf<'_>]) -> String {
    match found {
        [] => "nothing".to_owned(),
        [one] => shown(&one.text),
        [one, more @ ..] => format!("{} and {} more", shown(&one.text), more.len()),
    }
}

fn equals(path: &JsonPath, wanted: &str, json: &mut Json<'_>) -> Result<(), String> {
    let found = json.leaves(path)?;
    judge(found.iter().any(|leaf| leaf.is(wanted)), || {
        let (instead, wanted) = (shown_leaves(&found), shown(wanted));
        format!("`{}` is {instead}, not {wanted}", path.as_str())
    })
}

fn compares(
    path: &JsonPath,
    comparison: Comparison,
    wanted: &str,
    json: &mut Json<'_>,
) -> Result<(), String> {
    let (path_text, wanted, sign) = (path.as_str(), wanted.trim(), comparison.sign());
    if !is_json_number(wanted) {
        let wanted = shown(wanted);
        return Err(format!(
            "`{path_text}` can't be compared with {wanted}, which is no number"
        ));
    }
    let found = json.leaves(path)?;
    let accepts = |leaf: &Leaf<'_>| {
        let ordering = compare_numbers(&leaf.text, wanted);
        leaf.kind == Kind::Number && ordering.is_some_and(|o| comparison.accepts(o))
    };
    judge(found.iter().any(accepts), || {
        let no_number = match found.as_slice() {
            [one] if one.kind != Kind::Number => ", which is no number",
            _ => "",
        };
        let instead = shown_leaves(&found);
        format!("`{path_text}` is {instead}{no_number}, not {sign} {wanted}")
    })
}

fn found(path: &JsonPath, state: JsonState, json: &mut Json<'_>) -> Result<(), String> {
    let found = json.leaves(path)?;
    let is_null = |leaf: &Leaf<'_>| leaf.kind == Kind::Null;
    let (holds, wanted) = match state {
        JsonState::Absent => (found.is_empty(), "absent"),
        JsonState::Null => (found.iter().any(is_null), "null"),
        JsonState::Present => (!found.iter().all(is_null), "present"),
    };
    judge(holds, || {
        let instead = match found.as_slice() {
            [] => "absent".to_owned(),
            found => shown_leaves(found),
        };
        format!("`{}` is {instead}, not {wanted}", path.as_str())
    })
}

/// Judges a GraphQL response (specification of October 2021, section 7.1): a mapping, with a list of `errors` if there
/// were any.
fn graphql(answer: &Value) -> Result<(), String> {
    let Value::Object(members) = answer else {
        return Err("the answer is none of GraphQL: it is no JSON object".to_owned());
    };
    let errors = match members.get("errors") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(errors)) => errors,
        Some(one) => std::slice::from_ref(one),
    };
    match errors {
        [] if members.contains_key("data") => Ok(()),
        [] => Err("the answer is none of GraphQL: it has neither `data` nor `errors`".to_owned()),
        [first, more @ ..] => {
            let message = first.get("message").and_then(Value::as_str);
            let message = message.map_or_else(|| first.to_string(), str::to_owned);
            let more = match more.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            Err(format!("GraphQL reports {}{more}", shown(&message)))
        }
    }
}

fn contains(body: &[u8], wanted: &str, is_wanted: bool) -> Result<(), String> {
    let body = String::from_utf8_lossy(body);
    judge(body.contains(wanted) == is_wanted, || {
        let verb = if is_wanted {
            "doesn't contain"
        } else {
            "contains"
        };
        format!("the body {verb} {}", shown(wanted))
    })
}

fn size(size: u64, low: u64, high: u64) -> Result<(), String> {
    judge((low..=high).contains(&size), || {
        let wanted = match (low, high) {
            (0, high) => format!("at most {high}"),
            (low, u64::MAX) => format!("at least {low}"),
            (low, high) if low == high => low.to_string(),
            (low, high) => format!("{low} to {high}"),
        };
        format!("the body has {size} bytes, not {wanted}")
    })
}

fn time(took: Duration, below: Duration) -> Result<(), String> {
    judge(took < below, || {
        format!("the answer took {took:.1?}, not less than {below:?}")
    })
}
