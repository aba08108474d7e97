//! Who asks for documents, and how that changes them.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use groupware_documents::{Context, Decision, DocumentError, Who};
use groupware_http::{ApiError, mailbox, user};
use groupware_people::{UserName, without_nsf};
use groupware_runtime::Caller;
use groupware_service::{User, documents};
use http::StatusCode;
use http::request::Parts;

use crate::failure::DominoFailure;
use crate::front::Domino;

/// A signed-in user and the owner whom the path names, as `{mailbox}`. Proves nothing by itself:
/// decisions about documents look whether the database is granted to the user.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseUser {
    user: User,
    mailbox: Arc<str>,
}

impl DatabaseUser {
    /// As decisions about documents are told.
    pub(crate) fn who(&self) -> Who<'_> {
        Who {
            mailbox: &self.mailbox,
            ..self.user.who()
        }
    }

    /// On whose behalf it is done.
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
        // What is no user's name names no user's partition.
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

/// Decides on a fresh snapshot and commits, until nobody else was faster.
pub(crate) async fn change<T>(
    domino: &Domino,
    user: &DatabaseUser,
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, DominoFailure> {
    change_as(domino, (user.caller(), user.who()), decide).await
}

/// As [`change`], on behalf of whoever it is.
pub(crate) async fn change_as<T>(
    domino: &Domino,
    (caller, who): (&Caller, Who<'_>),
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, DominoFailure> {
    let service = &domino.service;
    let bits = service.random_bits();
    Ok(documents::change(service, caller, (who, bits), decide).await?)
}
