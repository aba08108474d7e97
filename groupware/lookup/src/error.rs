//! Why a lookup request is refused, with the status of the simple lookup service and the event
//! type of the XML protocol.

use std::borrow::Cow;

use groupware_store::StoreError;

/// Why a request could not be decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The request can't be carried out as asked; nothing was changed.
    #[error("{message}")]
    Refused {
        /// What kind of refusal.
        reason: Reason,
        /// A sentence for the person who reads the answer.
        message: Cow<'static, str>,
    },
    /// The store failed while the decision read from it.
    #[error("reading the registrations failed")]
    Store(#[from] StoreError),
    /// A stored registration can't be understood.
    #[error("a stored registration can't be read")]
    Corrupt,
}

/// The kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request can't be understood (400).
    BadRequest,
    /// The same record is registered already (403).
    Duplicate,
    /// The lease can't be granted: its form is wrong, or the record expired too long ago (403).
    Lease,
    /// The registration is somebody else's (403).
    Foreign,
    /// No such registration, or no such key in it (404).
    NotFound,
    /// The record or its answer is larger than what is taken or given (413).
    TooLarge,
    /// The query would have to look at too much (503).
    TooWide,
    /// No more registrations are taken (507).
    Full,
}

impl LookupError {
    /// A refusal.
    pub fn refused(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused {
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn bad(message: impl Into<Cow<'static, str>>) -> Self {
        Self::refused(Reason::BadRequest, message)
    }

    pub(crate) fn not_found() -> Self {
        Self::refused(Reason::NotFound, "Record does not exist.")
    }

    pub(crate) fn too_wide() -> Self {
        let message = "The query is too wide: it would have to look at too many records. \
                       Name an address, a host, or a locator.";
        Self::refused(Reason::TooWide, message)
    }

    /// The kind of refusal; `None` for a fault of ours.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { reason, .. } => Some(*reason),
            Self::Store(_) | Self::Corrupt => None,
        }
    }

    /// The status of the answer.
    pub fn status(&self) -> u16 {
        match self.reason() {
            Some(Reason::BadRequest) => 400,
            Some(Reason::Duplicate | Reason::Lease | Reason::Foreign) => 403,
            Some(Reason::NotFound) => 404,
            Some(Reason::TooLarge) => 413,
            Some(Reason::TooWide) => 503,
            Some(Reason::Full) => 507,
            None => 500,
        }
    }
}
