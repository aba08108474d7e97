//! YAML as a tree in which every value knows its place.
//!
//! A tree, rather than the file types themselves, lets one load report several problems, suggest the nearest key, and
//! apply `--set` values before any check.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Location, Spanned};

use crate::error::Problem;
use crate::source::{self, SourceFile, Span};

/// Largest file; the largest shipped one has 10 KB.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;
/// Deepest nesting; a JSON body may be deep, a workload itself has eight levels.
const MAX_DEPTH: usize = 48;
/// Most values, counted after the expansion of aliases.
const MAX_NODES: usize = 100_000;
/// Most aliases, anchors, and merges.
const MAX_ALIASES: usize = 1_000;
/// Most values that aliases may add.
const MAX_REPLAYED: usize = 50_000;

/// A value of the file.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its place.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// The kinds of values.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(Decimal),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// A number with a fraction or an exponent, or outside of `i64`. Equal if the values are.
#[derive(Debug, Clone)]
pub struct Decimal {
    /// The nearest binary number.
    pub value: f64,
    /// The digits in the file, if it is from one.
    written: Option<Box<str>>,
}

impl Decimal {
    /// A number with its text in the file.
    fn of_file(value: f64, text: &str) -> Self {
        let is_number = text.bytes().any(|b| b.is_ascii_digit());
        Self {
            value,
            written: is_number.then(|| text.into()),
        }
    }

    /// The text in the file.
    #[must_use]
    pub fn written(&self) -> String {
        self.written
            .as_deref()
            .map_or_else(|| self.value.to_string(), str::to_owned)
    }

    /// The number in JSON, digit for digit where the file's text is a JSON number.
    #[must_use]
    pub fn json(&self) -> String {
        let kept = self
            .written
            .as_deref()
            .filter(|text| lab_filters::is_json_number(text));
        kept.map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

impl From<f64> for Decimal {
    fn from(value: f64) -> Self {
        Self {
            value,
            written: None,
        }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A key of a mapping.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its place.
    pub span: Span,
    /// The key.
    pub text: String,
}

impl Node {
    /// The kind of the value, for an error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a switch (true or false)",
            Value::Int(..) | Value::Float(..) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.text == key).map(|(_, v)| v),
            _ => None,
        }
    }
}

/// Checks size and encoding of a file.
///
/// # Errors
/// When it is more than a megabyte, or not UTF-8, with the place.
pub fn text_file(name: &str, bytes: &[u8]) -> Result<SourceFile, Problem> {
    if bytes.len() > MAX_BYTES {
        let size = bytes.len();
        let message = format!("{name} has {size} bytes; a file may have {MAX_BYTES}");
        return Err(Problem::without_place(name, message));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(SourceFile {
            name: name.into(),
            text: text.into(),
        }),
        Err(error) => {
            let at = error.valid_up_to();
            let file = SourceFile {
                name: name.into(),
                text: String::from_utf8_lossy(bytes).into(),
            };
            let span = Span::new(&file, at..at + '\u{fffd}'.len_utf8());
            let mut problem = span.problem(format!("{name} is not UTF-8 text"), "not UTF-8");
            problem.help = Some("save the file in the encoding UTF-8".to_owned());
            Err(problem)
        }
    }
}

/// Parses the single YAML document of a file.
///
/// # Errors
/// When it is no YAML, has several documents, or is too deep or too large.
pub fn parse(file: &SourceFile) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: MAX_NODES * 3,
            max_aliases: MAX_ALIASES,
            max_anchors: MAX_ALIASES,
            max_merge_keys: MAX_ALIASES,
            max_recorded_anchor_events: MAX_NODES,
            max_total_scalar_bytes: 4 * MAX_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED,
            max_replay_stack_depth: 16,
        },
        strict_booleans: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Option<Spanned<Raw>>>(&file.text, options) {
        Ok(Some(raw)) => Ok(node(file, raw)),
        Ok(None) => Ok(Node {
            span: Span::new(file, 0..0),
            value: Value::Null,
        }),
        Err(error) => Err(syntax_problem(file, &error)),
    }
}

