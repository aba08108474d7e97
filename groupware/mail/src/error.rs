//! Reasons for rejecting a mail request.

use std::borrow::Cow;

use groupware_proto_mime::MimeError;
use groupware_store::{ReadError, StoreError};
use groupware_text::shortened;

/// An error of a decision.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
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

impl From<StoreError> for MailError {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error.into())
    }
}

impl From<MimeError> for MailError {
    fn from(error: MimeError) -> Self {
        match error {
            MimeError::Malformed(message) => Self::bad_request(message),
            MimeError::TooLarge(message) => Self::refused(Reason::TooLarge, message),
        }
    }
}

/// The kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A parameter or the body is not valid.
    BadRequest,
    /// A recipient is no local user.
    UnknownRecipient,
    /// The message's author is not the user who is signed in.
    ForeignSender,
    /// There is no such message, folder, or attachment.
    NotFound,
    /// The state that the request refers to is no longer known.
    Gone,
    /// The state of the message or folder does not allow it.
    Conflict,
    /// The message is larger than a message may be.
    TooLarge,
    /// The body's media type is not supported.
    UnsupportedMediaType,
    /// An account has no room left.
    OverQuota,
    /// The disk has no room for more.
    DiskFull,
    /// The sender has sent too much for now.
    TooOften,
}

impl Reason {
    /// The HTTP status of the response.
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest | Self::UnknownRecipient => 400,
            Self::ForeignSender => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Gone => 410,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::TooOften => 429,
            Self::OverQuota | Self::DiskFull => 507,
        }
    }
}

impl MailError {
    /// A refusal with its sentence.
    pub fn refused(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused {
            reason,
            message: message.into(),
        }
    }

    /// A parameter or a body that is not valid.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::refused(Reason::BadRequest, message)
    }

    /// A refusal for an identifier that does not exist in this account.
    pub fn not_found(what: &str, id: &str) -> Self {
        Self::refused(
            Reason::NotFound,
            format!("{what} not found: {}.", shortened(id)),
        )
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
}
