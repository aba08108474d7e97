//! Answers of the mail service.

use axum::response::Response;
use groupware_http::reply::{json, nothing, status, with};
use groupware_mail::{JsonPage, Span};
use http::StatusCode;
use http::header::{CONTENT_RANGE, LOCATION};

/// 201 with the path of the new resource.
pub(crate) fn created(location: &str) -> Response {
    with(status(StatusCode::CREATED), LOCATION, location)
}

/// 200 with the path of the result.
pub(crate) fn moved_to(location: &str) -> Response {
    with(nothing(), LOCATION, location)
}

/// A page of a list as an array, with its position in the list.
pub(crate) fn page(page: JsonPage) -> Response {
    let Span {
        items,
        first,
        total,
    } = page.span;
    let range = match items {
        0 => format!("items */{total}"),
        items => format!("items {first}-{}/{total}", first + items - 1),
    };
    with(json(page.body), CONTENT_RANGE, &range)
}
