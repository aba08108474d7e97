//! One call of an operation: what it is called with, and what of its answer is kept.

use std::cell::Cell;

use lab_workload::looks_secret;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::order::{Id, Made};
use super::refs::Spec;
use crate::draft::{Body, Json, Request};
use crate::names::{Names, word};
use crate::secret::Secrets;
use crate::text::Text;

/// Deepest example that is made up.
const DEPTH: usize = 6;
/// Largest example that is made up: schemas that refer to each other can tell of more than there is memory for.
const MADE_BYTES: usize = 64 << 10;
/// What a path or query can't hold as it is.
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
    .add(b'}');

/// Makes requests, each with what those before it left behind.
pub(super) struct Maker<'m, 'v> {
    pub(super) spec: &'m Spec<'v>,
    pub(super) secrets: &'m mut Secrets,
    pub(super) names: &'m mut Names,
    pub(super) parameters: &'m mut Vec<(String, String)>,
    pub(super) made: &'m mut Made,
    pub(super) said: &'m mut Vec<String>,
    /// How much larger the example that is being made up may become.
    pub(super) room: Cell<usize>,
    /// Whether something had no room in it.
    pub(super) is_cut: Cell<bool>,
}

impl<'v> Maker<'_, 'v> {
    /// The request, with what is set before it; nothing where it would touch what is others'.
    pub(super) fn request(
        &mut self,
        operation: &Operation<'v>,
        prefix: &str,
    ) -> Option<(Vec<(String, String)>, Request)> {
        let target = self.path(operation, prefix)?;
        let mut request = Request {
            method: operation.method.clone(),
            target,
            ..Request::default()
        };
        self.query(operation, &mut request);
        self.headers(operation, &mut request);
        self.body(operation, &mut request);
        self.credentials(operation, &mut request);
        if self.is_cut.take() {
            self.said.push(format!(
                "{}: its example is cut at {} KiB",
                operation.title(),
                MADE_BYTES >> 10
            ));
        }
        let (status, schema) = operation.answer(self.spec);
        request.expect = status.filter(|status| *status >= 300);
        self.keep(operation, status, schema, &mut request);
        Some((Vec::new(), request))
    }

    fn path(&mut self, operation: &Operation<'v>, prefix: &str) -> Option<Text> {
        let mut target = Text::literal(prefix);
        let mut rest = operation.path.as_str();
        let mut before = String::new();
        let changes = !matches!(operation.method.as_str(), "GET" | "POST");
        let last = operation.path_names().len().saturating_sub(1);
        for (nth, name) in operation.path_names().iter().enumerate() {
            let (literal, after) = rest.split_once(&format!("{{{name}}}"))?;
            before.push_str(literal);
            target.push(Text::literal(literal));
            let collection = before.trim_end_matches('/').to_owned();
            let id = self.made.of(&collection).cloned();
            let id = id.filter(|id| id.is_own || !changes || nth < last);
            let code = match id {
                Some(id) => id.code,
                None if changes && nth == last => {
                    self.said.push(format!(
                        "{} left out: what is made has no id in its answer by which it could be changed",
                        operation.title()
                    ));
                    return None;
                }
                None => self.parameter(operation, name),
            };
            target.push(Text::code(&code));
            before.push_str(&format!("{{{name}}}"));
            rest = after;
        }
        target.push(Text::literal(rest));
        Some(target)
    }

    /// A parameter of the workload, with the description's example.
    fn parameter(&mut self, operation: &Operation<'v>, name: &str) -> String {
        let described = operation.parameter("path", name);
        let value = described.map_or(Value::Null, |parameter| self.value_of(parameter));
        let value = plain(&value);
        let value = if value.is_empty() {
            "1".to_owned()
        } else {
            value
        };
        let encoded = utf8_percent_encode(&value, ESCAPED).to_string();
        let known = self
            .parameters
            .iter()
            .find(|(known, held)| *known == word(name) && *held == encoded);
        if let Some((known, _)) = known {
            return known.clone();
        }
        let given = self.names.variable(name);
        self.said.push(format!(
            "{} of {} is the parameter `{given}` ({encoded}): set it to one that there is",
            name, operation.path
        ));
        self.parameters.push((given.clone(), encoded));
        given
    }

    /// An example of a parameter, as far as the description says or implies one.
    fn value_of(&self, parameter: &'v Value) -> Value {
        let own = parameter.get("example").or_else(|| {
            let examples = parameter.get("examples").and_then(Value::as_object)?;
            self.spec.of(examples.values().next()?).get("value")
        });
        match (own, parameter.get("schema")) {
            (Some(example), _) => example.clone(),
            (None, Some(schema)) => self.made_up(schema),
            // Swagger 2 has the schema's keys in the parameter itself.
            (None, None) => self.made_up(parameter),
        }
    }

    fn query(&mut self, operation: &Operation<'v>, request: &mut Request) {
        let mut separator = '?';
        for parameter in &operation.parameters {
            let (place, name) = (text(parameter, "in"), text(parameter, "name"));
            let has_example = parameter.get("example").is_some();
            if place != "query" || !(is_required(parameter) || has_example) {
                continue;
            }
            let key = utf8_percent_encode(&name, ESCAPED).to_string();
            request
                .target
                .push(Text::literal(&format!("{separator}{key}=")));
            separator = '&';
            if looks_secret(&name) {
                let code = self.asked(&name);
                request.target.push(Text::code(&code));
                continue;
            }
            let value = plain(&self.value_of(parameter));
            let value = utf8_percent_encode(&value, ESCAPED).to_string();
            request.target.push(Text::literal(&value));
        }
    }

    fn headers(&mut self, operation: &Operation<'v>, request: &mut Request) {
        const OWN: [&str; 9] = [
            "accept",
            "content-type",
            "authorization",
            "content-length",
            "connection",
            "transfer-encoding",
            "cookie",
            "expect",
            "upgrade",
        ];
        for parameter in &operation.parameters {
            let (place, name) = (text(parameter, "in"), text(parameter, "name"));
            let is_token = !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
            let is_own = OWN.contains(&name.to_ascii_lowercase().as_str());
            if place != "header" || !is_required(parameter) || is_own || !is_token {
                continue;
            }
            let value = match looks_secret(&name) {
                true => Text::code(&self.asked(&name)),
                false => Text::literal(&one_line(&plain(&self.value_of(parameter)))),
            };
            request.headers.push((name, value));
        }
    }

    /// A value of the environment that stands for a secret.
    fn asked(&mut self, name: &str) -> String {
        let name = word(name).to_ascii_uppercase();
        self.secrets.ask(&name);
        format!("secret('{name}')")
    }

    fn body(&mut self, operation: &Operation<'v>, request: &mut Request) {
        let Some((kind, described)) = self.described_body(operation) else {
            return;
        };
        let value = self.example_of(described);
        match (kind.as_str(), &value) {
            ("application/x-www-form-urlencoded", Value::Object(map)) => {
                let fields = map.iter();
                let fields =
                    fields.map(|(name, value)| (name.clone(), Text::literal(&plain(value))));
                let mut fields: Vec<_> = fields.collect();
                for (name, value) in &mut fields {
                    self.hide(name, value);
                }
                request.body = Body::Form(fields);
            }
            (kind, value) if kind.contains("json") && (value.is_object() || value.is_array()) => {
                let mut json = Json::of(value);
                json.leaves("", &mut |key, leaf| {
                    if let Json::Text(text) = leaf {
                        self.hide(key, text);
                    }
                });
                if kind != "application/json" {
                    request
                        .headers
                        .push(("Content-Type".to_owned(), Text::literal(kind)));
                }
                request.body = Body::Json(json);
            }
            (kind, Value::String(text)) => {
                request
                    .headers
                    .push(("Content-Type".to_owned(), Text::literal(&one_line(kind))));
                request.body = Body::Text(Text::literal(text));
            }
            (kind, value) if kind.contains("json") => {
                request
                    .headers
                    .push(("Content-Type".to_owned(), Text::literal(&one_line(kind))));
                request.body = Body::Text(Text::literal(&value.to_string()));
            }
            (kind, _) => self.said.push(format!(
                "{}: its body ({kind}) is left out: no example of it can be made up",
                operation.title()
            )),
        }
    }

    fn hide(&mut self, name: &str, value: &mut Text) {
        if value.as_literal() == Some(UUID) {
            *value = Text::code("uuid()");
        } else if looks_secret(name) {
            let code = self.asked(name);
            *value = Text::code(&code);
        }
    }

    /// The kind of the body, and its description: JSON before forms before others.
    fn described_body(&self, operation: &Operation<'v>) -> Option<(String, &'v Value)> {
        if self.spec.is_old {
            return self.old_body(operation);
        }
        let body = self.spec.of(operation.value.get("requestBody")?);
        let kinds = body.get("content")?.as_object()?;
        let rank = |kind: &str| match kind {
            "application/json" => 0,
            kind if kind.contains("json") => 1,
            "application/x-www-form-urlencoded" => 2,
            _ => 3,
        };
        let (kind, described) = kinds.iter().min_by_key(|(kind, _)| rank(kind))?;
        let kind = kind.split(';').next().unwrap_or_default().trim();
        Some((kind.to_ascii_lowercase(), described))
    }

    fn old_body(&self, operation: &Operation<'v>) -> Option<(String, &'v Value)> {
        let is_body = |parameter: &&&Value| text(parameter, "in") == "body";
        let found = operation.parameters.iter().find(is_body)?;
        Some(("application/json".to_owned(), *found))
    }

    /// The example of a media type, or one by its schema.
    fn example_of(&self, described: &'v Value) -> Value {
        if let Some(example) = described.get("example") {
            return example.clone();
        }
        let examples = described.get("examples").and_then(Value::as_object);
        let first = examples.and_then(|examples| examples.values().next());
        if let Some(value) = first.and_then(|first| self.spec.of(first).get("value")) {
            return value.clone();
        }
        described
            .get("schema")
            .map_or(Value::Null, |schema| self.made_up(schema))
    }

    /// A value that a schema describes, as large as it may be.
    fn made_up(&self, schema: &'v Value) -> Value {
        self.room.set(MADE_BYTES);
        self.example("", schema, 0)
    }

    /// Whether there is room for so many bytes more, which are then taken.
    fn has_room(&self, bytes: usize) -> bool {
        let left = self.room.get().checked_sub(bytes);
        match left {
            Some(left) => self.room.set(left),
            None => self.is_cut.set(true),
        }
        left.is_some()
    }

    /// A value that a schema describes.
    fn example(&self, name: &str, schema: &'v Value, depth: usize) -> Value {
        let schema = self.spec.of(schema);
        let listed = |key: &str| {
            schema
                .get(key)
                .and_then(Value::as_array)
                .and_then(|all| all.first())
        };
        let given = [
            schema.get("example"),
            listed("examples"),
            schema.get("default"),
            schema.get("const"),
            listed("enum"),
        ];
        if let Some(given) = given.into_iter().flatten().next() {
            // One that is given for the whole is taken as it is.
            return match depth == 0 || self.has_room(bytes(given)) {
                true => given.clone(),
                false => Value::Null,
            };
        }
        if depth >= DEPTH || !self.has_room(name.len() + 1) {
            return Value::Null;
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.all_of(parts, schema, depth);
        }
        if let Some(first) = listed("oneOf").or_else(|| listed("anyOf")) {
            return self.example(name, first, depth + 1);
        }
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .find(|kind| *kind != "null")
                .unwrap_or_default(),
            _ if schema.get("properties").is_some() => "object",
            _ if schema.get("items").is_some() => "array",
            _ => "",
        };
        match kind {
            "object" => self.object(schema, depth),
            "array" => match schema.get("items") {
                Some(items) => json!([self.example(name, items, depth + 1)]),
                None => json!([]),
            },
            "integer" | "number" => number(schema),
            "boolean" => json!(true),
            "string" => string(name, schema),
            _ => Value::Null,
        }
    }

    fn all_of(&self, parts: &'v [Value], schema: &'v Value, depth: usize) -> Value {
        let mut all = Map::new();
        let own = schema.get("properties").map(|_| self.object(schema, depth));
        let parts = parts.iter().map(|part| self.example("", part, depth + 1));
        for part in parts.chain(own) {
            if let Value::Object(part) = part {
                all.extend(part);
            }
        }
        Value::Object(all)
    }

    /// Its required properties, and those with an example; all where none is required.
    fn object(&self, schema: &'v Value, depth: usize) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let mut object = Map::new();
        for (name, property) in properties.into_iter().flatten() {
            let described = self.spec.of(property);
            if described.get("readOnly").and_then(Value::as_bool) == Some(true) {
                continue;
            }
            let has_example = described.get("example").is_some();
            let is_needed =
                required.is_none_or(|all| all.iter().any(|one| one.as_str() == Some(name)));
            if !is_needed && !has_example {
                continue;
            }
            let value = self.example(name, property, depth + 1);
            if !value.is_null() {
                object.insert(name.clone(), value);
            }
        }
        Value::Object(object)
    }

    /// Who asks, by the first scheme that the operation allows.
    fn credentials(&mut self, operation: &Operation<'v>, request: &mut Request) {
        let needed = operation
            .value
            .get("security")
            .or_else(|| self.spec.root.get("security"));
        let first = needed.and_then(Value::as_array).and_then(|all| all.first());
        let schemes = match self.spec.is_old {
            true => self.spec.root.get("securityDefinitions"),
            false => self.spec.root.pointer("/components/securitySchemes"),
        };
        for name in first
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
        {
            let Some(scheme) = schemes.and_then(|schemes| schemes.get(name)) else {
                continue;
            };
            self.credential(self.spec.of(scheme), name, request);
        }
    }

    fn credential(&mut self, scheme: &'v Value, name: &str, request: &mut Request) {
        let http = text(scheme, "scheme").to_ascii_lowercase();
        match (text(scheme, "type").as_str(), http.as_str()) {
            ("basic", _) | ("http", "basic") => {
                self.secrets.ask("API_USER");
                self.secrets.ask("API_PASSWORD");
                let password = Text::code("secret('API_PASSWORD')");
                request.basic_auth = Some((Text::code("env('API_USER')"), password));
            }
            ("apiKey", _) => {
                let (place, key) = (text(scheme, "in"), text(scheme, "name"));
                let code = self.asked(&format!("API_{name}"));
                let is_token = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
                if place == "header" && !key.is_empty() && key.bytes().all(is_token) {
                    request.headers.push((key, Text::code(&code)));
                } else if place == "query" {
                    let key = utf8_percent_encode(&key, ESCAPED).to_string();
                    let has_query = request.target.template().contains('?');
                    let separator = if has_query { '&' } else { '?' };
                    request
                        .target
                        .push(Text::literal(&format!("{separator}{key}=")));
                    request.target.push(Text::code(&code));
                }
            }
            ("http", "bearer") | ("oauth2" | "openIdConnect", _) => {
                let code = self.asked("API_TOKEN");
                request.headers.push((
                    "Authorization".to_owned(),
                    Text::with_code("Bearer ", &code),
                ));
            }
            _ => {}
        }
    }

    /// Keeps the id of what was made or listed, for the operations on one of its items.
    fn keep(
        &mut self,
        operation: &Operation<'v>,
        status: Option<u16>,
        schema: Option<&'v Value>,
        request: &mut Request,
    ) {
        let is_made = operation.method == "POST";
        if !(is_made || operation.method == "GET") || operation.path.ends_with('}') {
            return;
        }
        let last = operation
            .path
            .rsplit('/')
            .find(|part| !part.is_empty() && !part.starts_with('{'));
        let wish = format!("{}_id", last.unwrap_or("item"));
        let found = schema.and_then(|schema| self.id_path(schema, 0));
        let Some((path, is_list)) = found else {
            if is_made && status == Some(201) {
                self.said.push(format!(
                    "{}: its answer says no id by the description; capture it yourself (`header.Location`, \
                     say) for what works on one item",
                    operation.title()
                ));
            }
            return;
        };
        let code = match is_list {
            // One of those that there are: it is only read.
            true => {
                let list = self.names.variable(&format!("{wish}s"));
                request.captures.push((list.clone(), path));
                format!("pick({list})")
            }
            false => {
                let name = self.names.variable(&wish);
                request.captures.push((name.clone(), path));
                name
            }
        };
        let is_own = is_made && !is_list;
        self.made
            .add(operation.path.trim_end_matches('/'), Id { code, is_own });
    }

    /// Where in an answer ids are, and whether several.
    fn id_path(&self, schema: &'v Value, depth: usize) -> Option<(String, bool)> {
        let schema = self.spec.of(schema);
        if depth > 3 {
            return None;
        }
        if let Some(items) = schema.get("items") {
            let (path, _) = self.id_path(items, depth + 1)?;
            return Some((format!("$[*]{}", &path[1..]), true));
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return parts.iter().find_map(|part| self.id_path(part, depth + 1));
        }
        let properties = schema.get("properties")?.as_object()?;
        for name in ["id", "uuid", "_id", "uid"] {
            if properties.contains_key(name) {
                return Some((format!("$.{name}"), false));
            }
        }
        let is_plain = |name: &str| {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(word)
        };
        properties
            .iter()
            .filter(|(name, _)| is_plain(name))
            .find_map(|(name, property)| {
                let property = self.spec.of(property);
                let is_whole = property.get("items").is_some() || name == "data";
                let (path, is_list) = self.id_path(property, depth + 1).filter(|_| is_whole)?;
                Some((format!("$.{name}{}", &path[1..]), is_list))
            })
    }
}

