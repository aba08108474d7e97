//! Checks that a visitor may manage users.

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;

use crate::error::PageError;
use crate::form::Sent;
use crate::front::Pages;
use crate::visitor::SignedIn;

/// A visitor who may manage users.
pub(crate) struct Administrator(pub(crate) SignedIn);

/// A form of such a visitor.
pub(crate) struct SentByAdministrator(pub(crate) Sent);

fn admit(visitor: &SignedIn) -> Result<(), PageError> {
    let text = "Only administrators may see this page.";
    match visitor.is_admin {
        true => Ok(()),
        false => Err(PageError::Refused(403, text.to_owned())),
    }
}

impl FromRequestParts<Pages> for Administrator {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<Self, PageError> {
        let visitor = SignedIn::from_request_parts(parts, pages).await?;
        admit(&visitor)?;
        Ok(Self(visitor))
    }
}

impl FromRequest<Pages> for SentByAdministrator {
    type Rejection = PageError;

    async fn from_request(request: Request, pages: &Pages) -> Result<Self, PageError> {
        let sent = Sent::from_request(request, pages).await?;
        admit(&sent.visitor)?;
        Ok(Self(sent))
    }
}
