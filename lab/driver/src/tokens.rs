//! What a script knows of tokens, and the token that users share. It knows no user.

use std::cell::{Cell, RefCell};

use lab_client::RequestId;
use lab_workload::{HeldToken, Request, Tokens, Workload};
use tokio::sync::Notify;

/// How a workload's users obtain tokens.
#[derive(Debug, Clone)]
pub(crate) struct ScriptTokens {
    pub(crate) tokens: Tokens<Request>,
    /// The place of the step as which token requests count.
    pub(crate) step: usize,
    /// What the first token is asked for by, and what further ones are by their refresh token.
    pub(crate) obtain: RequestId,
    pub(crate) refresh: RequestId,
    /// Which requests show a token.
    shown: Box<[bool]>,
}

/// The token that the users of a worker share, where they do; or the requests that one sends at the same time.
#[derive(Default)]
pub(crate) struct SharedToken {
    pub(crate) held: RefCell<Option<HeldToken>>,
    /// Whether one of them renews it.
    pub(crate) is_renewed: Cell<bool>,
    pub(crate) renewed: Notify,
}

impl ScriptTokens {
    /// Those of a workload that has them.
    pub(crate) fn of(workload: &Workload) -> Option<Box<Self>> {
        let tokens = workload.tokens.as_deref()?.clone();
        let shown: Box<[bool]> = workload.requests().map(Request::shows_token).collect();
        let count = shown.len() as RequestId;
        Some(Box::new(Self {
            tokens,
            step: workload.session.steps.len().checked_sub(1)?,
            obtain: count.checked_sub(2)?,
            refresh: count.checked_sub(1)?,
            shown,
        }))
    }

    pub(crate) fn is_shown(&self, request: RequestId) -> bool {
        self.shown.get(request as usize).copied().unwrap_or(false)
    }

    /// Whether this step of the setup, the first, is another user's to do for this one.
    pub(crate) fn leaves_to_first(&self, step: usize, place: usize) -> bool {
        self.tokens.is_shared() && step == 0 && place > 0
    }

    /// Whether this request of the setup asks for a token.
    pub(crate) fn asks(&self, request: RequestId) -> bool {
        request == 0 || request == self.obtain || request == self.refresh
    }
}
