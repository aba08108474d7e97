//! Who looks at a page.

use axum::extract::FromRequestParts;
use http::Method;
use http::request::Parts;
use jiff::civil::Date;

use super::failure::PageError;
use super::notice::Notice;
use super::zone::Zone;
use super::{forgery, sign_in};
use crate::sign_in::session_token;
use crate::{AppState, Owner};

/// A user who is signed in by a session. Passwords in a header are for programs: no page takes
/// them.
pub(super) struct Visitor {
    pub(super) owner: Owner,
    /// What the user's forms carry.
    pub(super) proof: String,
    pub(super) zone: Zone,
    /// Now, and the day that it is where the user is.
    pub(super) now: i64,
    pub(super) today: Date,
    /// What was just done.
    pub(super) notice: Option<Notice>,
}

impl Visitor {
    pub(super) fn mailbox(&self) -> &str {
        self.owner.mailbox()
    }
}

impl FromRequestParts<AppState> for Visitor {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, PageError> {
        let account = session_token(&parts.headers)
            .and_then(|token| state.sessions.find(token, state.clock.now()));
        let Some(account) = account else {
            return Err(match parts.method == Method::GET {
                true => PageError::SignIn(sign_in::return_path(&parts.uri)),
                false => PageError::SignedOut,
            });
        };
        let owner = Owner::of(&account);
        let zone = Zone::chosen_by(state.store(), owner.mailbox())
            .map_err(|_| PageError::Broken)?
            .unwrap_or_else(Zone::utc);
        let now = state.now_s();
        Ok(Self {
            proof: forgery::token(state, &account),
            owner,
            now,
            today: zone.clock(now).date(),
            zone,
            notice: Notice::of(&parts.headers),
        })
    }
}
