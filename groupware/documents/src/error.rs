//! Reasons for rejecting a request about documents.

use std::borrow::Cow;

use groupware_store::{ReadError, StoreError};

/// An error of a decision.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The request can't be carried out as asked; nothing was changed.
    #[error("{message}")]
    Refused {
        /// The kind of refusal.
        reason: Reason,
        /// A sentence for the user.
        message: Cow<'static, str>,
    },
    /// A record that the decision needed could not be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

impl From<StoreError> for DocumentError {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error.into())
    }
}

/// The kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A parameter or the body is not valid.
    BadRequest,
    /// The user may not do this.
    Forbidden,
    /// There is no such database, document, attachment, or upload.
    NotFound,
    /// The current state does not allow it.
    Conflict,
    /// The document was changed since the client read it.
    Changed,
    /// It exceeds the maximum size.
    TooLarge,
    /// The user has sent too much for now.
    TooOften,
    /// The content must be sent again.
    Again,
    /// The user's quota is exhausted, or a maximum number is reached.
    OverQuota,
    /// The disk has no room for more.
    DiskFull,
}

impl Reason {
    /// The HTTP status of the response.
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Changed => 412,
            Self::TooLarge => 413,
            Self::TooOften => 429,
            Self::Again => 503,
            Self::OverQuota | Self::DiskFull => 507,
        }
    }
}

impl DocumentError {
    /// A refusal with its sentence.
    pub fn refused(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused {
            reason,
            message: message.into(),
        }
    }

    /// [`Reason::BadRequest`].
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::refused(Reason::BadRequest, message)
    }

    /// [`Reason::Forbidden`].
    pub(crate) fn forbidden(message: &'static str) -> Self {
        Self::refused(Reason::Forbidden, message)
    }

    /// [`Reason::NotFound`].
    pub(crate) fn not_found(message: &'static str) -> Self {
        Self::refused(Reason::NotFound, message)
    }

    pub(crate) fn corrupt(key: &[u8], cause: impl std::fmt::Display) -> Self {
        ReadError::corrupt(key, cause).into()
    }

    /// The kind of refusal, if the error is one.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { reason, .. } => Some(*reason),
            Self::Unreadable(_) => None,
        }
    }

    /// The HTTP status of the response.
    pub fn status(&self) -> u16 {
        self.reason().map_or(500, Reason::status)
    }

    /// The message in the response. An internal failure names no key and no path.
    pub fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Refused { message, .. } => message.clone(),
            Self::Unreadable(_) => "Error reading the documents.".into(),
        }
    }
}
