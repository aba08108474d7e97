//! The visitor of a page.

use axum::extract::FromRequestParts;
use groupware_http::{caller_of, session};
use groupware_service::User;
use http::Method;
use http::request::Parts;
use jiff::civil::Date;

use crate::error::PageError;
use crate::front::Pages;
use crate::notice::Notice;
use crate::zone::Zone;
use crate::{forgery, return_path};

/// A user with a session. Passwords in a header are for programs: no page accepts them.
#[derive(Clone)]
pub(crate) struct SignedIn {
    pub(crate) owner: User,
    /// Whether the user may manage users.
    pub(crate) is_admin: bool,
    /// The token of the user's forms.
    pub(crate) proof: String,
    pub(crate) zone: Zone,
    /// Now, and today in the user's zone.
    pub(crate) now: i64,
    pub(crate) today: Date,
    /// The notice to show, if any.
    pub(crate) notice: Option<Notice>,
}

impl SignedIn {
    pub(crate) fn mailbox(&self) -> &str {
        self.owner.mailbox()
    }
}

impl FromRequestParts<Pages> for SignedIn {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<Self, PageError> {
        let service = &pages.service;
        let Some(account) = session(service, &parts.headers)? else {
            return Err(match parts.method == Method::GET {
                true => PageError::SignIn(return_path::return_path(&parts.uri)),
                false => PageError::SignedOut,
            });
        };
        let owner = User::of(&account, caller_of(&parts.extensions));
        let zone = Zone::chosen_by(service, owner.mailbox())
            .map_err(PageError::from)?
            .unwrap_or_else(Zone::utc);
        let now = service.now_s();
        Ok(Self {
            proof: forgery::token(&pages.form_key, &account),
            is_admin: account.credentials().admin,
            owner,
            now,
            today: zone.clock(now).date(),
            zone,
            notice: Notice::of(&parts.headers),
        })
    }
}
