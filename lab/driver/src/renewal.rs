//! The tokens of users: obtained in the setup, and renewed in the session before a request that needs one. It knows
//! no protocol: token requests are requests of the workload.

use std::rc::Rc;

use lab_client::time::Nanos;
use lab_client::{ErrorClass, Exchange, FailedRequest, RequestId};
use lab_workload::{TokenState, UserScope};

use crate::client::Client;
use crate::tokens::{ScriptTokens, SharedToken};
use crate::user::{Due, Ended, Life, Sending, Shared, User};

/// Whether a request that needs a token can be sent.
pub(crate) enum Authorized {
    /// The request is due then, after it waited this long for another user to renew the token.
    Due(Due, Nanos),
    /// The request is not sent for lack of a token. True if a token request was sent.
    Without(bool),
}

/// The request or requests that need a token.
#[derive(Clone, Copy, Default)]
pub(crate) struct Need<'a> {
    /// The step whose request starts with the renewal; `None` for a probe, which is no part of the session, and for a
    /// retry, whose request is already in progress.
    pub(crate) step: Option<usize>,
    /// The token that the user's parallel requests share.
    pub(crate) parallel_token: Option<&'a SharedToken>,
}

/// Whether the server refused the grant of a token request; after any other failure, the same grant may succeed later.
fn is_refusal(failure: &FailedRequest) -> bool {
    match failure.status {
        // Both mean that the server is busy, not that it refuses the grant.
        Some(408 | 429) | None => false,
        Some(status) => (400..500).contains(&status),
    }
}

