//! Values as XML, by a schema's `xml` (OpenAPI 3, XML Object).

use serde_json::{Map, Value};

use super::refs::Spec;
use crate::text::Text;

/// Deepest element.
const DEPTH: usize = 16;

/// Replaces a value, by the name of its element.
type Hide<'h> = &'h mut dyn FnMut(&str, &mut Text);

/// The name of a document's element: that of the schema, or else the last part of its reference.
pub(super) fn root_name(schema: &Value) -> String {
    let said = schema.pointer("/xml/name").and_then(Value::as_str);
    let referred = schema.get("$ref").and_then(Value::as_str);
    let referred = referred.and_then(|to| to.rsplit('/').next());
    sound(said.or(referred).unwrap_or("root"))
}

/// A document with a value.
pub(super) fn document<'v>(
    spec: &Spec<'v>,
    root: &str,
    value: &Value,
    schema: &'v Value,
    hide: Hide<'_>,
) -> Text {
    let mut writer = Writer {
        spec,
        hide,
        out: Text::literal("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"),
    };
    let schema = spec.of(schema);
    let named = item_name(root, schema);
    match value {
        // A document has one element.
        Value::Array(items) => {
            let one = schema
                .get("items")
                .map_or(&Value::Null, |items| spec.of(items));
            let name = item_name(&named, one);
            writer.push(&format!("<{named}>"));
            for item in items {
                writer.element(&name, item, one, 1);
            }
            writer.push(&format!("</{named}>"));
        }
        value => writer.element(&named, value, schema, 0),
    }
    writer.out.joined()
}

fn item_name(otherwise: &str, schema: &Value) -> String {
    let said = schema.pointer("/xml/name").and_then(Value::as_str);
    said.map_or_else(|| otherwise.to_owned(), sound)
}

/// A document in progress.
struct Writer<'w, 'v> {
    spec: &'w Spec<'v>,
    hide: Hide<'w>,
    out: Text,
}

impl<'v> Writer<'_, 'v> {
    fn push(&mut self, text: &str) {
        self.out.push(Text::literal(text));
    }

    fn element(&mut self, name: &str, value: &Value, schema: &'v Value, depth: usize) {
        let xml = |key: &str| schema.get("xml")?.get(key)?.as_str();
        let prefix = xml("prefix").map(sound);
        let name = match &prefix {
            Some(prefix) => format!("{prefix}:{name}"),
            None => name.to_owned(),
        };
        self.push(&format!("<{name}"));
        if let Some(space) = xml("namespace") {
            let of = prefix.map_or_else(String::new, |prefix| format!(":{prefix}"));
            self.push(&format!(" xmlns{of}=\"{}\"", escaped(space)));
        }
        match value {
            Value::Object(map) if depth < DEPTH => self.members(map, schema, depth),
            Value::Object(_) | Value::Array(_) => self.push(">"),
            plain => {
                self.push(">");
                self.leaf(&name, plain);
            }
        }
        self.push(&format!("</{name}>"));
    }

    /// The attributes, the end of the tag, and the elements in it.
    fn members(&mut self, map: &Map<String, Value>, schema: &'v Value, depth: usize) {
        let spec = self.spec;
        let property = |key: &str| {
            let found = schema.get("properties").and_then(|all| all.get(key));
            found.map_or(&Value::Null, |property| spec.of(property))
        };
        let is = |key: &str, said: &str| {
            property(key).pointer(said).and_then(Value::as_bool) == Some(true)
        };
        let (attributes, elements): (Vec<_>, Vec<_>) =
            map.iter().partition(|(key, _)| is(key, "/xml/attribute"));
        for (key, inner) in attributes {
            self.push(&format!(" {}=\"", item_name(&sound(key), property(key))));
            self.leaf(key, inner);
            self.push("\"");
        }
        self.push(">");
        for (key, inner) in elements {
            let schema = property(key);
            let name = item_name(&sound(key), schema);
            let Value::Array(items) = inner else {
                self.element(&name, inner, schema, depth + 1);
                continue;
            };
            // A list has an element for each entry, within one of its own if the schema wraps it.
            let one = schema
                .get("items")
                .map_or(&Value::Null, |items| spec.of(items));
            let is_wrapped = is(key, "/xml/wrapped");
            let item = match is_wrapped {
                true => item_name(&sound(key), one),
                false => item_name(&name, one),
            };
            if is_wrapped {
                self.push(&format!("<{name}>"));
            }
            for inner in items {
                self.element(&item, inner, one, depth + 2);
            }
            if is_wrapped {
                self.push(&format!("</{name}>"));
            }
        }
    }

    fn leaf(&mut self, name: &str, value: &Value) {
        let text = match value {
            Value::Object(_) | Value::Array(_) => String::new(),
            plain => self.spec.text_of(plain),
        };
        let mut value = Text::literal(&text);
        (self.hide)(name, &mut value);
        let escaped = value.as_literal().map(|text| Text::literal(&escaped(text)));
        self.out.push(escaped.unwrap_or(value));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A valid XML name.
fn sound(name: &str) -> String {
    let legal = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name: String = name.chars().filter(|c| legal(*c)).collect();
    match name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        true => name,
        false => format!("_{name}"),
    }
}
