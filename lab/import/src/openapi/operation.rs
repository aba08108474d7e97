//! The operations of a description: method, path, inputs, and outputs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::refs::{Server, Spec};
use crate::error::ImportError;

/// Most operations of a description.
const MAX_OPERATIONS: usize = 400;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
const OTHERS: [&str; 4] = ["head", "options", "trace", "query"];

/// An operation.
#[derive(Debug)]
pub(super) struct Operation<'v> {
    /// Upper case.
    pub(super) method: String,
    /// As in the description: `/pets/{petId}`.
    pub(super) path: String,
    pub(super) value: &'v Value,
    /// By place and name: those of the operation take precedence over those of its path.
    pub(super) parameters: Vec<&'v Value>,
    /// The server of the operation or its path.
    pub(super) server: Option<Server>,
}

/// All operations, in the description's order of methods and paths.
pub(super) fn all<'v>(
    spec: &Spec<'v>,
    from: Option<&str>,
    said: &mut Vec<String>,
) -> Result<Vec<Operation<'v>>, ImportError> {
    let mut found = Vec::new();
    let paths = spec.root.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        let item = spec.of(item);
        if !path.starts_with('/') || path.contains(char::is_whitespace) {
            said.push(format!("{path:?} left out: it is no path"));
            continue;
        }
        for method in OTHERS.iter().filter(|method| item.get(**method).is_some()) {
            let method = method.to_ascii_uppercase();
            said.push(format!(
                "{method} {path} left out: importing takes GET, POST, PUT, PATCH, and DELETE"
            ));
        }
        for method in METHODS {
            let Some(value) = item.get(method) else {
                continue;
            };
            let operation = Operation {
                method: method.to_ascii_uppercase(),
                path: path.clone(),
                value,
                parameters: parameters(spec, item, value),
                server: spec
                    .own_server(value, from)
                    .or_else(|| spec.own_server(item, from)),
            };
            if value.get("deprecated").and_then(Value::as_bool) == Some(true) {
                said.push(format!("{} left out: it is deprecated", operation.title()));
                continue;
            }
            found.push(operation);
        }
    }
    let webhooks = spec.root.get("webhooks").and_then(Value::as_object);
    if let Some(count) = webhooks
        .map(serde_json::Map::len)
        .filter(|count| *count > 0)
    {
        said.push(format!(
            "{count} of `webhooks` left out: the server sends them, not its users"
        ));
    }
    if found.len() > MAX_OPERATIONS {
        return Err(ImportError::TooMany {
            what: "operations",
            count: found.len(),
            most: MAX_OPERATIONS,
        });
    }
    Ok(found)
}

fn parameters<'v>(spec: &Spec<'v>, item: &'v Value, operation: &'v Value) -> Vec<&'v Value> {
    let mut by_name: BTreeMap<(String, String), (usize, &'v Value)> = BTreeMap::new();
    let lists = [item, operation].map(|of| of.get("parameters").and_then(Value::as_array));
    for parameter in lists.into_iter().flatten().flatten() {
        let parameter = spec.of(parameter);
        let text = |key: &str| {
            parameter
                .get(key)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        if let (Some(place), Some(name)) = (text("in"), text("name")) {
            let at = by_name.len();
            let entry = by_name.entry((place, name)).or_insert((at, parameter));
            entry.1 = parameter;
        }
    }
    let mut all: Vec<_> = by_name.into_values().collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, parameter)| parameter).collect()
}

impl<'v> Operation<'v> {
    /// Its summary, or else method and path.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The names in its path, in order.
    pub(super) fn path_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut rest = self.path.as_str();
        while let Some((_, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            names.push(name.to_owned());
            rest = after;
        }
        names
    }

    /// The path without its last name: the collection of `/pets/{petId}`.
    pub(super) fn collection(&self) -> Option<&str> {
        let at = self.path.rfind("/{")?;
        Some(&self.path[..at])
    }

    pub(super) fn parameter(&self, place: &str, name: &str) -> Option<&'v Value> {
        self.parameters.iter().copied().find(|parameter| {
            let is =
                |key: &str, text: &str| parameter.get(key).and_then(Value::as_str) == Some(text);
            is("in", place) && is("name", name)
        })
    }

    /// The first documented 2xx (or else 3xx), with its schema.
    pub(super) fn answer(&self, spec: &Spec<'v>) -> (Option<u16>, Option<&'v Value>) {
        let responses = self.value.get("responses").and_then(Value::as_object);
        let mut coded: Vec<(u16, &'v Value)> = responses
            .into_iter()
            .flatten()
            .filter_map(|(code, value)| Some((code.parse().ok()?, spec.of(value))))
            .filter(|(code, _)| (200..400).contains(code))
            .collect();
        coded.sort_by_key(|(code, _)| *code);
        let Some((code, response)) = coded.first().copied() else {
            return (None, None);
        };
        let schema = match spec.is_old {
            true => response.get("schema"),
            false => response
                .get("content")
                .and_then(Value::as_object)
                .and_then(|kinds| kinds.iter().find(|(kind, _)| kind.contains("json")))
                .and_then(|(_, kind)| kind.get("schema")),
        };
        (Some(code), schema.map(|schema| spec.of(schema)))
    }
}
