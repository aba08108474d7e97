//! Tokens that users show: obtained in the setup, and renewed in the session before a request that needs one. It knows
//! no protocol: a token request is one of the workload's.

use std::rc::Rc;

use lab_client::time::Nanos;
use lab_client::{ErrorClass, Exchange, FailedRequest, RequestId};
use lab_workload::{TokenState, UserScope};

use crate::client::Client;
use crate::tokens::ScriptTokens;
use crate::user::{Due, Ended, Life, Sending, Shared, User};

/// How a request goes on that needs a token.
pub(crate) enum Authorized {
    /// It is due then, after it waited so long for somebody else to renew the token.
    Due(Due, Nanos),
    /// It is not sent: there is no token. True if one was asked for.
    Without(bool),
}

impl<C: Client> Shared<C> {
    /// What the user's token is good for now, of those that users share after it has taken over the newest.
    fn token_state(&self, tokens: &ScriptTokens, scope: &mut UserScope) -> TokenState {
        if tokens.tokens.is_shared()
            && let Some(held) = &*self.token.held.borrow()
            // Its own was refused: another one is of use if it is another one.
            && tokens.tokens.held(scope) != *held
            && !tokens.tokens.is_refused(scope, held)
        {
            tokens.tokens.hold(scope, held);
        }
        tokens.tokens.state(scope, self.clock.nanos())
    }

    /// The request that obtains the user's next token.
    fn token_request(tokens: &ScriptTokens, scope: &UserScope) -> RequestId {
        match tokens.tokens.has_refresh(scope) {
            true => tokens.refresh,
            false => tokens.obtain,
        }
    }

    /// The request that must go before this one of the setup, if one must.
    pub(crate) fn token_before(&self, request: RequestId, user: &mut User<C>) -> Option<RequestId> {
        let tokens = self.script.tokens.as_ref()?;
        if !tokens.is_shown(request) {
            return None;
        }
        let state = self.token_state(tokens, &mut user.scope);
        (state != TokenState::Valid).then(|| Self::token_request(tokens, &user.scope))
    }

    /// Takes the token of an answer; one that gives none fails.
    pub(crate) fn take_token(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        exchange: &mut Exchange,
    ) {
        let Some(tokens) = self.script.tokens.as_ref() else {
            return;
        };
        if !tokens.asks(request) {
            return;
        }
        if let Exchange::Done {
            sent,
            result: result @ Ok(()),
            ..
        } = exchange
            && let Err(why) = tokens.tokens.take(scope, *sent)
        {
            let (class, detail) = (ErrorClass::Check, why.into());
            *result = Err(FailedRequest {
                class,
                detail,
                retry_after: None,
            });
        }
        let is_taken = exchange.failure().is_none();
        if is_taken && tokens.tokens.is_shared() {
            *self.token.held.borrow_mut() = Some(tokens.tokens.held(scope));
        } else if !is_taken && request == tokens.refresh {
            // Where a refresh token isn't taken any more, the user starts anew.
            tokens.tokens.forget_refresh(scope);
        }
    }

    /// Forgets the user's own token, as somebody new has none.
    pub(crate) fn forget_token(&self, scope: &mut UserScope) {
        let tokens = self.script.tokens.iter();
        tokens.for_each(|tokens| tokens.tokens.forget(scope));
    }

    /// Has the user take over what became of its token in one of several requests at the same time.
    pub(crate) fn join_token(&self, scope: &mut UserScope, branch: &UserScope) {
        let tokens = self.script.tokens.iter();
        tokens.for_each(|tokens| tokens.tokens.join(scope, branch));
    }

    /// Whether any of these requests shows a token.
    pub(crate) fn shows_token(&self, mut requests: std::ops::Range<RequestId>) -> bool {
        let tokens = self.script.tokens.as_ref();
        tokens.is_some_and(|tokens| requests.any(|request| tokens.is_shown(request)))
    }

    /// Has the user hold a token that is valid, for a request that is due then; a probe is under way beside its session.
    pub(crate) async fn authorize(
        &self,
        life: &mut Life<C>,
        due: Due,
        is_probe: bool,
    ) -> Authorized {
        let Some(tokens) = self.script.tokens.as_ref() else {
            return Authorized::Due(due, 0);
        };
        let state = self.token_state(tokens, &mut life.user.scope);
        let is_renewed = tokens.tokens.is_shared() && self.token.is_renewed.get();
        match state {
            TokenState::Valid => Authorized::Due(due, 0),
            TokenState::Due if is_renewed => Authorized::Due(due, 0),
            TokenState::Missing if is_renewed => self.await_token(tokens, life, due).await,
            TokenState::Due | TokenState::Missing => {
                self.renew(tokens, life, (due, is_probe)).await
            }
        }
    }

    /// Waits until another user has renewed the token.
    async fn await_token(&self, tokens: &ScriptTokens, life: &mut Life<C>, due: Due) -> Authorized {
        let renewed = Rc::clone(&self.token.renewed);
        renewed.notified().await;
        let now = self.clock.nanos();
        match self.token_state(tokens, &mut life.user.scope) {
            TokenState::Missing => {
                life.state.at = now;
                life.state.moved = true;
                Authorized::Without(false)
            }
            TokenState::Valid | TokenState::Due => {
                let waited = now.saturating_sub(due.meant);
                let due = Due { meant: now, ..due };
                Authorized::Due(due, waited)
            }
        }
    }

    async fn renew(
        &self,
        tokens: &ScriptTokens,
        life: &mut Life<C>,
        (due, is_probe): (Due, bool),
    ) -> Authorized {
        self.token.is_renewed.set(true);
        let ended = self.ask_for_token(tokens, life, (due, is_probe)).await;
        self.token.is_renewed.set(false);
        self.token.renewed.notify_waiters();
        let state = self.token_state(tokens, &mut life.user.scope);
        let was_sent = ended.at.is_some();
        if state == TokenState::Missing || life.state.leaves() {
            return Authorized::Without(was_sent);
        }
        let planned = due.planned.filter(|_| !was_sent);
        let meant = due.meant.max(life.state.at);
        Authorized::Due(Due { planned, meant }, 0)
    }

    /// Sends a token request, which counts as its step.
    async fn ask_for_token(
        &self,
        tokens: &ScriptTokens,
        life: &mut Life<C>,
        (due, is_probe): (Due, bool),
    ) -> Ended {
        let mut sending = Sending::new(tokens.step, due, 0);
        self.within_trial(due.meant).await;
        if !is_probe {
            self.set_under_way(life.user.place, tokens.step, sending.meant());
            self.transactions.due(life.user.place, sending.meant());
        }
        let request = Self::token_request(tokens, &life.user.scope);
        let mut exchange = self.send(&mut life.user, request, false).await;
        self.take_token(request, &mut life.user.scope, &mut exchange);
        let ended = self.record((exchange, Vec::new()), &mut sending, due);
        life.state.take(&ended, due, self.failure_pause);
        if !is_probe {
            self.requested(life, &sending, &ended);
        }
        ended
    }
}
