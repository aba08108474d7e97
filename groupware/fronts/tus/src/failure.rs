//! How failures of uploads are told.

use axum::response::{IntoResponse, Response};
use groupware_content::ContentError;
use groupware_documents::DocumentError;
use groupware_http::ApiError;
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
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl From<StoreError> for UploadFailure {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl From<DocumentError> for UploadFailure {
    fn from(error: DocumentError) -> Self {
        Self(ApiError::told(error.status(), error.message()))
    }
}

impl From<ChangeError<DocumentError>> for UploadFailure {
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
    fn from(error: ContentError) -> Self {
        Self(match error {
            ContentError::Full => ApiError::told(507, "The disk is full."),
            ContentError::TooLong => {
                ApiError::told(413, "These are more bytes than were announced.")
            }
            _ => ApiError::told(500, "The content can't be read or written."),
        })
    }
}
