//! How failures of uploads are told.

use axum::response::{IntoResponse, Response};
use groupware_content::ContentError;
use groupware_documents::DocumentError;
use groupware_http::{ApiError, Fault};
use groupware_service::ChangeError;
use groupware_store::StoreError;

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
        let told = ApiError::told(error.status(), error.message());
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
                Self(ApiError::told(409, message))
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
                ApiError::told(413, "These are more bytes than were announced.")
            }
            _ => ApiError::fault(500, "The content can't be read or written.", &error),
        })
    }
}
