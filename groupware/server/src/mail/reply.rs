//! Answers of the mail service.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use groupware_mail::{JsonPage, Span};
use http::header::{
    CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, StatusCode};

const JSON: &str = "application/json";

/// 200 with nothing: done.
pub(crate) fn done() -> Response {
    Response::new(Body::empty())
}

/// 200 with a document.
pub(crate) fn json(body: impl Into<Body>) -> Response {
    typed(body, JSON)
}

/// 201 with the path of what was made.
pub(crate) fn created(location: &str) -> Response {
    let mut response = with(done(), LOCATION, location);
    *response.status_mut() = StatusCode::CREATED;
    response
}

/// 200 with the path of what became of it.
pub(crate) fn moved_to(location: &str) -> Response {
    with(done(), LOCATION, location)
}

/// A page of a list as an array, with where it lies in the whole.
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

/// A message as it is kept.
pub(crate) fn mime(message: Bytes) -> Response {
    with(
        typed(message, "message/rfc822"),
        X_CONTENT_TYPE_OPTIONS,
        "nosniff",
    )
}

/// A file, to be saved: whoever sent it must not have a browser show it as a page of this server.
pub(crate) fn file(name: &str, kind: &str, data: Vec<u8>) -> Response {
    let kind = match kind.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => kind,
        false => "application/octet-stream",
    };
    let response = with(typed(data, JSON), CONTENT_TYPE, kind);
    let response = with(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    let response = with(
        response,
        CONTENT_SECURITY_POLICY,
        "sandbox; default-src 'none'",
    );
    with(response, CONTENT_DISPOSITION, &disposition(name))
}

/// RFC 6266: the name in ASCII, and in UTF-8 for those who read that.
fn disposition(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| match letter {
            '"' | '\\' => '_',
            letter if letter.is_ascii_graphic() || letter == ' ' => letter,
            _ => '_',
        })
        .collect();
    let encoded = groupware_text::encoded(name);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

fn typed(body: impl Into<Body>, kind: &'static str) -> Response {
    let mut response = Response::new(body.into());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    // Paths and names are encoded and ranges are numbers, so the value is always one.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stay_within_their_header() {
        assert_eq!(
            disposition("é\"\r\n.pdf"),
            "attachment; filename=\"____.pdf\"; filename*=UTF-8''%C3%A9%22%0D%0A.pdf"
        );
    }
}
