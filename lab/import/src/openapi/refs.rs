//! A description with its references followed, within a limit.

use serde_json::Value;
use url::Url;

use crate::error::ImportError;

/// References that lead to references.
const MAX_HOPS: usize = 16;

/// A description.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec<'v> {
    pub(super) root: &'v Value,
    /// Swagger 2.
    pub(super) is_old: bool,
}

impl<'v> Spec<'v> {
    pub(super) fn new(root: &'v Value) -> Result<Self, ImportError> {
        let is_new = root
            .get("openapi")
            .and_then(Value::as_str)
            .is_some_and(|v| v.starts_with("3."));
        let old = root.get("swagger");
        let is_old = old.is_some_and(|v| v.as_str() == Some("2.0") || v.as_f64() == Some(2.0));
        if !is_new && !is_old {
            return Err(ImportError::Other(
                "this is no description of a service: `openapi: 3.…` or `swagger: \"2.0\"` is missing",
            ));
        }
        Ok(Self { root, is_old })
    }

    pub(super) fn title(&self) -> String {
        let title = self.root.pointer("/info/title").and_then(Value::as_str);
        title.unwrap_or("a service").chars().take(100).collect()
    }

    /// The value itself, or what it refers to within the description.
    pub(super) fn of(&self, value: &'v Value) -> &'v Value {
        let mut value = value;
        for _ in 0..MAX_HOPS {
            let Some(to) = value.get("$ref").and_then(Value::as_str) else {
                return value;
            };
            let Some(found) = to.strip_prefix('#').and_then(|to| self.root.pointer(to)) else {
                return &Value::Null;
            };
            value = found;
        }
        &Value::Null
    }

    /// The server without a path, and the path that all others begin with.
    pub(super) fn server(&self, from: Option<&str>) -> (Option<String>, String) {
        let written = match self.is_old {
            true => self.old_server(),
            false => self.new_server(),
        };
        let from = from.and_then(|from| Url::parse(from).ok());
        let url = match &from {
            Some(from) => from.join(&written).ok(),
            None => Url::parse(&written).ok(),
        };
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let path = match &url {
            Some(url) => url.path().to_owned(),
            None if written.starts_with('/') => written.clone(),
            None => String::new(),
        };
        let path = path.trim_end_matches('/');
        let is_path = path.is_empty() || path.starts_with('/');
        let path = if is_path && !path.contains(char::is_whitespace) {
            path
        } else {
            ""
        };
        (
            url.map(|url| url.origin().ascii_serialization()),
            path.to_owned(),
        )
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

    fn new_server(&self) -> String {
        let server = self.root.pointer("/servers/0");
        let mut url = server
            .and_then(|server| server.get("url"))
            .and_then(Value::as_str)
            .unwrap_or("/")
            .to_owned();
        let variables = server.and_then(|server| server.get("variables"));
        for (name, variable) in variables.and_then(Value::as_object).into_iter().flatten() {
            let value = variable
                .get("default")
                .and_then(Value::as_str)
                .unwrap_or_default();
            url = url.replace(&format!("{{{name}}}"), value);
        }
        url
    }
}
