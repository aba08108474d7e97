//! Reasons for rejecting a lookup request, with the status of the simple lookup service and the
//! event type of the XML protocol.

use std::borrow::Cow;

use groupware_store::StoreError;

/// An error of a decision.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The request can't be carried out as asked; nothing was changed.
    #[error("{message}")]
    Refused {
        /// The kind of refusal.
        reason: Reason,
        /// A sentence for the user.
        message: Cow<'static, str>,
    },
    /// The store failed during the decision's reads.
    #[error("reading the registrations failed")]
    Store(#[from] StoreError),
    /// A stored registration can't be parsed.
    #[error("a stored registration can't be read")]
    Corrupt,
}

/// The kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request can't be parsed (400).
    BadRequest,
    /// The same record is registered already (403).
    Duplicate,
    /// The lease can't be granted: its form is wrong, or the record expired too long ago (403).
    Lease,
    /// The registration belongs to another principal (403).
    Foreign,
    /// No such registration, or no such key in it (404).
    NotFound,
    /// The record or its response exceeds the maximum size (413).
    TooLarge,
    /// The query would have to read too much (503).
    TooWide,
    /// There is no room for more registrations (507).
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

    /// The kind of refusal; `None` for an internal error.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { reason, .. } => Some(*reason),
            Self::Store(_) | Self::Corrupt => None,
        }
    }

    /// The HTTP status of the response.
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
