//! Restricts a mailbox to its owner.

use std::ops::Deref;

use axum::extract::{FromRequestParts, RawPathParams};
use groupware_people::{Account, without_nsf};
use groupware_runtime::Caller;
use groupware_service::{Service, User};
use http::StatusCode;
use http::request::Parts;

use crate::client::caller_of;
use crate::error::ApiError;
use crate::sign_in::authenticate;

/// The signed-in user whose mailbox the path names, as `{mailbox}`, with or without `.nsf`.
/// Every route under `/mail/` takes it, and with it the proof that the request is authorised.
#[derive(Debug, Clone)]
pub struct Owner(User);

impl Owner {
    /// The owner of a session, whose mailbox no path has to name.
    pub fn of(account: &Account, caller: Caller) -> Self {
        Self(User::of(account, caller))
    }
}

impl Deref for Owner {
    type Target = User;

    fn deref(&self) -> &User {
        &self.0
    }
}

impl<S: AsRef<Service> + Send + Sync> FromRequestParts<S> for Owner {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let user = user(parts, state.as_ref()).await?;
        match mailbox(parts).await? {
            Some(mailbox) if names(&mailbox, user.mailbox()) => Ok(Self(user)),
            _ => Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "This mailbox belongs to another user.",
            )),
        }
    }
}

/// Returns the user that sends a request.
///
/// # Errors
/// Those of [`authenticate`].
pub async fn user(parts: &Parts, service: &Service) -> Result<User, ApiError> {
    let caller = caller_of(&parts.extensions);
    let account = authenticate(service, &caller, &parts.headers).await?;
    Ok(User::of(&account, caller))
}

/// Returns the mailbox that the path names, as `{mailbox}`.
///
/// # Errors
/// When the path can't be read.
pub async fn mailbox(parts: &mut Parts) -> Result<Option<String>, ApiError> {
    let params = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| ApiError::bad_request("The path is not valid UTF-8."))?;
    let named = params.iter().find(|(name, _)| *name == "mailbox");
    Ok(named.map(|(_, mailbox)| mailbox.to_owned()))
}

fn names(mailbox: &str, key: &str) -> bool {
    without_nsf(mailbox).eq_ignore_ascii_case(key)
}
