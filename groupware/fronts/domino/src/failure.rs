//! Maps failures of mail and documents to answers. The calendar's have a shape of their own.

use axum::response::{IntoResponse, Response};
use groupware_content::ContentError;
use groupware_documents::DocumentError;
use groupware_http::{ApiError, Fault, NoFlag};
use groupware_mail::MailError;
use groupware_service::ChangeError;
use groupware_store::{CommitError, StoreError};
use http::StatusCode;

/// When clients may retry after the object store was unavailable, in seconds.
const AWAY_RETRY_S: u32 = 5;

/// A failed request.
#[derive(Debug)]
pub(crate) struct DominoFailure(ApiError);

pub(crate) type Reply = Result<Response, DominoFailure>;

impl IntoResponse for DominoFailure {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<ApiError> for DominoFailure {
    #[track_caller]
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl From<NoFlag> for DominoFailure {
    #[track_caller]
    fn from(error: NoFlag) -> Self {
        Self(error.into())
    }
}

impl From<StoreError> for DominoFailure {
    #[track_caller]
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl From<MailError> for DominoFailure {
    #[track_caller]
    fn from(error: MailError) -> Self {
        Self(match error {
            MailError::Refused { reason, message } => {
                ApiError::with_status(reason.status(), message)
            }
            // Names of records are for the administrator only.
            MailError::Unreadable(error) => {
                ApiError::fault(500, "The mailbox can't be read.", &error)
            }
        })
    }
}

impl From<ChangeError<MailError>> for DominoFailure {
    #[track_caller]
    fn from(error: ChangeError<MailError>) -> Self {
        match error {
            ChangeError::Decided(error) => error.into(),
            ChangeError::Contended => Self(CommitError::Conflict { index: 0 }.into()),
            ChangeError::Commit(error) => Self(error.into()),
        }
    }
}

impl From<DocumentError> for DominoFailure {
    #[track_caller]
    fn from(error: DocumentError) -> Self {
        let told = ApiError::with_status(error.status(), error.message());
        Self(match error {
            error @ DocumentError::Unreadable(_) => told.because(Fault::of(&error)),
            _ => told,
        })
    }
}

impl From<ChangeError<DocumentError>> for DominoFailure {
    #[track_caller]
    fn from(error: ChangeError<DocumentError>) -> Self {
        match error {
            ChangeError::Decided(error) => error.into(),
            ChangeError::Contended => Self(ApiError::new(
                StatusCode::CONFLICT,
                "The document is being changed by others: try again.",
            )),
            ChangeError::Commit(error) => Self(error.into()),
        }
    }
}

impl From<ContentError> for DominoFailure {
    #[track_caller]
    fn from(error: ContentError) -> Self {
        Self(match error {
            ContentError::Full => ApiError::fault(507, "The disk is full.", &error),
            ContentError::TooLong => {
                ApiError::with_status(413, "These are more bytes than were announced.")
            }
            ContentError::Away(_) => {
                let message = "The content can't be reached now: try again.";
                ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, AWAY_RETRY_S)
                    .because(Fault::of(&error))
            }
            _ => ApiError::fault(500, "The content can't be read or written.", &error),
        })
    }
}
