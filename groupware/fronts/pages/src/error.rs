//! Why a page can't be shown, or a form not be accepted.

use groupware_calendar::CalendarError;
use groupware_http::{ApiError, Fault};
use groupware_mail::{MailError, Reason};
use groupware_service::ChangeError;
use groupware_store::{CommitError, StoreError};
use http::StatusCode;

/// Why a page can't be shown, or a form not be accepted.
#[derive(Debug)]
pub(crate) enum PageError {
    /// The visitor is not signed in: the sign-in page returns to this path.
    SignIn(String),
    /// The session has ended, and the form would be lost.
    SignedOut,
    /// The form is not from a page of this server.
    Forged,
    /// The form can't be read.
    Unreadable,
    TooLarge,
    NotFound,
    /// A fault of the server.
    Broken(Fault),
    /// The request is refused, with a status and a sentence.
    Refused(u16, String),
    /// A fault of the server with a message for the user, such as a full disk.
    Faulty(u16, String, Fault),
}

impl PageError {
    /// Converts a form's parse failure, by its status.
    pub(crate) fn unreadable(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
            _ => Self::Unreadable,
        }
    }
}

impl From<CalendarError> for PageError {
    #[track_caller]
    fn from(error: CalendarError) -> Self {
        match error {
            CalendarError::Refused { reason, message } => match reason.status() {
                404 => Self::NotFound,
                500 => Self::Broken(Fault::with_message(message)),
                status => Self::Refused(status, message.into_owned()),
            },
            CalendarError::Unreadable(error) => Self::Broken(Fault::of(&error)),
        }
    }
}

impl From<ChangeError<CalendarError>> for PageError {
    #[track_caller]
    fn from(error: ChangeError<CalendarError>) -> Self {
        let (status, message) = match error {
            ChangeError::Decided(error) => return error.into(),
            ChangeError::Contended | ChangeError::Commit(CommitError::Conflict { .. }) => {
                (409, "The entry is being changed by others: try again.")
            }
            ChangeError::Commit(CommitError::TooLarge) => (413, "The request is too large."),
            ChangeError::Commit(error @ CommitError::Full) => {
                let message = "There is no room left to store this.";
                return Self::Faulty(507, message.to_owned(), Fault::of(&error));
            }
            ChangeError::Commit(CommitError::Closed) => (503, "The server is shutting down."),
            ChangeError::Commit(error @ CommitError::Unknown(_)) => return error.into(),
            ChangeError::Commit(error) => return Self::Broken(Fault::of(&error)),
        };
        Self::Refused(status, message.to_owned())
    }
}

impl From<MailError> for PageError {
    #[track_caller]
    fn from(error: MailError) -> Self {
        match error {
            MailError::Refused { reason, message } => match reason {
                Reason::NotFound => Self::NotFound,
                reason => Self::Refused(reason.status(), message.into_owned()),
            },
            MailError::Unreadable(error) => Self::Broken(Fault::of(&error)),
        }
    }
}

impl From<ChangeError<MailError>> for PageError {
    #[track_caller]
    fn from(error: ChangeError<MailError>) -> Self {
        match error {
            ChangeError::Decided(error) => error.into(),
            ChangeError::Contended => CommitError::Conflict { index: 0 }.into(),
            ChangeError::Commit(error) => error.into(),
        }
    }
}

impl From<StoreError> for PageError {
    #[track_caller]
    fn from(error: StoreError) -> Self {
        Self::Broken(Fault::of(&error))
    }
}

impl From<CommitError> for PageError {
    #[track_caller]
    fn from(error: CommitError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<ApiError> for PageError {
    #[track_caller]
    fn from(error: ApiError) -> Self {
        let (status, message) = (error.status().as_u16(), error.message().to_owned());
        match error.cause() {
            Some(fault) => Self::Faulty(status, message, fault.clone()),
            None => Self::Refused(status, message),
        }
    }
}
