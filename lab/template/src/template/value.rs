//! Values of a user in minijinja, and their conversion to texts and claims.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind};
use minijinja::{Error, ErrorKind};

use crate::level::{Level, Parameters};
use lab_filters::text_list::JsonKind;

/// The result of a capture by a path: a sequence that prints as its first entry, as in the plain pieces.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) texts: Vec<String>,
    /// Whether the path finds at most one value.
    pub(super) is_single: bool,
    /// The kind of the first entry.
    pub(super) kind: JsonKind,
}

/// A JSON number with its original digits.
#[derive(Debug)]
pub(super) struct Digits(pub(super) String);

impl Object for Digits {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Object for Captured {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.texts.get(key.as_usize()?).cloned().map(Value::from)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.texts.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.texts.first().map_or("", String::as_str))
    }
}

/// Returns the text of a captured value; any other value unchanged.
pub(super) fn text_of_one(value: &Value) -> Value {
    match value.downcast_object_ref::<Captured>() {
        Some(captured) if captured.is_single => captured.texts.first().cloned().into(),
        _ => value.clone(),
    }
}

/// Parses a text as JSON if it is a number or a boolean; otherwise returns the text.
pub(super) fn scalar(text: &str) -> Value {
    let may_be =
        text.len() <= 40 && text.starts_with(|c: char| "-tf".contains(c) || c.is_ascii_digit());
    let read = may_be.then(|| serde_json::from_str(text).ok()).flatten();
    match read {
        Some(serde_json::Value::Bool(switch)) => Value::from(switch),
        Some(serde_json::Value::Number(number)) => match (text.parse::<i128>(), number.as_f64()) {
            (Ok(whole), _) => Value::from(whole),
            (Err(_), Some(float)) => Value::from(float),
            (Err(_), None) => Value::from(text),
        },
        _ => Value::from(text),
    }
}

/// Returns a value's text. Invalid UTF-8 is an error, as replacing characters would change it.
pub(super) fn text(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::Bytes => Err(bytes()),
        _ => Ok(value.to_string()),
    }
}

/// Returns the error for bytes in place of a text.
pub(super) fn bytes() -> Error {
    let cause = "these are bytes, and no text: encode them by `base64` or `hex`";
    Error::new(ErrorKind::InvalidOperation, cause)
}

/// Converts a value for the claims of a token: captures become a text, or a list of them, and a number stays a number.
pub(super) fn claim(value: &Value) -> Result<Value, Error> {
    if let Some(Digits(text)) = value.downcast_object_ref::<Digits>() {
        return Ok(scalar(text));
    }
    if let Some(captured) = value.downcast_object_ref::<Captured>() {
        return Ok(match captured.is_single {
            true => captured.texts.first().cloned().into(),
            false => captured.texts.iter().cloned().collect(),
        });
    }
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::Bytes => Err(bytes()),
        ValueKind::Map => {
            let one = |key: Value| Ok((key.to_string(), claim(&value.get_item(&key)?)?));
            let fields: Result<BTreeMap<_, _>, Error> = value.try_iter()?.map(one).collect();
            fields.map(Value::from)
        }
        ValueKind::Seq => {
            let values: Result<Vec<Value>, Error> =
                value.try_iter()?.map(|one| claim(&one)).collect();
            values.map(Value::from)
        }
        _ => Ok(value.clone()),
    }
}

/// Returns a cell's levels as variables.
pub(super) fn values(cell: &Parameters) -> Value {
    Value::from(constants(cell))
}

pub(super) fn constants(cell: &Parameters) -> BTreeMap<String, Value> {
    let value = |level: &Level| match level {
        Level::Int(n) => Value::from(*n),
        Level::Float(n) => Value::from(*n),
        Level::Text(text) => Value::from(text.as_str()),
        Level::Bool(b) => Value::from(*b),
    };
    cell.iter()
        .map(|(name, level)| (name.clone(), value(level)))
        .collect()
}
