//! A JSON document: the numbers at named paths, or all numbers by the names on the way to them.

use serde_json::Value;

use super::found::{Found, Unreadable};
use crate::how::How;

pub(super) fn read(how: &How, text: &str, found: &mut Found<'_>) -> Result<(), Unreadable> {
    // Its depth is bounded by the reader.
    let document: Value =
        serde_json::from_str(text).map_err(|error| Unreadable::form("json", error))?;
    if how.paths.is_empty() {
        flatten(&document, &mut String::new(), found);
        return Ok(());
    }
    for (name, path) in &how.paths {
        // Several numbers, such as those of all caches, are added up.
        for value in path
            .query(&document)
            .iter()
            .filter_map(|value| value.as_f64())
        {
            found.add(name, &[], value);
        }
    }
    Ok(())
}

fn flatten(value: &Value, name: &mut String, found: &mut Found<'_>) {
    let length = name.len();
    let mut each = |key: &str, value: &Value| {
        if length > 0 {
            name.push('.');
        }
        name.push_str(key);
        flatten(value, name, found);
        name.truncate(length);
    };
    match value {
        Value::Object(entries) => entries.iter().for_each(|(key, value)| each(key, value)),
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                each(&at.to_string(), value);
            }
        }
        Value::Number(number) => {
            if let Some(number) = number.as_f64() {
                found.add(name, &[], number);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
