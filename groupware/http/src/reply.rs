//! The answers that all fronts share.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode};

/// The media type of JSON.
pub const JSON: &str = "application/json";

/// 200 with no body.
pub fn nothing() -> Response {
    Response::new(Body::empty())
}

/// This status with no body.
pub fn status(status: StatusCode) -> Response {
    let mut response = nothing();
    *response.status_mut() = status;
    response
}

/// 200 with a body of this media type.
pub fn typed(body: impl Into<Body>, media_type: &'static str) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// 200 with JSON.
pub fn json(body: impl Into<Body>) -> Response {
    typed(body, JSON)
}

/// Adds a header. An invalid value is skipped: paths and names are encoded, ranges are numbers, so
/// that there is none.
pub fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// A stored mail.
pub fn mime(message: Bytes) -> Response {
    with(
        typed(message, "message/rfc822"),
        X_CONTENT_TYPE_OPTIONS,
        "nosniff",
    )
}

/// A file to be saved: a browser must never show a sender's file as a page of this server.
pub fn file(name: &str, kind: &str, data: impl Into<Body>) -> Response {
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

/// RFC 6266: the name in ASCII, and in UTF-8 for clients that read that. Browsers show it without
/// escapes, so it has no deceptive characters.
fn disposition(name: &str) -> String {
    let name = name.replace(groupware_text::is_deceptive, "");
    let plain: String = name
        .chars()
        .map(|letter| match letter {
            '"' | '\\' => '_',
            letter if letter.is_ascii_graphic() || letter == ' ' => letter,
            _ => '_',
        })
        .collect();
    let encoded = groupware_text::encoded(&name);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
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
        assert_eq!(
            disposition("plan\u{202e}fdp\u{200b}.exe"),
            "attachment; filename=\"planfdp.exe\"; filename*=UTF-8''planfdp.exe"
        );
    }
}
