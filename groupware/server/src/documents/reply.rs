//! Answers about documents.

use axum::body::Body;
use axum::response::Response;
use groupware_documents::{Page, Unid, http_date};
use http::header::{CONTENT_RANGE, CONTENT_TYPE, LAST_MODIFIED, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};

/// 200 with no body: done.
pub(crate) fn nothing() -> Response {
    Response::new(Body::empty())
}

pub(crate) fn status(status: StatusCode) -> Response {
    let mut response = nothing();
    *response.status_mut() = status;
    response
}

/// 200 with a document or list.
pub(crate) fn json(body: Vec<u8>) -> Response {
    let response = Response::new(Body::from(body));
    with(response, CONTENT_TYPE, "application/json")
}

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

/// Adds a header. A value that can't be sent, of which there are none, is left out.
pub(crate) fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}
