//! The user of a request about documents, and changes on the user's behalf.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use groupware_documents::{Context, Decision, DocumentError, Principal};
use groupware_http::{ApiError, mailbox, user};
use groupware_people::{UserName, without_nsf};
use groupware_runtime::Caller;
use groupware_service::{User, documents};
use http::StatusCode;
use http::request::Parts;

use crate::failure::DominoFailure;
use crate::front::Domino;

/// A signed-in user and the owner whom the path names, as `{mailbox}`. It proves no access:
/// decisions about documents check the grants of the database.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseUser {
    user: User,
    mailbox: Arc<str>,
}

impl DatabaseUser {
    /// The user and the owner, for decisions about documents.
    pub(crate) fn who(&self) -> Principal<'_> {
        Principal {
            mailbox: &self.mailbox,
            ..self.user.who()
        }
    }

    /// The caller of the request.
    pub(crate) fn caller(&self) -> &Caller {
        self.user.caller()
    }

    /// The owner's partition.
    pub(crate) fn mailbox(&self) -> &Arc<str> {
        &self.mailbox
    }
}

impl FromRequestParts<Domino> for DatabaseUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, domino: &Domino) -> Result<Self, ApiError> {
        let user = user(parts, &domino.service).await?;
        let named = mailbox(parts).await?;
        // A text that is no user's name names no partition.
        let owner = named.and_then(|name| UserName::parse(without_nsf(&name)));
        let owner = owner.ok_or_else(|| {
            let message = "This database belongs to another user.";
            ApiError::new(StatusCode::FORBIDDEN, message)
        })?;
        Ok(Self {
            user,
            mailbox: Arc::clone(owner.key()),
        })
    }
}

/// Decides on a fresh snapshot and commits; repeats on conflicts.
pub(crate) async fn change<T>(
    domino: &Domino,
    user: &DatabaseUser,
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, DominoFailure> {
    change_as(domino, (user.caller(), user.who()), decide).await
}

/// Works as [`change`], for any user.
pub(crate) async fn change_as<T>(
    domino: &Domino,
    (caller, who): (&Caller, Principal<'_>),
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, DominoFailure> {
    let service = &domino.service;
    let bits = service.random_bits();
    Ok(documents::change(service, caller, (who, bits), decide).await?)
}
