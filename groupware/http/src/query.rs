//! The parts of a request besides its body: names in the path, the query, the media type.

use std::convert::Infallible;
use std::fmt;

use axum::extract::{FromRequestParts, RawPathParams};
use groupware_proto_http::query_pairs;
use http::header::{AsHeaderName, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::error::ApiError;

/// An unreadable part of a request, as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable(pub &'static str);

impl From<Unreadable> for ApiError {
    fn from(Unreadable(message): Unreadable) -> Self {
        Self::bad_request(message)
    }
}

/// Returns a parameter of the path, decoded.
///
/// # Errors
/// When the path can't be read, or has no such parameter.
pub async fn parameter(parts: &mut Parts, wanted: &str) -> Result<String, Unreadable> {
    let unreadable = Unreadable("The path can't be read.");
    let names = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| unreadable)?;
    let found = names.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, value)| value.to_owned()).ok_or(unreadable)
}

/// The names in the path, decoded.
#[derive(Debug, Clone)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Returns a name; empty if the path has none of this kind.
    pub fn get(&self, wanted: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value)
    }
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let names = RawPathParams::from_request_parts(parts, &())
            .await
            .map_err(|_| ApiError::bad_request("The path is not valid UTF-8."))?;
        let names = names.iter();
        Ok(Self(
            names
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        ))
    }
}

/// The method in `X-HTTP-Method-Override`.
#[derive(Debug, Clone)]
pub struct MethodOverride(pub Option<Method>);

impl<S: Sync> FromRequestParts<S> for MethodOverride {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = header_text(&parts.headers, "x-http-method-override");
        Ok(Self(text.and_then(|text| {
            text.trim().to_ascii_uppercase().parse().ok()
        })))
    }
}

/// Returns a header as text; a value that isn't text counts as missing.
pub fn header_text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The media type of the body, without parameters; empty if missing.
pub fn media_type(headers: &HeaderMap) -> &str {
    let value = header_text(headers, CONTENT_TYPE);
    let essence = value.unwrap_or_default().split(';').next();
    essence.unwrap_or_default().trim()
}

/// The query's names and values, decoded, in order.
#[derive(Debug, Clone)]
pub struct Query(Vec<(String, String)>);

/// A parameter that must be `true` or `false` has another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoFlag(String);

impl fmt::Display for NoFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The parameter {} is true or false.", self.0)
    }
}

impl From<NoFlag> for ApiError {
    fn from(error: NoFlag) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl Query {
    /// Parses the query of a request.
    pub fn of(parts: &Parts) -> Self {
        Self(query_pairs(parts.uri.query().unwrap_or_default()).collect())
    }

    /// The pairs, in the form that the domains' parsers read.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the last value of a parameter.
    pub fn last(&self, name: &str) -> Option<&str> {
        let values = self.pairs().filter(|(known, _)| *known == name);
        values.last().map(|(_, value)| value)
    }

    /// Returns a parameter that is `true` or `false`.
    ///
    /// # Errors
    /// When it has another value.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, NoFlag> {
        match self.last(name) {
            None => Ok(None),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(_) => Err(NoFlag(name.to_owned())),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self::of(parts))
    }
}
