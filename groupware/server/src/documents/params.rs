//! What a request about documents carries besides its body.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, RawPathParams};
use groupware_documents::{
    DatabaseName, DocumentError, FileName, ItemName, Place, Unid, UploadId, parse_http_date,
};
use http::header::HeaderName;
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::error::ApiError;

/// The names in the path, decoded and not yet validated.
pub(crate) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let names = RawPathParams::from_request_parts(parts, state)
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

impl Params {
    fn get(&self, wanted: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn database(&self) -> Result<DatabaseName, DocumentError> {
        DatabaseName::parse(self.get("database"))
    }

    pub(crate) fn unid(&self) -> Result<Unid, DocumentError> {
        Unid::parse(self.get("unid"))
    }

    pub(crate) fn item(&self) -> Result<ItemName, DocumentError> {
        ItemName::parse(self.get("item"))
    }

    pub(crate) fn file(&self) -> Result<FileName, DocumentError> {
        FileName::parse(self.get("file"))
    }

    pub(crate) fn place(&self) -> Result<Place, DocumentError> {
        Ok(Place {
            database: self.database()?,
            unid: self.unid()?,
            item: self.item()?,
        })
    }

    pub(crate) fn upload(&self) -> Result<UploadId, DocumentError> {
        UploadId::parse(self.get("upload"))
    }
}

/// The query's names and values, decoded, in their order.
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        axum::extract::Query::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Query(pairs)| Self(pairs))
            .map_err(|_| ApiError::bad_request("The query can't be read."))
    }
}

impl Query {
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter();
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a name, the last one where there are several.
    pub(crate) fn last(&self, wanted: &str) -> Option<&str> {
        self.pairs()
            .filter(|(name, _)| *name == wanted)
            .last()
            .map(|(_, value)| value)
    }
}

/// The method that `X-HTTP-Method-Override` asks for.
pub(crate) struct MethodOverride(pub(crate) Option<Method>);

impl<S: Send + Sync> FromRequestParts<S> for MethodOverride {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = parts.headers.get("x-http-method-override");
        let text = text.and_then(|text| text.to_str().ok());
        Ok(Self(text.and_then(|text| {
            text.trim().to_ascii_uppercase().parse().ok()
        })))
    }
}

/// A header as text; one that is none counts as not sent.
pub(crate) fn text(headers: &HeaderMap, name: impl http::header::AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// A date in a header; one that can't be read counts as not sent.
pub(crate) fn date(headers: &HeaderMap, name: HeaderName) -> Option<i64> {
    parse_http_date(text(headers, name)?)
}
