//! Follows the references of a description, within a limit, and finds its servers.

use serde_json::Value;
use url::Url;

use super::documents::Documents;
use crate::error::ImportError;

/// Most references in a chain.
const MAX_HOPS: usize = 16;

/// A description.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec<'v> {
    pub(super) root: &'v Value,
    documents: &'v Documents,
    /// Swagger 2.
    pub(super) is_old: bool,
}

/// A server: without a path, if the description names one, and the common prefix of all paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) origin: Option<String>,
    pub(super) prefix: String,
}

impl<'v> Spec<'v> {
    pub(super) fn new(documents: &'v Documents) -> Result<Self, ImportError> {
        let root = documents.root();
        // `openapi: 3.0` without quotes is a number.
        let version = |key: &str| match root.get(key)? {
            Value::String(version) => Some(version.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let is_new = version("openapi").is_some_and(|v| v == "3" || v.starts_with("3."));
        let is_old = version("swagger").is_some_and(|v| v == "2" || v.starts_with("2."));
        if !is_new && !is_old {
            return Err(ImportError::Other(
                "this is no description of a service: `openapi: 3.…` or `swagger: \"2.0\"` is missing",
            ));
        }
        Ok(Self {
            root,
            documents,
            is_old,
        })
    }

    pub(super) fn title(&self) -> String {
        let title = self.root.pointer("/info/title").and_then(Value::as_str);
        title.unwrap_or("a service").chars().take(100).collect()
    }

    /// The value itself, or the target of its reference.
    pub(super) fn of(&self, value: &'v Value) -> &'v Value {
        let mut value = value;
        for _ in 0..MAX_HOPS {
            let Some(to) = value.get("$ref").and_then(Value::as_str) else {
                return value;
            };
            let Some(found) = self.documents.find(to) else {
                return &Value::Null;
            };
            value = found;
        }
        &Value::Null
    }

    /// A scalar as in its file, `01234` for a number; an array or object as JSON.
    pub(super) fn text_of(&self, value: &Value) -> String {
        match (self.documents.written.get(value), value) {
            (Some(written), _) => written.to_owned(),
            (None, Value::Null) => String::new(),
            (None, Value::String(text)) => text.clone(),
            (None, other) => other.to_string(),
        }
    }

    /// The server of all operations without one of their own.
    pub(super) fn server(&self, from: Option<&str>) -> Server {
        let written = match self.is_old {
            true => self.old_server(),
            false => self
                .first_server(self.root)
                .unwrap_or_else(|| "/".to_owned()),
        };
        server(&written, from)
    }

    /// The server of an operation or a path.
    pub(super) fn own_server(&self, of: &'v Value, from: Option<&str>) -> Option<Server> {
        self.first_server(of).map(|written| server(&written, from))
    }

    fn old_server(&self) -> String {
        let text = |key: &str| self.root.get(key).and_then(Value::as_str);
        let scheme = self
            .root
            .pointer("/schemes/0")
            .and_then(Value::as_str)
            .unwrap_or("https");
        let path = text("basePath").unwrap_or("/");
        match text("host") {
            Some(host) => format!("{scheme}://{host}{path}"),
            None => path.to_owned(),
        }
    }

    /// The first server of a part of the description, with the defaults of its variables.
    fn first_server(&self, of: &'v Value) -> Option<String> {
        let server = of.get("servers")?.get(0)?;
        let mut url = server.get("url")?.as_str()?.to_owned();
        let variables = server.get("variables").and_then(Value::as_object);
        for (name, variable) in variables.into_iter().flatten() {
            let value = variable
                .get("default")
                .or_else(|| variable.get("enum")?.get(0));
            let value = value.map_or_else(String::new, |value| self.text_of(value));
            url = url.replace(&format!("{{{name}}}"), &value);
        }
        Some(url)
    }
}

fn server(written: &str, from: Option<&str>) -> Server {
    let from = from.and_then(|from| Url::parse(from).ok());
    let url = match &from {
        Some(from) => from.join(written).ok(),
        None => Url::parse(written).ok(),
    };
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    let path = match &url {
        Some(url) => url.path().to_owned(),
        None if written.starts_with('/') => written.to_owned(),
        None => String::new(),
    };
    let path = path.trim_end_matches('/');
    let is_path = path.is_empty() || path.starts_with('/');
    let is_sound = is_path && !path.contains(char::is_whitespace);
    Server {
        origin: url.map(|url| url.origin().ascii_serialization()),
        prefix: if is_sound {
            path.to_owned()
        } else {
            String::new()
        },
    }
}
