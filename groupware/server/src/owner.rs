//! Lets only its owner reach a mailbox, and tells whose database somebody asks for.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use groupware_documents::Who;
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
    /// When the user was registered.
    since: i64,
}

impl Owner {
    /// The owner of a session, whose mailbox no path has to name.
    pub(crate) fn of(account: &Account) -> Self {
        Self {
            name: account.name.clone(),
            since: account.created,
        }
    }

    /// As decisions about documents are told.
    pub(crate) fn who(&self) -> Who<'_> {
        Who {
            user: self.name.key(),
            since: self.since,
            mailbox: self.mailbox(),
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
        match mailbox(parts, state).await? {
            Some(mailbox) if names(&mailbox, account.name.key()) => Ok(Self::of(&account)),
            _ => Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "This mailbox belongs to another user.",
            )),
        }
    }
}

/// A signed-in user and the owner whom the path names, as `{mailbox}`. Proves nothing by itself:
/// decisions about documents look whether the database is granted to the user.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    user: Owner,
    mailbox: Arc<str>,
}

impl Visitor {
    pub(crate) fn who(&self) -> Who<'_> {
        Who {
            mailbox: &self.mailbox,
            ..self.user.who()
        }
    }

    /// The owner's partition.
    pub(crate) fn mailbox(&self) -> &str {
        &self.mailbox
    }
}

impl FromRequestParts<AppState> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let account = sign_in::authenticate(state, &parts.headers).await?;
        let named = mailbox(parts, state).await?;
        // What is no user's name names no user's partition.
        let owner = named.and_then(|name| UserName::parse(crate::accounts::without_nsf(&name)));
        let owner = owner.ok_or_else(|| {
            let message = "This database belongs to another user.";
            ApiError::new(StatusCode::FORBIDDEN, message)
        })?;
        Ok(Self {
            user: Owner::of(&account),
            mailbox: Arc::clone(owner.key()),
        })
    }
}

/// The mailbox that the path names.
async fn mailbox(parts: &mut Parts, state: &AppState) -> Result<Option<String>, ApiError> {
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| ApiError::bad_request("The path is not valid UTF-8."))?;
    let named = params.iter().find(|(name, _)| *name == "mailbox");
    Ok(named.map(|(_, mailbox)| mailbox.to_owned()))
}

fn names(mailbox: &str, key: &str) -> bool {
    crate::accounts::without_nsf(mailbox).eq_ignore_ascii_case(key)
}
