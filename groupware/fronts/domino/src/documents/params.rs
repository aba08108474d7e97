//! What the path and the headers of a request about documents say.

use axum::extract::FromRequestParts;
use groupware_documents::{DatabaseName, DocumentError, FileName, ItemName, ItemPath, Unid};
use groupware_http::{ApiError, Params, header_text};
use groupware_proto_http::parse_http_date;
use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

/// The names in the path, decoded and not yet validated.
pub(crate) struct DocumentParams(Params);

impl<S: Send + Sync> FromRequestParts<S> for DocumentParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Params::from_request_parts(parts, state).await.map(Self)
    }
}

impl DocumentParams {
    pub(crate) fn database(&self) -> Result<DatabaseName, DocumentError> {
        DatabaseName::parse(self.0.get("database"))
    }

    pub(crate) fn unid(&self) -> Result<Unid, DocumentError> {
        Unid::parse(self.0.get("unid"))
    }

    pub(crate) fn file(&self) -> Result<FileName, DocumentError> {
        FileName::parse(self.0.get("file"))
    }

    pub(crate) fn place(&self) -> Result<ItemPath, DocumentError> {
        Ok(ItemPath {
            database: self.database()?,
            unid: self.unid()?,
            item: ItemName::parse(self.0.get("item"))?,
        })
    }
}

/// A date in a header; one that can't be read counts as not sent.
pub(crate) fn date(headers: &HeaderMap, name: HeaderName) -> Option<i64> {
    parse_http_date(header_text(headers, name)?)
}
