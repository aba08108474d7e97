//! Parses the path and the headers of requests about documents.

use axum::extract::FromRequestParts;
use groupware_documents::{DatabaseName, DocumentError, FileName, ItemName, ItemPath, Seen, Unid};
use groupware_http::{ApiError, Params, header_text};
use groupware_proto_http::parse_http_date;
use http::HeaderMap;
use http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
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

/// Returns a date in a header; an unreadable one counts as missing.
pub(crate) fn date(headers: &HeaderMap, name: HeaderName) -> Option<i64> {
    parse_http_date(header_text(headers, name)?)
}

/// Returns the versions that the client saw.
///
/// # Errors
/// 400 for an unreadable date: it must not permit overwriting.
pub(crate) fn seen(headers: &HeaderMap) -> Result<Seen, ApiError> {
    let tags = |name| {
        let values = headers.get_all(name).iter();
        // A value that isn't text matches no version.
        let values = values.map(|value| value.to_str().unwrap_or_default());
        values
            .map(str::to_owned)
            .reduce(|all, one| all + "," + &one)
    };
    let unmodified_since = date(headers, IF_UNMODIFIED_SINCE);
    if unmodified_since.is_none() && headers.contains_key(IF_UNMODIFIED_SINCE) {
        return Err(ApiError::bad_request("If-Unmodified-Since can't be read."));
    }
    Ok(Seen {
        if_match: tags(IF_MATCH),
        if_none_match: tags(IF_NONE_MATCH),
        unmodified_since,
    })
}
