//! Answers of the calendar, and failures in Domino's error shape.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use groupware_calendar::{CalendarError, Entry, Format, Version, event_document, write_icalendar};
use groupware_http::{Fault, NoFlag, OUTCOME_UNKNOWN, reply};
use groupware_service::ChangeError;
use groupware_store::CommitError;
use http::{StatusCode, header};

/// Why a request failed, in addition to the calendar's refusals.
#[derive(Debug)]
pub(crate) enum CalendarFailure {
    /// The calendar refused it.
    Calendar(CalendarError),
    /// The calendar could not be read.
    Unreadable(CalendarError, Fault),
    /// Concurrent requests kept changing the same entries; this request changed nothing.
    Contended,
    /// The body, or its result, is too large.
    TooLarge,
    /// No space to store it.
    Full(Fault),
    /// The server is shutting down.
    Closing,
    /// It isn't known whether it was stored.
    Unknown(Fault),
    /// A fault of the server.
    Internal(Fault),
}

impl From<CalendarError> for CalendarFailure {
    #[track_caller]
    fn from(error: CalendarError) -> Self {
        match &error {
            CalendarError::Refused { .. } => Self::Calendar(error),
            CalendarError::Unreadable(cause) => {
                let fault = Fault::of(cause);
                Self::Unreadable(error, fault)
            }
        }
    }
}

impl From<NoFlag> for CalendarFailure {
    #[track_caller]
    fn from(error: NoFlag) -> Self {
        CalendarError::bad_request(error.to_string()).into()
    }
}

impl From<ChangeError<CalendarError>> for CalendarFailure {
    #[track_caller]
    fn from(error: ChangeError<CalendarError>) -> Self {
        match error {
            ChangeError::Decided(error) => error.into(),
            ChangeError::Contended => Self::Contended,
            ChangeError::Commit(error) => error.into(),
        }
    }
}

impl From<CommitError> for CalendarFailure {
    #[track_caller]
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict { .. } => Self::Contended,
            CommitError::Full => Self::Full(Fault::of(&error)),
            CommitError::Closed => Self::Closing,
            CommitError::TooLarge => Self::TooLarge,
            CommitError::Unknown(_) => Self::Unknown(Fault::of(&error)),
            _ => Self::Internal(Fault::of(&error)),
        }
    }
}

impl CalendarFailure {
    /// The status, and a sentence for the client; of a fault of the server, no cause.
    fn told(&self) -> (u16, Cow<'_, str>) {
        let (status, message) = match self {
            Self::Calendar(CalendarError::Refused { reason, message }) => {
                return (reason.status(), Cow::Borrowed(message));
            }
            Self::Calendar(_) | Self::Unreadable(..) => (500, "Error reading the calendar."),
            Self::Contended => (409, "The entry is being changed by others: try again."),
            Self::TooLarge => (413, "The request is too large."),
            Self::Full(_) => (507, "There is no room left to store this."),
            Self::Closing => (503, "The server is shutting down."),
            Self::Unknown(_) => (503, OUTCOME_UNKNOWN),
            Self::Internal(_) => (500, "Error writing the calendar."),
        };
        (status, Cow::Borrowed(message))
    }

    fn parts(&self) -> (u16, Vec<u8>) {
        if let Self::Unreadable(_, fault) | Self::Internal(fault) = self
            && fault.is_passing()
        {
            return (
                503,
                error_body(503, None, "The calendar can't be reached now."),
            );
        }
        let (status, message) = self.told();
        let cserror = match self {
            Self::Calendar(error) | Self::Unreadable(error, _) => error.cserror(),
            Self::Internal(_) => Some(1024),
            _ => None,
        };
        (status, error_body(status, cserror, &message))
    }
}

impl IntoResponse for CalendarFailure {
    fn into_response(self) -> Response {
        let (status, body) = self.parts();
        let mut response = reply::json(body);
        *response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        match self {
            Self::Unreadable(_, fault)
            | Self::Full(fault)
            | Self::Unknown(fault)
            | Self::Internal(fault) => fault.on(response),
            _ => response,
        }
    }
}