impl<C: Client> Shared<C> {
    /// The token that the user shares with other users, or that its parallel requests share.
    fn shared_token<'a>(
        &'a self,
        tokens: &ScriptTokens,
        beside: Option<&'a SharedToken>,
    ) -> Option<&'a SharedToken> {
        match tokens.tokens.is_shared() {
            true => Some(&self.token),
            false => beside,
        }
    }

    /// The token that requests of one user at the same time share, unless all users of the worker share one.
    pub(crate) fn parallel_token(&self, step: usize, scope: &UserScope) -> Option<Rc<SharedToken>> {
        self.script.session[step].retry?;
        let tokens = self.script.tokens.as_ref();
        let tokens = tokens.filter(|one| !one.tokens.is_shared())?;
        let shared = SharedToken::default();
        *shared.held.borrow_mut() = Some(tokens.tokens.held(scope));
        Some(Rc::new(shared))
    }

    /// The state of the user's token now; the user first takes over the newest shared token, if any.
    fn token_state(
        &self,
        tokens: &ScriptTokens,
        scope: &mut UserScope,
        shared: Option<&SharedToken>,
    ) -> TokenState {
        if let Some(shared) = shared
            && let Some(held) = &*shared.held.borrow()
        {
            tokens.tokens.share(scope, held);
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

    /// Sends a request of the setup, or the token request that must precede it; true for the latter.
    pub(crate) async fn send_in_setup(
        &self,
        user: &mut User<C>,
        request: RequestId,
        is_authorized: bool,
    ) -> (Exchange, bool) {
        let Some(tokens) = self.script.tokens.as_deref() else {
            return (self.send(user, request, false).await, false);
        };
        let shared = self.shared_token(tokens, None);
        if !is_authorized && tokens.is_shown(request) {
            let mut state = self.token_state(tokens, &mut user.scope, shared);
            if state == TokenState::Missing
                && let Some(shared) = shared.filter(|shared| shared.is_renewed.get())
            {
                shared.renewed.notified().await;
                state = self.token_state(tokens, &mut user.scope, Some(shared));
                if state == TokenState::Missing {
                    return (Exchange::Skipped, false);
                }
            }
            let is_renewed = shared.is_some_and(|shared| shared.is_renewed.get());
            if state != TokenState::Valid && !is_renewed {
                return (self.send_for_token(tokens, user, shared).await, true);
            }
        }
        let exchange = self.send_and_take(tokens, (user, request), shared);
        (exchange.await, false)
    }

    /// Sends the user's next token request. Meanwhile, users that share the token and have no valid one wait.
    async fn send_for_token(
        &self,
        tokens: &ScriptTokens,
        user: &mut User<C>,
        shared: Option<&SharedToken>,
    ) -> Exchange {
        shared.inspect(|shared| shared.is_renewed.set(true));
        let request = Self::token_request(tokens, &user.scope);
        let exchange = self.send_and_take(tokens, (user, request), shared).await;
        if let Some(shared) = shared {
            shared.is_renewed.set(false);
            shared.renewed.notify_waiters();
        }
        exchange
    }

    /// Sends a request, and stores the token of a token response. Such a response without a token is a failure.
    async fn send_and_take(
        &self,
        tokens: &ScriptTokens,
        (user, request): (&mut User<C>, RequestId),
        shared: Option<&SharedToken>,
    ) -> Exchange {
        if !tokens.asks(request) {
            return self.send(user, request, false).await;
        }
        let before = tokens.tokens.held(&user.scope);
        // The user's own connection is kept for the requests that follow.
        let beside = tokens
            .is_elsewhere
            .then(|| self.client.sibling(&user.session));
        let own = beside.map(|beside| std::mem::replace(&mut user.session, beside));
        let mut exchange = self.send(user, request, false).await;
        own.into_iter().for_each(|own| user.session = own);
        let scope = &mut user.scope;
        let Exchange::Done { sent, result, .. } = &mut exchange else {
            return exchange;
        };
        if result.is_ok()
            && let Err(why) = tokens.tokens.take(scope, *sent)
        {
            *result = Err(FailedRequest::new(ErrorClass::Check, why));
        }
        if let Err(failure) = result {
            // The old token is valid until it expires.
            tokens.tokens.hold(scope, &before);
            if request == tokens.refresh && is_refusal(failure) {
                // The next token request uses the original grant.
                let mut held = shared.map(|shared| shared.held.borrow_mut());
                let held = held.as_deref_mut().and_then(Option::as_mut);
                tokens.tokens.forget_refresh(scope, held);
            }
        } else if let Some(shared) = shared {
            *shared.held.borrow_mut() = Some(tokens.tokens.held(scope));
        }
        exchange
    }

    /// Forgets the user's own token: a new visitor has none.
    pub(crate) fn forget_token(&self, scope: &mut UserScope) {
        let tokens = self.script.tokens.iter();
        tokens.for_each(|tokens| tokens.tokens.forget(scope));
    }

    /// Updates the user's token from one of its parallel requests.
    pub(crate) fn join_token(&self, scope: &mut UserScope, branch: &UserScope) {
        let tokens = self.script.tokens.iter();
        tokens.for_each(|tokens| tokens.tokens.join(scope, branch));
    }

    /// Returns true if one of these requests sends a token and the user's own is not valid.
    pub(crate) fn lacks_token(
        &self,
        scope: &mut UserScope,
        mut requests: std::ops::Range<RequestId>,
        beside: Option<&SharedToken>,
    ) -> bool {
        let Some(tokens) = self.script.tokens.as_deref() else {
            return false;
        };
        requests.any(|request| tokens.is_shown(request))
            && self.token_state(tokens, scope, self.shared_token(tokens, beside))
                != TokenState::Valid
    }

    /// Makes sure that the user has a valid token for a request that is due at `due`.
    pub(crate) async fn authorize(
        &self,
        life: &mut Life<C>,
        due: Due,
        need: Need<'_>,
    ) -> Authorized {
        let Some(tokens) = self.script.tokens.as_deref() else {
            return Authorized::Due(due, 0);
        };
        let shared = self.shared_token(tokens, need.parallel_token);
        let state = self.token_state(tokens, &mut life.user.scope, shared);
        let renewed = shared.filter(|shared| shared.is_renewed.get());
        match (state, renewed) {
            (TokenState::Valid, _) | (TokenState::Due, Some(_)) => Authorized::Due(due, 0),
            (TokenState::Missing, Some(renewed)) => {
                self.await_token((tokens, renewed), life, (due, need)).await
            }
            (TokenState::Due | TokenState::Missing, None) => {
                self.renew((tokens, shared), life, (due, need)).await
            }
        }
    }

    /// Waits until another user or request has renewed the token.
    async fn await_token(
        &self,
        (tokens, shared): (&ScriptTokens, &SharedToken),
        life: &mut Life<C>,
        (due, need): (Due, Need<'_>),
    ) -> Authorized {
        self.within_trial(due.meant).await;
        if let Some(step) = need.step {
            self.begins_at(life, step, due.planned.unwrap_or(due.meant));
        }
        shared.renewed.notified().await;
        let now = self.clock.nanos();
        let state = self.token_state(tokens, &mut life.user.scope, Some(shared));
        if state == TokenState::Missing || now >= life.state.until {
            life.state.at = now;
            life.state.moved = true;
            return Authorized::Without(false);
        }
        let waited = now.saturating_sub(due.meant);
        Authorized::Due(Due { meant: now, ..due }, waited)
    }

    async fn renew(
        &self,
        (tokens, shared): (&ScriptTokens, Option<&SharedToken>),
        life: &mut Life<C>,
        (due, need): (Due, Need<'_>),
    ) -> Authorized {
        self.within_trial(due.meant).await;
        let ended = self
            .ask_for_token((tokens, shared), life, (due, need))
            .await;
        let state = self.token_state(tokens, &mut life.user.scope, shared);
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
        (tokens, shared): (&ScriptTokens, Option<&SharedToken>),
        life: &mut Life<C>,
        (due, need): (Due, Need<'_>),
    ) -> Ended {
        let mut sending = Sending::new(tokens.step, due, 0);
        if need.step.is_some() {
            self.begins_at(life, tokens.step, sending.meant());
        }
        let exchange = self.send_for_token(tokens, &mut life.user, shared).await;
        let ended = self.record((exchange, Vec::new()), &mut sending, due);
        life.state.take(&ended, due, self.failure_pause);
        if need.step.is_some() {
            self.requested(life, &sending, &ended);
        }
        ended
    }
}
