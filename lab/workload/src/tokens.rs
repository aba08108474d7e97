//! What a user holds of tokens of OAuth 2 (RFC 6749), in variables of its own. It knows no clock: moments are the
//! caller's.

use std::time::Duration;

use lab_filters::auth::{Per, moments};
use serde::{Deserialize, Serialize};

use crate::scope::UserScope;
use crate::slot::Slot;

/// The step as which token requests count.
pub const TOKEN_STEP: &str = "auth: Token";

/// The variables in which a user keeps its token, one after the other: the token, its type, its lifetime in seconds, and
/// the refresh token as answers have them; then the refresh token that counts, and when the token is to be renewed,
/// expires, and was asked for.
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
    /// What the first token is asked for by.
    pub obtain: R,
    /// What further ones are asked for by, where the first answer had a refresh token.
    pub refresh: R,
    /// Who has a token.
    pub per: Per,
    /// How long before it expires a token is renewed.
    pub renew: Duration,
    /// Whether a refresh token of an answer counts (RFC 6749, section 4.4.3: not for `client_credentials`).
    pub refreshes: bool,
    /// The first of the variables.
    pub first: Slot,
}

/// What a user's token is good for at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// For requests.
    Valid,
    /// For requests, and it is to be renewed.
    Due,
    /// There is none, or it has expired.
    Missing,
}

/// A token that users share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldToken([Option<String>; 3]);

impl HeldToken {
    /// When it was asked for (ns).
    fn asked(&self) -> Option<u64> {
        let moments = self.0[2].as_ref()?;
        moments.rsplit(' ').next()?.parse().ok()
    }
}

/// Which of the variables those of a [`HeldToken`] are.
const HELD: [Slot; 3] = [0, 4, 5];

impl<R> Tokens<R> {
    fn slot(&self, place: Slot) -> Slot {
        self.first + place
    }

    /// Whether users share tokens.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.per == Per::Worker
    }

    /// What the user's token is good for at this moment.
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

    /// Takes what an answer to a request sent at this moment (ns) left in the user's variables.
    ///
    /// # Errors
    /// Why it gives no token.
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

    /// Whether the user's next token is asked for by a refresh token.
    #[must_use]
    pub fn has_refresh(&self, scope: &UserScope) -> bool {
        scope.count(self.slot(4)) > 0
    }

    /// Forgets the refresh token, which the server didn't take, also as the one that users share.
    pub fn forget_refresh(&self, scope: &mut UserScope, shared: Option<&mut HeldToken>) {
        let refused = scope.text(self.slot(4));
        scope.clear(self.slot(4));
        if let Some(held) = shared
            && held.0[1] == refused
        {
            held.0[1] = None;
        }
    }

    /// Forgets all that the user has of tokens.
    pub fn forget(&self, scope: &mut UserScope) {
        (0..TOKEN_VARIABLES.len() as Slot).for_each(|place| scope.clear(self.slot(place)));
    }

    /// The same with its requests in another form.
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

    /// What others may use of a user's token.
    #[must_use]
    pub fn held(&self, scope: &UserScope) -> HeldToken {
        HeldToken(HELD.map(|place| scope.text(self.slot(place))))
    }

    /// Returns true if this is the token of the user that the server refused.
    fn is_refused(&self, scope: &UserScope, held: &HeldToken) -> bool {
        if scope.count(self.slot(0)) > 0 {
            return false;
        }
        let moments = scope.text(self.slot(5));
        moments.is_some() && moments == held.0[2]
    }

    /// Has the user take over the token that users share, unless the server refused it: then only its refresh token.
    pub fn share(&self, scope: &mut UserScope, held: &HeldToken) {
        let is_refused = self.is_refused(scope, held);
        if self.held(scope) != *held {
            self.hold(scope, held);
        }
        if is_refused {
            scope.clear(self.slot(0));
        }
    }

    /// Has the user take over what became of its token in one of several requests at the same time: that it was refused,
    /// that its refresh token was, or that it was renewed.
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

    /// Has the user use this token.
    pub fn hold(&self, scope: &mut UserScope, held: &HeldToken) {
        for (place, text) in HELD.into_iter().zip(&held.0) {
            match text {
                Some(text) => scope.set_text(self.slot(place), text),
                None => scope.clear(self.slot(place)),
            }
        }
    }
}
