//! Answers about documents.

use axum::response::Response;
use groupware_documents::{Page, Unid};
use groupware_http::reply::{json, status, with};
use groupware_proto_http::http_date;
use http::StatusCode;
use http::header::{CONTENT_RANGE, ETAG, LAST_MODIFIED, LOCATION};

/// 200 with a page of a list and its position in the list.
pub(crate) fn page(page: Page) -> Response {
    with(json(page.body), CONTENT_RANGE, &page.range)
}

/// 201 with the path of the new resource.
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

/// Adds the tag and the time of the last change. The current second is omitted: it identifies no version.
pub(crate) fn versioned(response: Response, tag: &str, (modified, now): (i64, i64)) -> Response {
    let response = with(response, ETAG, tag);
    match modified < now {
        true => with(response, LAST_MODIFIED, &http_date(modified)),
        false => response,
    }
}
