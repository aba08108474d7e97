//! Parses a description as a tree: JSON, or YAML 1.2 with its core schema, in which `no` and `y` are texts.
//!
//! YAML infers the types of scalars; a schema may differ. So the text of each scalar is kept if JSON would write it
//! differently: `01234` of a `type: string` is a postcode.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Location, Spanned};

use crate::error::ImportError;

/// Largest description.
pub const MAX_BYTES: usize = 16 << 20;

/// The texts of scalars by the addresses of their values, which are stable in an unchanged tree.
#[derive(Debug, Default)]
pub(super) struct Written(HashMap<*const Value, Box<str>>);

impl Written {
    /// The scalar as in the file, if JSON differs.
    pub(super) fn get(&self, value: &Value) -> Option<&str> {
        self.0.get(&std::ptr::from_ref(value)).map(|text| &**text)
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// A parsed text, before its places are recorded.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) root: Value,
    source: Option<Spanned<Raw>>,
}

impl Parsed {
    /// The texts of scalars of the tree, which must not be moved out of its box afterwards.
    pub(super) fn written(&mut self, text: &str) -> Written {
        let mut written = Written::default();
        if let Some(source) = self.source.take() {
            note(&source, &self.root, text, &mut written.0);
        }
        written
    }
}

/// JSON, or else YAML.
pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    let size = text.len();
    if size > MAX_BYTES {
        return Err(ImportError::TooLarge {
            size,
            most: MAX_BYTES,
        });
    }
    if text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
    {
        let json = serde_json::from_str(text.trim_start_matches('\u{feff}'));
        // A YAML file may start with a brace, too.
        return match json {
            Ok(root) => Ok(Parsed { root, source: None }),
            Err(error) => yaml(text).map_err(|_| error.into()),
        };
    }
    yaml(text)
}

fn yaml(text: &str) -> Result<Parsed, ImportError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            flow_nesting_limit: 64,
            max_nodes: 1_000_000,
            max_events: 3_000_000,
            max_aliases: 10_000,
            max_anchors: 10_000,
            max_merge_keys: 10_000,
            max_recorded_anchor_events: 1_000_000,
            max_total_scalar_bytes: 4 * MAX_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 1_000_000,
            max_replay_stack_depth: 16,
        },
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    };
    let source: Spanned<Raw> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| ImportError::Yaml(words(&error)))?;
    Ok(Parsed {
        root: value(&source, text),
        source: Some(source),
    })
}

/// The library's message, without advice about its options.
fn words(error: &serde_saphyr::Error) -> String {
    let error = error.without_snippet();
    let place =
        |location: &Location| format!("line {} column {}", location.line(), location.column());
    match error {
        serde_saphyr::Error::DuplicateMappingKey { key, location } => {
            let key = key
                .as_deref()
                .map_or_else(|| "a key".to_owned(), |key| format!("the key `{key}`"));
            format!(
                "{key} is given twice, the second time at {}: keep one of them",
                place(location)
            )
        }
        other => other
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

/// The tree as parsed by serde.
#[derive(Debug)]
enum Raw {
    Null,
    Bool(bool),
    Number(Number),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(String, Spanned<Raw>)>),
}

/// The text of a scalar in the file.
fn text_of<'t>(raw: &Spanned<Raw>, text: &'t str) -> Option<&'t str> {
    // An alias has the position of its use; its digits are at its anchor.
    let span = raw.defined.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    text.get(start..start.checked_add(length)?)
}

fn value(raw: &Spanned<Raw>, text: &str) -> Value {
    match &raw.value {
        Raw::Null => Value::Null,
        Raw::Bool(value) => Value::Bool(*value),
        Raw::Number(number) => Value::Number(number.clone()),
        Raw::Float(float) => {
            // `007` is an integer in YAML 1.2.
            let whole = text_of(raw, text).and_then(|text| text.parse::<i64>().ok());
            let number = whole.map(Number::from).or_else(|| Number::from_f64(*float));
            number.map_or(Value::Null, Value::Number)
        }
        Raw::Text(text) => Value::String(text.clone()),
        Raw::List(items) => items.iter().map(|item| value(item, text)).collect(),
        Raw::Map(entries) => {
            let entries = entries.iter();
            let map: Map<String, Value> = entries
                .map(|(key, item)| (key.clone(), value(item, text)))
                .collect();
            Value::Object(map)
        }
    }
}

/// Records the scalars of a tree that JSON would write differently from the file.
fn note(
    raw: &Spanned<Raw>,
    value: &Value,
    text: &str,
    written: &mut HashMap<*const Value, Box<str>>,
) {
    match (&raw.value, value) {
        (Raw::List(items), Value::Array(values)) => {
            for (item, value) in items.iter().zip(values) {
                note(item, value, text, written);
            }
        }
        (Raw::Map(entries), Value::Object(map)) => {
            for (key, item) in entries {
                if let Some(value) = map.get(key) {
                    note(item, value, text, written);
                }
            }
        }
        (Raw::Bool(_) | Raw::Number(_) | Raw::Float(_), value) => {
            let scalar = text_of(raw, text).filter(|text| !text.is_empty());
            let plain = value.to_string();
            if let Some(scalar) = scalar.filter(|scalar| **scalar != plain) {
                written.insert(std::ptr::from_ref(value), scalar.into());
            }
        }
        _ => {}
    }
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
        Ok(Raw::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(value.into()))
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
