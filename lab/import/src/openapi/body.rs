//! The body of an operation: JSON, a form, a multipart form, XML, or any other text.

use serde_json::{Map, Value};

use super::call::{Maker, is_sent, one_line, text};
use super::operation::Operation;
use super::sample::kind as type_of;
use super::{style, xml};
use crate::draft::{Body, Json, Request};
use crate::multipart::{self, BOUNDARY, Part};
use crate::text::Text;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// A field of a form.
struct Field<'v> {
    name: String,
    value: Value,
    /// Its parameter, or its property's schema.
    described: &'v Value,
    /// The content type of the description.
    kind: Option<String>,
    is_file: bool,
}

impl<'v> Maker<'_, 'v> {
    pub(super) fn body(&mut self, operation: &Operation<'v>, request: &mut Request) {
        if self.spec.is_old && self.old_form(operation, request) {
            return;
        }
        let Some((kind, described)) = self.described_body(operation) else {
            return;
        };
        let value = self.sampler.of(described);
        let schema = described.get("schema").unwrap_or(&Value::Null);
        match (kind.as_str(), &value) {
            (FORM | MULTIPART, Value::Object(map)) => {
                let fields = self.fields(map, schema, described);
                self.form(&kind, fields, request);
            }
            (kind, value) if is_json(kind) && (value.is_object() || value.is_array()) => {
                self.json(kind, value, operation, request);
            }
            (kind, Value::Object(_) | Value::Array(_)) if is_xml(kind) => {
                let spec = self.spec;
                let mut hide = |name: &str, value: &mut Text| {
                    self.hide(name, value);
                    value.with_filter("xml");
                };
                let root = xml::root_name(schema);
                let text = xml::document(spec, &root, &value, schema, &mut hide);
                self.text(kind, text, request);
            }
            (kind, Value::String(text)) if !is_json(kind) => {
                self.text(kind, Text::literal(text), request);
            }
            (kind, value) if is_json(kind) && !value.is_null() => {
                self.text(kind, Text::literal(&value.to_string()), request);
            }
            (kind, Value::Null) => self.said.push(format!(
                "{}: its body ({}) is left out: no example of it can be made up",
                operation.title(),
                one_line(kind)
            )),
            (kind, value) => self.text(kind, Text::literal(&value.to_string()), request),
        }
    }

    fn text(&mut self, kind: &str, text: Text, request: &mut Request) {
        request
            .headers
            .push(("Content-Type".to_owned(), Text::literal(&one_line(kind))));
        request.body = Body::Text(text);
    }

    fn json(
        &mut self,
        kind: &str,
        value: &Value,
        operation: &Operation<'v>,
        request: &mut Request,
    ) {
        let Some(mut json) = Json::parse(&value.to_string()) else {
            self.said.push(format!(
                "{}: its body ({kind}) is left out: its example is nested too deep",
                operation.title()
            ));
            return;
        };
        json.leaves("", &mut |key, leaf| {
            if let Json::Text(text) = leaf {
                self.hide(key, text);
            }
        });
        if kind != JSON {
            request
                .headers
                .push(("Content-Type".to_owned(), Text::literal(&one_line(kind))));
        }
        request.body = Body::Json(json);
    }

    /// The kind of the body, and its description: JSON before forms before others.
    fn described_body(&self, operation: &Operation<'v>) -> Option<(String, &'v Value)> {
        if self.spec.is_old {
            return self.old_body(operation);
        }
        let body = self.spec.of(operation.value.get("requestBody")?);
        let kinds = body.get("content")?.as_object()?;
        let (kind, described) = kinds.iter().min_by_key(|(kind, _)| rank(&essence(kind)))?;
        Some((essence(kind), self.spec.of(described)))
    }

    fn old_body(&self, operation: &Operation<'v>) -> Option<(String, &'v Value)> {
        let is_body = |parameter: &&&Value| text(parameter, "in") == "body";
        let found = operation.parameters.iter().find(is_body)?;
        let kinds = self.consumed(operation);
        let kind = kinds.into_iter().min_by_key(|kind| rank(kind));
        Some((kind.unwrap_or_else(|| JSON.to_owned()), *found))
    }

    /// The content types that an operation of Swagger 2 accepts.
    fn consumed(&self, operation: &Operation<'v>) -> Vec<String> {
        let own = operation.value.get("consumes");
        let kinds = own.or_else(|| self.spec.root.get("consumes"));
        let kinds = kinds.and_then(Value::as_array).into_iter().flatten();
        kinds.filter_map(Value::as_str).map(essence).collect()
    }

    /// The form from parameters of Swagger 2; false if there are none.
    fn old_form(&mut self, operation: &Operation<'v>, request: &mut Request) -> bool {
        let is_field = |parameter: &&'v Value| text(parameter, "in") == "formData";
        let all: Vec<&'v Value> = operation
            .parameters
            .iter()
            .copied()
            .filter(is_field)
            .collect();
        if all.is_empty() {
            return false;
        }
        // Without a required field, all are sent: a form needs fields.
        let has_sent = all.iter().any(|parameter| is_sent(parameter));
        let sent = all
            .into_iter()
            .filter(|parameter| !has_sent || is_sent(parameter));
        let mut fields = Vec::new();
        for parameter in sent {
            fields.push(Field {
                name: text(parameter, "name"),
                value: self.sampler.of(parameter),
                described: parameter,
                kind: None,
                is_file: text(parameter, "type") == "file",
            });
        }
        let kinds = self.consumed(operation);
        let has_file = fields.iter().any(|field| field.is_file);
        let is_parts = has_file
            || (kinds.iter().any(|kind| kind == MULTIPART)
                && !kinds.iter().any(|kind| kind == FORM));
        self.form(if is_parts { MULTIPART } else { FORM }, fields, request);
        true
    }

    /// The fields for the properties of an object.
    fn fields(
        &self,
        map: &Map<String, Value>,
        schema: &'v Value,
        described: &'v Value,
    ) -> Vec<Field<'v>> {
        let schema = self.spec.of(schema);
        let field = |(name, value): (&String, &Value)| {
            let property = self.sampler.property(schema, name, 0);
            let property = property.map_or(&Value::Null, |property| self.spec.of(property));
            let one = match type_of(property) {
                "array" => property
                    .get("items")
                    .map_or(property, |items| self.spec.of(items)),
                _ => property,
            };
            let encoding = described.get("encoding").and_then(|all| all.get(name));
            let kind = encoding.and_then(|encoding| encoding.get("contentType")?.as_str());
            let is_binary = ["binary", "base64", "byte"].contains(&text(one, "format").as_str())
                || one.get("contentMediaType").is_some();
            Field {
                name: name.clone(),
                value: value.clone(),
                described: property,
                // Any of a list of kinds is valid.
                kind: kind.map(|kind| one_line(kind.split(',').next().unwrap_or_default().trim())),
                is_file: is_binary || text(one, "type") == "file",
            }
        };
        map.iter().map(field).collect()
    }

    fn form(&mut self, kind: &str, fields: Vec<Field<'v>>, request: &mut Request) {
        if kind == MULTIPART {
            return self.parts(fields, request);
        }
        let mut pairs: Vec<(String, Text)> = Vec::new();
        for field in &fields {
            for value in self.values(field) {
                pairs.push((field.name.clone(), value));
            }
        }
        let mut names = std::collections::HashSet::new();
        if pairs.iter().all(|(name, _)| names.insert(name)) {
            request.body = Body::Form(pairs);
            return;
        }
        // A form of a workload has unique names.
        let mut text = Text::default();
        for (nth, (name, value)) in pairs.into_iter().enumerate() {
            let separator = if nth > 0 { "&" } else { "" };
            text.push(Text::literal(&format!(
                "{separator}{}=",
                style::escaped(&name)
            )));
            text.push(value.encoded());
        }
        self.text(FORM, text.joined(), request);
    }

    /// The values of a field: those of a list whose entries are sent separately, or else one.
    fn values(&mut self, field: &Field<'v>) -> Vec<Text> {
        let texts: Vec<String> = match &field.value {
            Value::Array(items) => {
                let items = items.iter().map(|item| self.spec.text_of(item));
                let format = text(field.described, "collectionFormat");
                let is_old = self.spec.is_old && format != "multi";
                let separator = match format.as_str() {
                    "ssv" => " ",
                    "tsv" => "\t",
                    "pipes" => "|",
                    _ => ",",
                };
                match is_old {
                    true => vec![items.collect::<Vec<_>>().join(separator)],
                    false => items.collect(),
                }
            }
            one => vec![self.spec.text_of(one)],
        };
        let hidden = |text: String| {
            let mut value = Text::literal(&text);
            self.hide(&field.name, &mut value);
            value
        };
        texts.into_iter().map(hidden).collect()
    }

    fn parts(&mut self, fields: Vec<Field<'v>>, request: &mut Request) {
        let mut parts = Vec::new();
        for field in fields {
            let is_json = field.value.is_object();
            let kind = match (&field.kind, field.is_file, is_json) {
                (Some(kind), _, _) => kind.clone(),
                (None, true, _) => "application/octet-stream".to_owned(),
                (None, false, true) => JSON.to_owned(),
                (None, false, false) => String::new(),
            };
            for value in self.values(&field) {
                parts.push(Part {
                    name: field.name.clone(),
                    file: field.is_file.then(|| field.name.clone()),
                    kind: kind.clone(),
                    value,
                });
            }
        }
        let boundary = multipart::boundary(BOUNDARY, &parts);
        let body = multipart::body(parts, &boundary);
        self.text(&format!("{MULTIPART}; boundary={boundary}"), body, request);
    }
}

/// The media type without its parameters, in lower case.
fn essence(kind: &str) -> String {
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn is_json(kind: &str) -> bool {
    kind.contains("json")
}

fn is_xml(kind: &str) -> bool {
    kind.ends_with("/xml") || kind.ends_with("+xml")
}

fn rank(kind: &str) -> u8 {
    match kind {
        JSON => 0,
        kind if is_json(kind) => 1,
        FORM => 2,
        MULTIPART => 3,
        kind if is_xml(kind) => 4,
        _ => 5,
    }
}
