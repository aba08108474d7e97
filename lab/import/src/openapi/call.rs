//! One call of an operation: its arguments, and the captures of its response.

use lab_workload::looks_secret;
use serde_json::{Map, Value};

use super::operation::Operation;
use super::order::{Id, Made};
use super::refs::{Server, Spec};
use super::sample::{MADE_BYTES, Sampler, UUID};
use super::style;
use crate::draft::Request;
use crate::secret::Secrets;
use crate::text::Text;
use lab_units::names::{Names, word};

/// Makes requests, each with the captures of those before it.
pub(super) struct Maker<'m, 'v> {
    pub(super) spec: &'m Spec<'v>,
    pub(super) sampler: &'m Sampler<'m, 'v>,
    /// The server of operations without one of their own.
    pub(super) server: &'m Server,
    pub(super) secrets: &'m mut Secrets,
    pub(super) names: &'m mut Names,
    pub(super) parameters: &'m mut Vec<(String, String)>,
    pub(super) made: &'m mut Made,
    pub(super) said: &'m mut Vec<String>,
}

impl<'v> Maker<'_, 'v> {
    /// The request, with the variables set before it; `None` if it would affect others' data.
    pub(super) fn request(
        &mut self,
        operation: &Operation<'v>,
    ) -> Option<(Vec<(String, String)>, Request)> {
        let server = operation.server.as_ref().unwrap_or(self.server);
        let is_elsewhere = server.origin.is_some() && server.origin != self.server.origin;
        let origin = server.origin.as_deref().filter(|_| is_elsewhere);
        let before = format!("{}{}", origin.unwrap_or_default(), server.prefix);
        if let Some(origin) = origin {
            self.said.push(format!(
                "{}: goes to {origin}, which its own `servers` name, whatever `--url` says",
                operation.title()
            ));
        }
        let target = self.path(operation, &before)?;
        let mut request = Request {
            method: operation.method.clone(),
            target,
            ..Request::default()
        };
        self.query(operation, &mut request);
        self.headers(operation, &mut request);
        self.cookies(operation);
        self.body(operation, &mut request);
        self.credentials(operation, &mut request);
        if self.sampler.was_cut() {
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

    fn path(&mut self, operation: &Operation<'v>, before: &str) -> Option<Text> {
        let mut target = Text::literal(before);
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
            let (prefix, code) = match id {
                Some(id) => {
                    let described = operation.parameter("path", name).unwrap_or(&Value::Null);
                    let (prefix, _) = style::of_path(self.spec, described, &Value::Null);
                    (prefix, id.code)
                }
                None if changes && nth == last => {
                    self.said.push(format!(
                        "{} left out: what is made has no id in its answer by which it could be changed",
                        operation.title()
                    ));
                    return None;
                }
                None => self.parameter(operation, name),
            };
            target.push(Text::literal(&prefix));
            target.push(Text::code(&code));
            before.push_str(&format!("{{{name}}}"));
            rest = after;
        }
        target.push(Text::literal(rest));
        Some(target.joined())
    }

    /// A parameter of the workload, with the description's example; the text before it in the path, and its name.
    fn parameter(&mut self, operation: &Operation<'v>, name: &str) -> (String, String) {
        let described = operation.parameter("path", name);
        let value = described.map_or(Value::Null, |parameter| self.sampler.of(parameter));
        let (prefix, mut encoded) =
            style::of_path(self.spec, described.unwrap_or(&Value::Null), &value);
        if encoded.is_empty() {
            "1".clone_into(&mut encoded);
        }
        let known = self
            .parameters
            .iter()
            .find(|(known, held)| *known == word(name) && *held == encoded);
        if let Some((known, _)) = known {
            return (prefix, known.clone());
        }
        let given = self.names.variable(name);
        self.said.push(format!(
            "{} of {} is the parameter `{given}` ({encoded}): set it to one that there is",
            name, operation.path
        ));
        self.parameters.push((given.clone(), encoded));
        (prefix, given)
    }

    /// Appends a name and a value to the query; the path may have one already.
    fn add_to_query(request: &mut Request, key: &str, value: Text) {
        let has_query = request.target.with_holes().contains('?');
        let separator = if has_query { '&' } else { '?' };
        let before = Text::literal(&format!("{separator}{key}="));
        request.target.push(before);
        request.target.push(value);
    }

    fn query(&mut self, operation: &Operation<'v>, request: &mut Request) {
        for parameter in operation.parameters.iter().copied() {
            let name = text(parameter, "name");
            if text(parameter, "in") != "query" || !is_sent(parameter) {
                continue;
            }
            if looks_secret(&name) {
                let code = self.asked(&name);
                Self::add_to_query(request, &style::escaped(&name), Text::code(&code));
                continue;
            }
            let value = self.sampler.of(parameter);
            for (key, value) in style::of_query(self.spec, parameter, &value) {
                Self::add_to_query(request, &key, Text::literal(&value));
            }
        }
        request.target = std::mem::take(&mut request.target).joined();
    }

    fn headers(&mut self, operation: &Operation<'v>, request: &mut Request) {
        // OpenAPI ignores the first three: other parts of the description define them.
        const OWN: [&str; 3] = ["accept", "content-type", "authorization"];
        const DRIVERS: [&str; 6] = [
            "content-length",
            "connection",
            "transfer-encoding",
            "cookie",
            "expect",
            "upgrade",
        ];
        for parameter in operation.parameters.iter().copied() {
            let name = text(parameter, "name");
            let lower = name.to_ascii_lowercase();
            if text(parameter, "in") != "header"
                || !is_required(parameter)
                || OWN.contains(&lower.as_str())
            {
                continue;
            }
            if DRIVERS.contains(&lower.as_str()) || !is_token(&name) {
                self.said.push(format!(
                    "{}: its header `{}` is left out",
                    operation.title(),
                    one_line(&name)
                ));
                continue;
            }
            let value = match looks_secret(&name) {
                true => Text::code(&self.asked(&name)),
                false => {
                    let value = self.sampler.of(parameter);
                    Text::literal(&one_line(&style::of_header(self.spec, parameter, &value)))
                }
            };
            request.headers.push((name, value));
        }
    }

    /// The engine handles cookies: it sends those that responses set.
    fn cookies(&mut self, operation: &Operation<'v>) {
        for parameter in operation.parameters.iter().copied() {
            if text(parameter, "in") == "cookie" && is_sent(parameter) {
                let name = one_line(&text(parameter, "name"));
                self.leave_out_cookie(operation, &name);
            }
        }
    }

    fn leave_out_cookie(&mut self, operation: &Operation<'v>, name: &str) {
        self.said.push(format!(
            "{}: its cookie `{name}` is left out: users send the cookies that answers set",
            operation.title()
        ));
    }

    /// A value of the environment in place of a secret.
    pub(super) fn asked(&mut self, name: &str) -> String {
        let name = word(name).to_ascii_uppercase();
        self.secrets.ask(&name);
        format!("secret('{name}')")
    }

    /// Replaces a generated value with a random UUID or a value of the environment.
    pub(super) fn hide(&mut self, name: &str, value: &mut Text) {
        if value.as_literal() == Some(UUID) {
            *value = Text::code("uuid()");
        } else if looks_secret(name) {
            let code = self.asked(name);
            *value = Text::code(&code);
        }
    }

    /// The credentials, by the first scheme that the operation allows.
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
            match schemes.and_then(|schemes| schemes.get(name)) {
                Some(scheme) => self.credential(self.spec.of(scheme), name, operation, request),
                None => self.said.push(format!(
                    "{}: its security scheme `{}` isn't described, and is left out",
                    operation.title(),
                    one_line(name)
                )),
            }
        }
    }

    fn credential(
        &mut self,
        scheme: &'v Value,
        name: &str,
        operation: &Operation<'v>,
        request: &mut Request,
    ) {
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
                match place.as_str() {
                    "header" if is_token(&key) => {
                        let code = self.asked(&format!("API_{name}"));
                        request.headers.push((key, Text::code(&code)));
                    }
                    "query" => {
                        let code = self.asked(&format!("API_{name}"));
                        Self::add_to_query(request, &style::escaped(&key), Text::code(&code));
                    }
                    "cookie" => self.leave_out_cookie(operation, &one_line(&key)),
                    _ => self.leave_out_scheme(operation, name),
                }
            }
            ("http", "bearer") | ("oauth2" | "openIdConnect", _) => {
                let code = self.asked("API_TOKEN");
                request.headers.push((
                    "Authorization".to_owned(),
                    Text::with_code("Bearer ", &code),
                ));
            }
            _ => self.leave_out_scheme(operation, name),
        }
    }

    fn leave_out_scheme(&mut self, operation: &Operation<'v>, name: &str) {
        self.said.push(format!(
            "{}: its security scheme `{}` is left out: importing doesn't know its kind",
            operation.title(),
            one_line(name)
        ));
    }

    /// Captures the id of a created or listed item, for the operations on it.
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
            // An existing one: it is only read.
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

    /// The place of ids in a response, and whether there are several.
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

pub(super) fn text(value: &Value, key: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn is_required(parameter: &Value) -> bool {
    parameter.get("required").and_then(Value::as_bool) == Some(true)
}

/// Returns true if a parameter is sent: it is required, or the description has an example of it.
pub(super) fn is_sent(parameter: &Value) -> bool {
    let has = |key: &str| parameter.get(key).is_some();
    is_required(parameter) || has("example") || has("examples") || has("x-example")
}

fn is_token(name: &str) -> bool {
    let is_legal = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    !name.is_empty() && name.bytes().all(is_legal)
}

pub(super) fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
