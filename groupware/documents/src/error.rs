//! Why a request about documents is refused.

use std::borrow::Cow;

use groupware_store::StoreError;

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
    /// The store failed while the decision read from it.
    #[error("reading the documents failed")]
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

    pub(crate) fn corrupt(key: &[u8], cause: impl ToString) -> Self {
        Self::Corrupt {
            key: String::from_utf8_lossy(key).into_owned(),
            cause: cause.to_string(),
        }
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Refused { status, .. } => *status,
            Self::Store(_) | Self::Corrupt { .. } => 500,
        }
    }

    /// What the answer says. An internal failure names no key and no path.
    pub fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Refused { message, .. } => message.clone(),
            Self::Store(_) | Self::Corrupt { .. } => "Error reading the documents.".into(),
        }
    }
}
