//! Maps failures of uploads to answers.

use axum::response::{IntoResponse, Response};
use groupware_content::ContentError;
use groupware_documents::DocumentError;
use groupware_http::{ApiError, Fault};
use groupware_service::ChangeError;
use groupware_store::StoreError;
use http::StatusCode;

/// When clients may retry after the object store was unavailable, in seconds.
const AWAY_RETRY_S: u32 = 5;

/// The server stopped before work that outlives its request was complete.
pub(crate) fn stopping() -> ApiError {
    ApiError::later(
        StatusCode::SERVICE_UNAVAILABLE,
        "The server is stopping.",
        5,
    )
}

/// A failed request.
#[derive(Debug)]
pub(crate) struct UploadFailure(ApiError);

impl IntoResponse for UploadFailure {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<ApiError> for UploadFailure {
    #[track_caller]
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl From<StoreError> for UploadFailure {
    #[track_caller]
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl From<DocumentError> for UploadFailure {
    #[track_caller]
    fn from(error: DocumentError) -> Self {
        let told = ApiError::with_status(error.status(), error.message());
        Self(match error {
            error @ DocumentError::Unreadable(_) => told.because(Fault::of(&error)),
            _ => told,
        })
    }
}

impl From<ChangeError<DocumentError>> for UploadFailure {
    #[track_caller]
    fn from(error: ChangeError<DocumentError>) -> Self {
        match error {
            ChangeError::Decided(error) => error.into(),
            ChangeError::Contended => {
                let message = "The document is being changed by others: try again.";
                Self(ApiError::with_status(409, message))
            }
            ChangeError::Commit(error) => Self(error.into()),
        }
    }
}

impl From<ContentError> for UploadFailure {
    #[track_caller]
    fn from(error: ContentError) -> Self {
        Self(match error {
            ContentError::Full => ApiError::fault(507, "The disk is full.", &error),
            ContentError::TooLong => {
                ApiError::with_status(413, "These are more bytes than were announced.")
            }
            ContentError::Taken => {
                let message = "Another server has gone on with this upload: ask for its offset.";
                ApiError::with_status(409, message)
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
