//! Lets only its owner reach a mailbox.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use http::StatusCode;
use http::request::Parts;

use crate::AppState;
use crate::accounts::{Account, UserName};
use crate::error::ApiError;
use crate::sign_in;

/// The signed-in user whose mailbox the path names, as `{mailbox}`, with or without `.nsf`.
/// Every route under `/mail/` takes it, and with it the proof that the request may go on.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    name: UserName,
}

impl Owner {
    /// The owner of a session, whose mailbox no path has to name.
    pub(crate) fn of(account: &Account) -> Self {
        Self {
            name: account.name.clone(),
        }
    }

    /// The name as it was registered.
    pub(crate) fn user(&self) -> &Arc<str> {
        self.name.spelling()
    }

    /// The partition that holds the mailbox, which is also the name in the mailbox's paths.
    pub(crate) fn mailbox(&self) -> &str {
        self.name.key()
    }
}

impl FromRequestParts<AppState> for Owner {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let account = sign_in::authenticate(state, &parts.headers).await?;
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::bad_request("The path is not valid UTF-8."))?;
        let mailbox = params.iter().find(|(name, _)| *name == "mailbox");
        match mailbox {
            Some((_, mailbox)) if names(mailbox, account.name.key()) => Ok(Self {
                name: account.name.clone(),
            }),
            _ => Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "This mailbox belongs to another user.",
            )),
        }
    }
}

fn names(mailbox: &str, key: &str) -> bool {
    crate::accounts::without_nsf(mailbox).eq_ignore_ascii_case(key)
}
