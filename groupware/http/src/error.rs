//! The form of failures: Domino's JSON, with causes only and no secrets.

use std::borrow::Cow;
use std::error::Error;

use axum::response::{IntoResponse, Response};
use groupware_auth::SignInError;
use groupware_proto_http::FieldError;
use groupware_store::{CommitError, StoreError};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::fault::{Fault, RETRY_AFTER_S};

/// A failed request.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    message: Cow<'static, str>,
    challenge: Option<&'static str>,
    retry_after_s: Option<u32>,
    header: Option<(HeaderName, &'static str)>,
    /// Boxed: failures are rare, and results carry their size everywhere.
    fault: Option<Box<Fault>>,
}

impl ApiError {
    /// A failure with a status and a sentence.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            message: message.into(),
            challenge: None,
            retry_after_s: None,
            header: None,
            fault: None,
        }
    }

    /// The request can't be read, or makes no sense.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A domain's error, with its status.
    pub fn with_status(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        let status = StatusCode::from_u16(status);
        Self::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message)
    }

    /// The request has no credentials, or wrong ones.
    pub fn unauthenticated(message: &'static str) -> Self {
        Self {
            challenge: Some("Basic realm=\"Plimsoll\", charset=\"UTF-8\""),
            ..Self::new(StatusCode::UNAUTHORIZED, message)
        }
    }

    /// The request exceeds a limit; a retry may succeed.
    pub fn later(status: StatusCode, message: &'static str, retry_after_s: u32) -> Self {
        Self {
            retry_after_s: Some(retry_after_s),
            ..Self::new(status, message)
        }
    }

    /// A fault of the server: the client gets the status and the sentence, the log the error with
    /// its causes.
    #[track_caller]
    pub fn fault(status: u16, message: &'static str, error: &(dyn Error + 'static)) -> Self {
        Self::with_status(status, message).because(Fault::of(error))
    }

    /// Adds the cause for the log. A 500 for a passing fault becomes a 503.
    #[must_use]
    pub fn because(mut self, fault: Fault) -> Self {
        if fault.is_passing() && self.status == StatusCode::INTERNAL_SERVER_ERROR {
            self.status = StatusCode::SERVICE_UNAVAILABLE;
            self.retry_after_s = Some(RETRY_AFTER_S);
        }
        self.fault = Some(Box::new(fault));
        self
    }

    /// The cause for the log, if it is a fault of the server.
    pub fn cause(&self) -> Option<&Fault> {
        self.fault.as_deref()
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    /// Sets the value of the `WWW-Authenticate` header; `None` sends none.
    pub fn challenge(mut self, challenge: Option<&'static str>) -> Self {
        self.challenge = challenge;
        self
    }
}

/// The message of a failure, attached to its response: pages show it.
#[derive(Debug, Clone)]
pub struct ErrorMessage(pub Cow<'static, str>);

#[derive(serde::Serialize)]
struct Body<'a> {
    code: u16,
    text: &'a str,
    message: &'a str,
    r#type: &'a str,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Body {
            code: self.status.as_u16(),
            text: self.status.canonical_reason().unwrap_or("Error"),
            message: &self.message,
            r#type: "text",
        };
        let body = serde_json::to_vec(&body).expect("a body of texts and a number serialises");
        let mut response = (self.status, body).into_response();
        response.extensions_mut().insert(ErrorMessage(self.message));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(challenge) = self.challenge {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some((name, value)) = self.header {
            headers.insert(name, HeaderValue::from_static(value));
        }
        match self.fault {
            Some(fault) => fault.on(response),
            None => response,
        }
    }
}

impl From<StoreError> for ApiError {
    #[track_caller]
    fn from(error: StoreError) -> Self {
        Self::fault(500, "The store failed.", &error)
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::Malformed(message) => Self::with_status(400, message),
            FieldError::TooLarge(message) => Self::with_status(413, message),
        }
    }
}

impl From<CommitError> for ApiError {
    #[track_caller]
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict { .. } => Self::new(
                StatusCode::CONFLICT,
                "The data was changed by another request.",
            ),
            CommitError::Full => Self::fault(507, "The disk is full.", &error),
            CommitError::Closed => Self::later(
                StatusCode::SERVICE_UNAVAILABLE,
                "The server is stopping.",
                5,
            ),
            CommitError::TooLarge => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "The change is too large.")
            }
            CommitError::Unknown(_) => Self::fault(500, OUTCOME_UNKNOWN, &error),
            _ => Self::fault(500, "The store failed.", &error),
        }
    }
}

/// The message for a change that was sent to a database without an answer.
pub const OUTCOME_UNKNOWN: &str =
    "It isn't known whether this was stored: look before you send it again.";

impl From<SignInError> for ApiError {
    #[track_caller]
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Wrong => Self::unauthenticated("The user name or password is wrong."),
            SignInError::TooManyFailures { wait } => {
                let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
                let message = "Too many failed sign-ins: try again later.";
                let status = StatusCode::TOO_MANY_REQUESTS;
                Self::later(status, message, seconds.saturating_add(1))
            }
            SignInError::Busy => {
                let message = "Too many sign-ins at once: try again later.";
                Self::later(StatusCode::SERVICE_UNAVAILABLE, message, 1)
            }
            SignInError::Store(error) => error.into(),
        }
    }
}