fn syntax_problem(file: &SourceFile, error: &serde_saphyr::Error) -> Problem {
    use serde_saphyr::Error as E;
    let error = error.without_snippet();
    let range = error
        .location()
        .and_then(|l| bytes(file, &l))
        .unwrap_or(0..0);
    let end = file.text[range.start.min(file.text.len())..]
        .chars()
        .next()
        .map_or(range.end, |c| range.end.max(range.start + c.len_utf8()));
    let span = Span::new(file, range.start..end).first_line();
    let (message, label, help) = match inner(error) {
        E::DuplicateMappingKey { key, .. } => (
            key.as_ref().map_or("a key is given twice".to_owned(), |k| {
                format!("the key `{k}` is given twice")
            }),
            "the second time",
            Some("keep one of them"),
        ),
        E::MultipleDocuments { .. } => (
            "the file holds several documents".to_owned(),
            "the second begins here",
            Some("keep one document per file"),
        ),
        E::UnknownAnchor { .. } => (
            "an alias (`*name`) has no anchor (`&name`)".to_owned(),
            "here",
            None,
        ),
        E::AliasReplayLimitExceeded { .. }
        | E::AliasExpansionLimitExceeded { .. }
        | E::AliasReplayStackDepthExceeded { .. } => (
            format!("aliases (`*name`) write the file out to more than {MAX_REPLAYED} values"),
            "by this alias",
            None,
        ),
        E::Budget { breach, .. } => (breach_words(breach), "here", None),
        other => (
            plain_words(other),
            "here",
            file.text.lines().any(is_flow_with_template).then_some(
                "a value with `{{ … }}` within `{ … }` or `[ … ]` wants quotes: `{ request: \"GET /{{ id }}\" }`",
            ),
        ),
    };
    Problem {
        help: help.map(str::to_owned),
        ..span.problem(message, label)
    }
}

/// The underlying problem of an aliased value.
fn inner(error: &serde_saphyr::Error) -> &serde_saphyr::Error {
    match error {
        serde_saphyr::Error::AliasError { error, .. } => inner(error),
        other => other,
    }
}

fn breach_words(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => format!("values are nested deeper than {MAX_DEPTH}"),
        BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. } => {
            format!("there are more than {MAX_ALIASES} aliases (`*name`)")
        }
        BudgetBreach::MergeKeys { .. } => {
            format!("there are more than {MAX_ALIASES} merges (`<<`)")
        }
        _ => format!("the file holds more than {MAX_NODES} values"),
    }
}

fn is_flow_with_template(line: &str) -> bool {
    line.contains("{{") && line.trim_start().trim_start_matches("- ").starts_with('{')
}

/// The library's message without the place, which the excerpt shows.
fn plain_words(error: &serde_saphyr::Error) -> String {
    let formatter = serde_saphyr::UserMessageFormatter;
    let text = error.render_with_formatter(&formatter);
    let text = text.lines().next().unwrap_or_default();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    format!("this is not valid YAML: {}", &text[..end])
}

/// The byte range of a place; syntax errors only have line and column.
fn bytes(file: &SourceFile, location: &Location) -> Option<std::ops::Range<usize>> {
    if location.line() == 0 {
        return None;
    }
    let span = location.span();
    let start = match span.byte_offset() {
        Some(offset) => usize::try_from(offset).ok()?,
        None => {
            let line = usize::try_from(location.line()).ok()?;
            source::offset(&file.text, line, usize::try_from(location.column()).ok()?)
        }
    };
    let length = usize::try_from(span.byte_len().unwrap_or(0)).ok()?;
    (start <= file.text.len()).then_some(start..start + length)
}

/// The tree as parsed by serde.
enum Raw {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

/// Recursion is bounded by [`MAX_DEPTH`].
fn node(file: &SourceFile, raw: Spanned<Raw>) -> Node {
    let place = |location: &Location| Span::new(file, bytes(file, location).unwrap_or(0..0));
    let span = place(&raw.referenced);
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Bool(b) => Value::Bool(b),
        Raw::Int(n) => Value::Int(n),
        Raw::Float(n) => {
            // An alias has the position of its use; its digits are at its anchor.
            Value::Float(Decimal::of_file(n, place(&raw.defined).text()))
        }
        Raw::Text(text) => Value::Text(text),
        Raw::List(list) => Value::List(list.into_iter().map(|item| node(file, item)).collect()),
        Raw::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let key = Key {
                        span: place(&key.referenced),
                        text: key.value,
                    };
                    (key, node(file, value))
                })
                .collect(),
        ),
    };
    Node { span, value }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(i64::try_from(value).map_or(Raw::Float(value as f64), Raw::Int))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Float(value as f64))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Float(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = access.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

#[cfg(test)]
mod tests;
