//! Failures as pages.

use std::borrow::Cow;

use axum::response::{IntoResponse, Redirect, Response};
use groupware_http::{ErrorMessage, REQUEST_ID};
use http::header::{ACCEPT, RETRY_AFTER};
use http::{Request, StatusCode};
use maud::html;

use crate::error::PageError;
use crate::layout;

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, text): (u16, Cow<'static, str>) = match self {
            Self::SignIn(path) => return Redirect::to(&path).into_response(),
            Self::SignedOut => return signed_out(),
            Self::Forged => (
                403,
                "This form was not sent from a page of this server, or from one that is out of \
                 date. Nothing was changed. Go back, reload the page, and send it again."
                    .into(),
            ),
            Self::Unreadable => (400, "This form can't be read. Nothing was changed.".into()),
            Self::TooLarge => (413, "This is larger than the server takes.".into()),
            Self::NotFound => (404, NOT_FOUND.into()),
            Self::Broken(fault) => {
                return fault.on(page(StatusCode::INTERNAL_SERVER_ERROR, BROKEN));
            }
            Self::Faulty(status, text, fault) => {
                let status = StatusCode::from_u16(status);
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                return fault.on(page(status, &text));
            }
            Self::Refused(status, text) => (status, text.into()),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        page(status, &text)
    }
}

const NOT_FOUND: &str = "There is nothing at this address. It may have been deleted or answered, \
                         or the link may be wrong.";
const BROKEN: &str = "Something went wrong on the server. Nothing of yours is lost by it; try \
                      again in a moment.";

/// Returns true if the client shows the answer to a person. Paths of the programs' interfaces, with
/// most of the requests, are distinguished by their prefix.
pub fn are_asked_for<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    if path.starts_with("/mail/") || path.starts_with("/admin/") {
        return false;
    }
    let accept = request.headers().get(ACCEPT);
    accept.is_some_and(|accept| {
        accept
            .as_bytes()
            .windows(9)
            .any(|part| part == b"text/html")
    })
}

/// Converts a failure of the programs' interfaces, or of the layers around all routes, to a page.
pub fn dressed(mut response: Response) -> Response {
    let Some(ErrorMessage(message)) = response.extensions_mut().remove::<ErrorMessage>() else {
        return response;
    };
    let message = match response.status() {
        StatusCode::UNAUTHORIZED => return signed_out(),
        StatusCode::NOT_FOUND => NOT_FOUND.into(),
        StatusCode::INTERNAL_SERVER_ERROR => BROKEN.into(),
        _ => message,
    };
    let mut page = page(response.status(), &message);
    for name in [RETRY_AFTER, REQUEST_ID] {
        if let Some(value) = response.headers_mut().remove(&name) {
            page.headers_mut().insert(name, value);
        }
    }
    page
}

fn page(status: StatusCode, text: &str) -> Response {
    let title = match status.as_u16() {
        403 => "Not allowed",
        404 => "Not found",
        413 => "Too large",
        409 => "Changed meanwhile",
        429 | 503 => "Busy",
        500..=599 => "Something went wrong",
        _ => "That doesn't work",
    };
    let main = html! {
        p.code { (status.as_u16()) }
        h1 { (title) }
        p { (text) }
        p { a.button href="/" { "Go to the start" } }
    };
    layout::card(status, title, &main)
}

/// The browser still has the input: reloading the page sends it again.
fn signed_out() -> Response {
    let main = html! {
        h1 { "You were signed out" }
        p { "Nothing was sent yet, and what you wrote is still here." }
        ol {
            li { a href="/sign-in" target="_blank" { "Sign in in another tab" } "." }
            li { "Come back here and reload this page. Your browser asks whether to send the form \
                  again: say yes." }
        }
    };
    layout::card(StatusCode::UNAUTHORIZED, "You were signed out", &main)
}
