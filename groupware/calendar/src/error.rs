//! The reasons why a calendar request is refused, and Domino's error codes for them.

use std::borrow::Cow;

use groupware_recurrence::UnknownZone;
use groupware_store::{ReadError, StoreError};
use groupware_text::shortened;

/// The base of Domino's calendar errors: `cserror` = base + n.
const CSERROR_BASE: u16 = 1024;

/// The reason why a request could not be decided.
#[derive(Debug, thiserror::Error)]
pub enum CalendarError {
    /// The request is refused; nothing was changed.
    #[error("{message}")]
    Refused {
        /// The kind of refusal, which determines status and `cserror`.
        reason: Reason,
        /// A sentence for the user.
        message: Cow<'static, str>,
    },
    /// A record that the decision needed could not be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

impl From<StoreError> for CalendarError {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error.into())
    }
}

impl From<UnknownZone> for CalendarError {
    fn from(error: UnknownZone) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// The kinds of refusal, by Domino's table of calendar errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A parameter or the body is invalid (400, no `cserror`).
    BadRequest,
    /// The resource doesn't exist in this context (404, no `cserror`).
    NoResource,
    /// The resource doesn't accept this type of body (415).
    UnsupportedMediaType,
    /// An invalid identifier (400, n = 1).
    BadIdentifier,
    /// A newer version of the entry exists (409, n = 3).
    NewerVersion,
    /// The action exists but is not supported here (400, n = 4).
    ActionNotSupported,
    /// The entry is an invitation that was not accepted yet (400, n = 5).
    InviteNotAccepted,
    /// No entry or notice with this identifier (404, n = 7).
    NotFound,
    /// An entry with this identifier already exists (409, n = 8).
    EntryExists,
    /// The action is invalid for this entry (400, n = 9).
    BadAction,
    /// The iCalendar text is invalid or unsupported (400, n = 10).
    InvalidICalendar,
    /// The event was imported and is stored unchanged (403, no `cserror`).
    StoredVerbatim,
    /// The entry's version differs from the requested one (412, no `cserror`).
    Changed,
    /// The user's disk quota is used up (507, no `cserror`).
    OverQuota,
    /// The disk has no room for more (507, no `cserror`).
    DiskFull,
    /// The client has sent too many requests (429, no `cserror`).
    TooOften,
}

impl Reason {
    /// The HTTP status of the response.
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest
            | Self::BadIdentifier
            | Self::ActionNotSupported
            | Self::InviteNotAccepted
            | Self::BadAction
            | Self::InvalidICalendar => 400,
            Self::StoredVerbatim => 403,
            Self::NoResource | Self::NotFound => 404,
            Self::NewerVersion | Self::EntryExists => 409,
            Self::Changed => 412,
            Self::UnsupportedMediaType => 415,
            Self::TooOften => 429,
            Self::OverQuota | Self::DiskFull => 507,
        }
    }

    /// Domino's `cserror`, if the refusal has one.
    pub fn cserror(self) -> Option<u16> {
        let n = match self {
            Self::BadRequest
            | Self::NoResource
            | Self::UnsupportedMediaType
            | Self::StoredVerbatim
            | Self::Changed
            | Self::OverQuota
            | Self::DiskFull
            | Self::TooOften => return None,
            Self::BadIdentifier => 1,
            Self::NewerVersion => 3,
            Self::ActionNotSupported => 4,
            Self::InviteNotAccepted => 5,
            Self::NotFound => 7,
            Self::EntryExists => 8,
            Self::BadAction => 9,
            Self::InvalidICalendar => 10,
        };
        Some(CSERROR_BASE + n)
    }
}

impl CalendarError {
    /// A refusal with its sentence.
    pub fn refused(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused {
            reason,
            message: message.into(),
        }
    }

    /// A 400 for an invalid parameter or body.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::refused(Reason::BadRequest, message)
    }

    /// A 404 for an unknown identifier in this account.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        Self::refused(
            Reason::NotFound,
            format!("{what} not found: {}", shortened(id)),
        )
    }

    /// The HTTP status of the response.
    pub fn status(&self) -> u16 {
        match self {
            Self::Refused { reason, .. } => reason.status(),
            Self::Unreadable(_) => 500,
        }
    }

    /// Domino's `cserror`; every failure of the store is an "internal" error.
    pub fn cserror(&self) -> Option<u16> {
        match self {
            Self::Refused { reason, .. } => reason.cserror(),
            Self::Unreadable(_) => Some(CSERROR_BASE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_refusals_carry_no_cserror() {
        let error = CalendarError::bad_request("Action type not specified.");
        assert_eq!((error.status(), error.cserror()), (400, None));
    }
}
