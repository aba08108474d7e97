//! Why a calendar request is refused, and the numbers by which Domino says so.

use std::borrow::Cow;

use groupware_recurrence::UnknownZone;
use groupware_store::{ReadError, StoreError};
use groupware_text::shortened;

/// Domino counts its calendar errors from here: `cserror` = base + n.
const CSERROR_BASE: u16 = 1024;

/// Why a request could not be decided.
#[derive(Debug, thiserror::Error)]
pub enum CalendarError {
    /// The request can't be carried out as asked; nothing was changed.
    #[error("{message}")]
    Refused {
        /// What kind of refusal, which fixes status and `cserror`.
        reason: Reason,
        /// A sentence for the person who reads the answer.
        message: Cow<'static, str>,
    },
    /// A record that the decision asked for could not be read.
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

/// The kinds of refusal, after Domino's table of calendar errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A parameter or the body is not valid (400, no `cserror`).
    BadRequest,
    /// The resource is not there in this context (404, no `cserror`).
    NoResource,
    /// A body of a kind this resource does not take (415).
    UnsupportedMediaType,
    /// An identifier that can't be one (400, n = 1).
    BadIdentifier,
    /// A newer version of the entry exists (409, n = 3).
    NewerVersion,
    /// The action exists but not here (400, n = 4).
    ActionNotSupported,
    /// The entry is an invitation that is not accepted yet (400, n = 5).
    InviteNotAccepted,
    /// No entry or notice with this identifier (404, n = 7).
    NotFound,
    /// An entry with this identifier exists already (409, n = 8).
    EntryExists,
    /// The action makes no sense on this entry (400, n = 9).
    BadAction,
    /// The iCalendar text can't be used (400, n = 10).
    InvalidICalendar,
    /// The event was brought from elsewhere and is kept as it came (403, no `cserror`).
    KeptAsItCame,
    /// The entry is another version than the request asks for (412, no `cserror`).
    Changed,
    /// A user's share of the disk is used up (507, no `cserror`).
    OverQuota,
    /// The disk has no room for more (507, no `cserror`).
    DiskFull,
    /// The sender has sent too much for now (429, no `cserror`).
    TooOften,
}

impl Reason {
    /// The HTTP status of the answer.
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest
            | Self::BadIdentifier
            | Self::ActionNotSupported
            | Self::InviteNotAccepted
            | Self::BadAction
            | Self::InvalidICalendar => 400,
            Self::KeptAsItCame => 403,
            Self::NoResource | Self::NotFound => 404,
            Self::NewerVersion | Self::EntryExists => 409,
            Self::Changed => 412,
            Self::UnsupportedMediaType => 415,
            Self::TooOften => 429,
            Self::OverQuota | Self::DiskFull => 507,
        }
    }

    /// Domino's `cserror`, for the refusals that have one.
    pub fn cserror(self) -> Option<u16> {
        let n = match self {
            Self::BadRequest
            | Self::NoResource
            | Self::UnsupportedMediaType
            | Self::KeptAsItCame
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

    /// A 400 for a parameter or body that is not valid.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::refused(Reason::BadRequest, message)
    }

    /// A 404 for an identifier that names nothing in this mailbox.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        Self::refused(
            Reason::NotFound,
            format!("{what} not found: {}", shortened(id)),
        )
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Refused { reason, .. } => reason.status(),
            Self::Unreadable(_) => 500,
        }
    }

    /// Domino's `cserror`; every failure of the store is its "internal" one.
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
