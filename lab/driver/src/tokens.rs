//! The token requests of a script, and the token that users share. It knows no user.

use std::cell::{Cell, RefCell};

use lab_client::RequestId;
use lab_workload::{HeldToken, Request, Tokens, Workload};
use tokio::sync::Notify;

/// How a workload's users obtain tokens.
#[derive(Debug, Clone)]
pub(crate) struct ScriptTokens {
    pub(crate) tokens: Tokens<Request>,
    /// The index of the step that counts token requests.
    pub(crate) step: usize,
    /// The request for the first token; `refresh` is the request with a refresh token.
    pub(crate) obtain: RequestId,
    pub(crate) refresh: RequestId,
    /// Whether token requests may go to another server than the others.
    pub(crate) is_elsewhere: bool,
    /// Whether each request sends a token, by id.
    shown: Box<[bool]>,
}

/// The token that the users of a worker share, or the parallel requests of one user.
#[derive(Default)]
pub(crate) struct SharedToken {
    pub(crate) held: RefCell<Option<HeldToken>>,
    /// Whether a renewal is in progress.
    pub(crate) is_renewed: Cell<bool>,
    pub(crate) renewed: Notify,
}

impl ScriptTokens {
    /// Returns the tokens of a workload; `None` if it has none.
    pub(crate) fn of(workload: &Workload) -> Option<Box<Self>> {
        let tokens = workload.tokens.as_deref()?.clone();
        let shown: Box<[bool]> = workload.requests().map(Request::shows_token).collect();
        let count = shown.len() as RequestId;
        Some(Box::new(Self {
            is_elsewhere: !tokens.obtain.target.source().starts_with('/'),
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

    /// Returns true if this setup step is the token request that the first user sends for all.
    pub(crate) fn leaves_to_first(&self, step: usize, place: usize) -> bool {
        self.tokens.is_shared() && step == 0 && place > 0
    }

    /// Returns true if this is a token request.
    pub(crate) fn asks(&self, request: RequestId) -> bool {
        request == 0 || request == self.obtain || request == self.refresh
    }
}
