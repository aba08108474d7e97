//! Why a request about documents is refused.

use std::borrow::Cow;

use groupware_store::{ReadError, StoreError};

/// Why a request could not be decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The request can't be carried out as asked; nothing was changed.
    #[error("{message}")]
    Refused {
        /// Of which kind it is.
        reason: Reason,
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

/// Why something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A parameter or the body is not valid.
    BadRequest,
    /// The user may not do this.
    Forbidden,
    /// There is no such database, document, attachment, or upload.
    NotFound,
    /// What is there does not allow it.
    Conflict,
    /// The document was changed since the user saw it.
    Changed,
    /// It is larger than it may be.
    TooLarge,
    /// The user has sent too much for now.
    TooOften,
    /// The content has to be sent again.
    Again,
    /// The user has no room left, or has as many as there may be.
    OverQuota,
    /// The disk has no room for more.
    DiskFull,
}

impl Reason {
    /// The HTTP status of the answer.
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

    /// Of which kind a refusal is.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { reason, .. } => Some(*reason),
            Self::Unreadable(_) => None,
        }
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        self.reason().map_or(500, Reason::status)
    }

    /// What the answer says. An internal failure names no key and no path.
    pub fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Refused { message, .. } => message.clone(),
            Self::Unreadable(_) => "Error reading the documents.".into(),
        }
    }
}
