//! Answers about documents.

use axum::response::Response;
use groupware_documents::{Page, Unid};
use groupware_http::reply::{json, status, with};
use groupware_proto_http::http_date;
use http::StatusCode;
use http::header::{CONTENT_RANGE, LAST_MODIFIED, LOCATION};

/// 200 with a page of a list and where in the list it lies.
pub(crate) fn page(page: Page) -> Response {
    with(json(page.body), CONTENT_RANGE, &page.range)
}

/// 201 with the path of what was made.
pub(crate) fn created(path: &str) -> Response {
    with(status(StatusCode::CREATED), LOCATION, path)
}

/// 201 with the path and identifier of a document.
pub(crate) fn created_document(path: &str, unid: &Unid) -> Response {
    let body = serde_json::json!({ "@href": path, "@unid": unid.as_str() });
    let mut response = with(json(body.to_string().into_bytes()), LOCATION, path);
    *response.status_mut() = StatusCode::CREATED;
    response
}

/// Tells when it was last changed.
pub(crate) fn modified(response: Response, modified: i64) -> Response {
    with(response, LAST_MODIFIED, &http_date(modified))
}

/// 304: the client has it as it is.
pub(crate) fn not_modified(at: i64) -> Response {
    modified(status(StatusCode::NOT_MODIFIED), at)
}
