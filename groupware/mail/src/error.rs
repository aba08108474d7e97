//! Why a mail request is refused.

use std::borrow::Cow;

use groupware_store::StoreError;

/// Why a request could not be decided.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The request can't be carried out as asked; nothing was changed.
    #[error("{message}")]
    Refused {
        /// What kind of refusal.
        reason: Reason,
        /// A sentence for the person who reads the answer.
        message: Cow<'static, str>,
    },
    /// The store failed while the decision read from it.
    #[error("reading the mailbox failed")]
    Store(#[from] StoreError),
    /// A stored record can't be understood: written by a newer version, or damaged.
    #[error("record {key} can't be read: {cause}")]
    Corrupt {
        /// Key of the record, for the administrator.
        key: String,
        /// What the decoder said.
        cause: String,
    },
}

/// The kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A parameter or the body is not valid.
    BadRequest,
    /// A recipient is no local user.
    UnknownRecipient,
    /// The message names another sender than the one who is signed in.
    ForeignSender,
    /// There is no such message, folder, or attachment.
    NotFound,
    /// The state of the message or folder does not allow it.
    Conflict,
    /// The message is larger than a message may be.
    TooLarge,
    /// A body of a kind that is not taken.
    UnsupportedMediaType,
    /// A mailbox has no room left.
    OverQuota,
}

impl Reason {
    /// The HTTP status of the answer.
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest | Self::UnknownRecipient => 400,
            Self::ForeignSender => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::OverQuota => 507,
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

    /// An identifier that names nothing in this mailbox.
    pub fn not_found(what: &str, id: &str) -> Self {
        Self::refused(
            Reason::NotFound,
            format!("{what} not found: {}.", shortened(id)),
        )
    }

    pub(crate) fn corrupt(key: &[u8], cause: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            key: String::from_utf8_lossy(key).into_owned(),
            cause: cause.to_string(),
        }
    }

    /// The kind of refusal, if it is one.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { reason, .. } => Some(*reason),
            Self::Store(_) | Self::Corrupt { .. } => None,
        }
    }
}

/// At most 80 characters of what a client sent, so that an error is never longer than its cause.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    const LIMIT: usize = 80;
    match text.char_indices().nth(LIMIT) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_identifiers_are_cut_at_a_character() {
        assert_eq!(shortened(&"é".repeat(100)).chars().count(), 81);
        assert_eq!(shortened("short"), "short");
    }
}
