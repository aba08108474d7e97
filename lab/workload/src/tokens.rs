//! The OAuth 2 tokens (RFC 6749) of a user, in variables of the user. It knows no clock: the caller passes the
//! time.

use std::time::Duration;

use lab_filters::auth::{Per, moments};
use serde::{Deserialize, Serialize};

use crate::scope::UserScope;
use crate::slot::Slot;

/// The name of the step that counts token requests.
pub const TOKEN_STEP: &str = "auth: Token";

/// The variables of a user's token, in this order: the token, its type, its lifetime in seconds, and the refresh token
/// as captured from an answer; then the refresh token in use, and the times of the token's renewal, expiry, and
/// request.
pub const TOKEN_VARIABLES: [&str; 6] = [
    "auth_token",
    "auth_token_type",
    "auth_expires_in",
    "auth_new_refresh_token",
    "auth_refresh_token",
    "auth_moments",
];

/// How users obtain their tokens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tokens<R> {
    /// The request for the first token.
    pub obtain: R,
    /// The request for a further token, by a refresh token.
    pub refresh: R,
    /// The owner of a token.
    pub per: Per,
    /// The time between renewal and expiry.
    pub renew: Duration,
    /// True if refresh tokens of responses are used (RFC 6749, section 4.4.3: not for `client_credentials`).
    pub refreshes: bool,
    /// The slot of the first variable.
    pub first: Slot,
}

/// The state of a user's token at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// Requests may send it.
    Valid,
    /// Requests may send it, and a renewal is due.
    Due,
    /// There is none, or it has expired.
    Missing,
}

/// A token that users share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldToken([Option<String>; 3]);

impl HeldToken {
    /// The send time of its request (ns).
    fn asked(&self) -> Option<u64> {
        let moments = self.0[2].as_ref()?;
        moments.rsplit(' ').next()?.parse().ok()
    }
}

/// The places of a [`HeldToken`]'s values among the variables.
const HELD: [Slot; 3] = [0, 4, 5];

impl<R> Tokens<R> {
    fn slot(&self, place: Slot) -> Slot {
        self.first + place
    }

    /// Returns true if users share tokens.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.per == Per::Worker
    }

    /// The state of the user's token at `now` (ns).
    #[must_use]
    pub fn state(&self, scope: &UserScope, now: u64) -> TokenState {
        let moments = scope.text(self.slot(5)).unwrap_or_default();
        let mut moments = moments.split(' ').map(str::parse::<u64>);
        let (Some(Ok(renews)), Some(Ok(expires))) = (moments.next(), moments.next()) else {
            return TokenState::Missing;
        };
        match () {
            () if now >= expires || scope.count(self.slot(0)) == 0 => TokenState::Missing,
            () if now >= renews => TokenState::Due,
            () => TokenState::Valid,
        }
    }

    /// Accepts the token of a response in the user's variables; its request was sent at `sent` (ns).
    ///
    /// # Errors
    /// The reason why the response has no valid token.
    pub fn take(&self, scope: &mut UserScope, sent: u64) -> Result<(), String> {
        let [token, kind, lives] = [0, 1, 2].map(|place| scope.text(self.slot(place)));
        let answer = (token.as_deref(), kind.as_deref(), lives.as_deref());
        let taken = moments(answer, self.renew, sent);
        let (renews, expires) = taken.inspect_err(|_| self.forget(scope))?;
        scope.set_text(self.slot(5), &format!("{renews} {expires} {sent}"));
        if let Some(refresh) = scope.text(self.slot(3)).filter(|_| self.refreshes) {
            scope.set_text(self.slot(4), &refresh);
        }
        Ok(())
    }

    /// Returns true if the user's next token request uses a refresh token.
    #[must_use]
    pub fn has_refresh(&self, scope: &UserScope) -> bool {
        scope.count(self.slot(4)) > 0
    }

    /// Forgets the refresh token, which the server refused, also in the shared token.
    pub fn forget_refresh(&self, scope: &mut UserScope, shared: Option<&mut HeldToken>) {
        let refused = scope.text(self.slot(4));
        scope.clear(self.slot(4));
        if let Some(held) = shared
            && held.0[1] == refused
        {
            held.0[1] = None;
        }
    }

    /// Forgets the user's token and refresh token.
    pub fn forget(&self, scope: &mut UserScope) {
        (0..TOKEN_VARIABLES.len() as Slot).for_each(|place| scope.clear(self.slot(place)));
    }

    /// Maps each request.
    pub(crate) fn try_map<S, E>(
        &self,
        map: &mut impl FnMut(&R) -> Result<S, E>,
    ) -> Result<Tokens<S>, E> {
        Ok(Tokens {
            obtain: map(&self.obtain)?,
            refresh: map(&self.refresh)?,
            per: self.per,
            renew: self.renew,
            refreshes: self.refreshes,
            first: self.first,
        })
    }

    /// The part of a user's token that others may share.
    #[must_use]
    pub fn held(&self, scope: &UserScope) -> HeldToken {
        HeldToken(HELD.map(|place| scope.text(self.slot(place))))
    }

    /// Returns true if this is the user's token, and the server has refused it.
    fn is_refused(&self, scope: &UserScope, held: &HeldToken) -> bool {
        if scope.count(self.slot(0)) > 0 {
            return false;
        }
        let moments = scope.text(self.slot(5));
        moments.is_some() && moments == held.0[2]
    }

    /// Copies the shared token to the user; if the server has refused it, only its refresh token.
    pub fn share(&self, scope: &mut UserScope, held: &HeldToken) {
        let is_refused = self.is_refused(scope, held);
        if self.held(scope) != *held {
            self.hold(scope, held);
        }
        if is_refused {
            scope.clear(self.slot(0));
        }
    }

    /// Updates the user's token from one of its parallel requests: after a refusal of the token or its refresh
    /// token, or after a renewal.
    pub fn join(&self, scope: &mut UserScope, branch: &UserScope) {
        let (own, its) = (self.held(scope), self.held(branch));
        if its.asked() > own.asked() {
            if its.0[0].is_some() {
                self.hold(scope, &its);
            }
            return;
        }
        if self.is_refused(branch, &own) {
            scope.clear(self.slot(0));
        }
        if its.0[1].is_none() && its.0[2] == own.0[2] {
            scope.clear(self.slot(4));
        }
    }

    /// Makes this the user's token.
    pub fn hold(&self, scope: &mut UserScope, held: &HeldToken) {
        for (place, text) in HELD.into_iter().zip(&held.0) {
            match text {
                Some(text) => scope.set_text(self.slot(place), text),
                None => scope.clear(self.slot(place)),
            }
        }
    }
}
