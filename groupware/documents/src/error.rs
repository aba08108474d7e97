//! Why a request about documents is refused.

use std::borrow::Cow;

use groupware_proto_http::FieldError;
use groupware_store::{ReadError, StoreError};

/// Why a request could not be decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The request can't be carried out as asked; nothing was changed.
    #[error("{message}")]
    Refused {
        /// The HTTP status of the answer.
        status: u16,
        /// A sentence for the person who reads the answer.
        message: Cow<'static, str>,
    },
    /// A record that the decision asked for could not be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

impl From<StoreError> for DocumentError {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error.into())
    }
}

impl From<FieldError> for DocumentError {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::Malformed(message) => Self::refused(400, message),
            FieldError::TooLarge(message) => Self::refused(413, message),
        }
    }
}

impl DocumentError {
    /// A refusal with its status and sentence.
    pub fn refused(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused {
            status,
            message: message.into(),
        }
    }

    /// A 400.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::refused(400, message)
    }

    /// A 403.
    pub(crate) fn forbidden(message: &'static str) -> Self {
        Self::refused(403, message)
    }

    /// A 404.
    pub(crate) fn not_found(message: &'static str) -> Self {
        Self::refused(404, message)
    }

    pub(crate) fn corrupt(key: &[u8], cause: impl std::fmt::Display) -> Self {
        ReadError::corrupt(key, cause).into()
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Refused { status, .. } => *status,
            Self::Unreadable(_) => 500,
        }
    }

    /// What the answer says. An internal failure names no key and no path.
    pub fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Refused { message, .. } => message.clone(),
            Self::Unreadable(_) => "Error reading the documents.".into(),
        }
    }
}