/// Stands for a random UUID until it is written.
const UUID: &str = "00000000-0000-4000-8000-000000000000";

fn text(value: &Value, key: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn is_required(parameter: &Value) -> bool {
    parameter.get("required").and_then(Value::as_bool) == Some(true)
}

/// A value as a path or a form has it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// About how many bytes a value takes.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(all) => all.iter().fold(1, |sum, one| sum + bytes(one)),
        Value::Object(map) => map
            .iter()
            .fold(1, |sum, (name, value)| sum + name.len() + bytes(value)),
        _ => 1,
    }
}

fn number(schema: &Value) -> Value {
    let least = schema
        .get("minimum")
        .or_else(|| schema.get("exclusiveMinimum"));
    match least {
        Some(least) if least.is_i64() && schema.get("exclusiveMinimum").is_some() => {
            json!(least.as_i64().unwrap_or(0).saturating_add(1))
        }
        Some(least) if least.is_number() => least.clone(),
        _ => json!(1),
    }
}

fn string(name: &str, schema: &Value) -> Value {
    let format = text(schema, "format");
    let made = match format.as_str() {
        "date" => "2026-01-05",
        "date-time" => "2026-01-05T09:00:00Z",
        "time" => "09:00:00",
        "email" => "someone@example.com",
        "uuid" => UUID,
        "uri" | "url" => "https://example.com/",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "byte" => "cGxpbXNvbGw=",
        _ => "",
    };
    if !made.is_empty() {
        return json!(made);
    }
    let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
    let least = usize::try_from(limit("minLength").unwrap_or(0))
        .unwrap_or(0)
        .min(1000);
    let most = usize::try_from(limit("maxLength").unwrap_or(64))
        .unwrap_or(64)
        .min(1000);
    let word: String = if name.is_empty() {
        "text".to_owned()
    } else {
        name.to_owned()
    };
    let mut made = word.clone();
    while made.chars().count() < least {
        made.push_str(&word);
    }
    json!(made.chars().take(most.max(least)).collect::<String>())
}
