//! Answers of the lookup service: JSON, XML, and failures as plain text, as in the simple lookup
//! service.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use groupware_http::{ApiError, Fault, OUTCOME_UNKNOWN};
use groupware_lookup::{LookupError, Results};
use groupware_service::ChangeError;
use groupware_store::{CommitError, StoreError};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

/// The header with the start of the next page of results.
const NEXT: &str = "x-lookup-next-skip";

/// Why a request failed, in addition to the lookup service's refusals.
#[derive(Debug)]
pub(crate) enum LookupFailure {
    /// The lookup service refused it.
    Lookup(LookupError),
    /// The registrations could not be read.
    Unread(LookupError, Fault),
    /// Credentials are missing or wrong.
    Api(ApiError),
    /// A part of the request can't be read.
    Unreadable(&'static str),
    /// The body must have this type.
    MediaType(&'static str),
    /// The client exceeds its rate; it may continue after this many seconds.
    TooOften(u32),
    /// The client has registered too much; it must wait this many seconds.
    TooMuch(u32),
    /// Concurrent requests kept changing the same registrations.
    Contended,
    /// The store rejected the change.
    Commit(CommitError, Fault),
}

impl LookupFailure {
    pub(crate) fn unreadable(message: &'static str) -> Self {
        Self::Unreadable(message)
    }
}

impl From<LookupError> for LookupFailure {
    #[track_caller]
    fn from(error: LookupError) -> Self {
        match error.reason() {
            Some(_) => Self::Lookup(error),
            None => {
                let fault = Fault::of(&error);
                Self::Unread(error, fault)
            }
        }
    }
}

impl From<ApiError> for LookupFailure {
    #[track_caller]
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// Why a change of registrations is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The lookup service refuses it.
    Lookup(LookupError),
    /// The client has registered too much, and must wait.
    TooMuch(Duration),
}

impl From<LookupError> for Refused {
    fn from(error: LookupError) -> Self {
        Self::Lookup(error)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Lookup(error.into())
    }
}

impl From<ChangeError<Refused>> for LookupFailure {
    #[track_caller]
    fn from(error: ChangeError<Refused>) -> Self {
        match error {
            ChangeError::Decided(Refused::Lookup(error)) => error.into(),
            ChangeError::Decided(Refused::TooMuch(wait)) => {
                let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
                Self::TooMuch(seconds.saturating_add(1))
            }
            ChangeError::Contended => Self::Contended,
            ChangeError::Commit(error) => {
                let fault = Fault::of(&error);
                Self::Commit(error, fault)
            }
        }
    }
}

impl IntoResponse for LookupFailure {
    fn into_response(self) -> Response {
        match self {
            Self::Lookup(error) => refused(&error),
            Self::Unread(error, fault) => fault.on(refused(&error)),
            Self::Api(error) => error.into_response(),
            Self::Unreadable(message) => text(StatusCode::BAD_REQUEST, message),
            Self::MediaType(wanted) => text(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                &format!("The body has to be {wanted}."),
            ),
            Self::TooOften(seconds) => later("Too many requests: try again later.", seconds),
            Self::TooMuch(seconds) => {
                later("You have registered very much: try again later.", seconds)
            }
            Self::Contended => {
                let message = "The registration is being changed by others: try again.";
                text(StatusCode::CONFLICT, message)
            }
            Self::Commit(error, fault) => {
                let (status, message, is_ours) = match error {
                    CommitError::Full => (507, "There is no room left to store this.", true),
                    CommitError::TooLarge => (413, "The registration is too large.", false),
                    CommitError::Closed => (503, "The server is stopping.", false),
                    CommitError::Unknown(_) => (500, OUTCOME_UNKNOWN, true),
                    _ => (500, "The store failed.", true),
                };
                let status = StatusCode::from_u16(status);
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                match is_ours {
                    true => fault.on(text(status, message)),
                    false => text(status, message),
                }
            }
        }
    }
}

fn refused(error: &LookupError) -> Response {
    let status = StatusCode::from_u16(error.status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    text(status, &error.to_string())
}

fn later(message: &str, seconds: u32) -> Response {
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, message);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

pub(crate) fn text(status: StatusCode, message: &str) -> Response {
    typed(
        status,
        "text/plain; charset=utf-8",
        format!("{message}\n").into_bytes(),
    )
}

pub(crate) fn json(body: Vec<u8>) -> Response {
    typed(StatusCode::OK, "application/json", body)
}

pub(crate) fn xml(body: Vec<u8>) -> Response {
    typed(StatusCode::OK, "text/xml; charset=utf-8", body)
}

/// SOAP 1.1 requires this status with every fault.
pub(crate) fn fault(body: Vec<u8>) -> Response {
    typed(
        StatusCode::INTERNAL_SERVER_ERROR,
        "text/xml; charset=utf-8",
        body,
    )
}

pub(crate) fn results(found: Results) -> Response {
    let mut response = json(found.body);
    if let Some(next) = found.next {
        response.headers_mut().insert(NEXT, HeaderValue::from(next));
    }
    response
}

fn typed(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let value = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}