/// An error's body in Domino's shape: `{"code","text","cserror"?,"message","type"}`.
fn error_body(status: u16, cserror: Option<u16>, message: &str) -> Vec<u8> {
    #[derive(serde::Serialize)]
    struct Body<'a> {
        code: u16,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cserror: Option<u16>,
        message: &'a str,
        r#type: &'a str,
    }
    let words = StatusCode::from_u16(status).ok();
    let body = Body {
        code: status,
        text: words
            .and_then(|status| status.canonical_reason())
            .unwrap_or("Error"),
        cserror,
        message,
        r#type: "text",
    };
    serde_json::to_vec(&body).expect("strings and numbers always serialise")
}

/// 200 with a document.
pub(crate) fn document(format: Format, body: Vec<u8>) -> Response {
    reply::typed(body, format.content_type())
}

/// The entity tag of a document's version (RFC 9110, 8.8.3), which differs by form.
pub(crate) fn tag(version: Version, format: Format) -> String {
    let form = match format {
        Format::Json => 'j',
        Format::ICalendar => 'c',
    };
    format!("\"{version}{form}\"")
}

/// Adds the version's entity tag.
pub(crate) fn version(response: Response, version: Version, format: Format) -> Response {
    reply::with(response, header::ETAG, &tag(version, format))
}

/// 304: the client has this version.
pub(crate) fn not_modified(of: Version, format: Format) -> Response {
    version(reply::status(StatusCode::NOT_MODIFIED), of, format)
}

/// 200 with a list, or with no content type and no body if it is empty.
pub(crate) fn list(body: Option<Vec<u8>>) -> Response {
    body.map_or_else(reply::nothing, |body| document(Format::Json, body))
}

/// 200 with a page of a list and its position in the list.
pub(crate) fn page(format: Format, body: Vec<u8>, range: &str) -> Response {
    reply::with(document(format, body), header::CONTENT_RANGE, range)
}

/// 201 with the new event and its path.
pub(crate) fn created(format: Format, body: Vec<u8>, location: &str) -> Response {
    let mut response = document(format, body);
    *response.status_mut() = StatusCode::CREATED;
    reply::with(response, header::LOCATION, location)
}

/// An event in the form of the request.
pub(crate) fn event_body(format: Format, mailbox: &str, entry: &Entry) -> Vec<u8> {
    match format {
        Format::Json => event_document(mailbox, entry),
        Format::ICalendar => write_icalendar([entry]).into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use groupware_calendar::Reason;
    use groupware_store::ReadError;

    use super::*;

    #[test]
    fn failures_have_dominos_shape() {
        for (failure, status) in [
            (CalendarFailure::Contended, 409),
            (CalendarFailure::TooLarge, 413),
            (CalendarFailure::Full(Fault::with_message("full")), 507),
            (CalendarFailure::Closing, 503),
            (CalendarFailure::Unknown(Fault::with_message("gone")), 503),
            (
                CalendarFailure::Internal(Fault::with_message("broken")),
                500,
            ),
            (CalendarError::bad_request("No.").into(), 400),
        ] {
            let (found, body) = failure.parts();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((found, &body["code"]), (status, &status.into()));
            assert!(body["text"] != "" && body["message"] != "", "{body}");
        }
    }

    fn body(error: CalendarError) -> String {
        let (_, body) = CalendarFailure::from(error).parts();
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn body_has_dominos_shape() {
        let error = CalendarError::refused(Reason::BadAction, "Nothing to answer.");
        assert_eq!(
            body(error),
            r#"{"code":400,"text":"Bad Request","cserror":1033,"message":"Nothing to answer.","type":"text"}"#
        );
        let error = CalendarError::refused(Reason::Changed, "It was changed.");
        let changed = r#"{"code":412,"text":"Precondition Failed","message":"It was changed.","type":"text"}"#;
        assert_eq!(body(error), changed);
    }

    #[test]
    fn internal_failures_tell_nothing_of_the_store() {
        let body = body(CalendarError::from(ReadError::corrupt(b"c/e/secret", "x")));
        assert!(body.contains("1024") && !body.contains("secret"), "{body}");
    }
}
