//! A form that a signed-in user sends from a page of this server.

use axum::extract::{Form, FromRequest, FromRequestParts, Request};
use axum::response::IntoResponse;

use super::failure::PageError;
use super::forgery;
use super::visitor::Visitor;
use crate::AppState;

/// Most fields of a form: a page of mails to select, and the few around it.
const MAX_FIELDS: usize = 512;

/// The fields of a form, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(pub(super) Vec<(String, String)>);

impl Fields {
    /// A field's text; empty if it isn't there.
    pub(super) fn get(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// A field's text without blanks around it.
    pub(super) fn trimmed(&self, name: &str) -> &str {
        self.get(name).trim()
    }

    /// Whether a box was ticked, or a button pressed.
    pub(super) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// All texts of fields of this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, text)| text.as_str())
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = PageError;

    async fn from_request(request: Request, state: &S) -> Result<Self, PageError> {
        if !forgery::comes_from_here(request.headers()) {
            return Err(PageError::Forged);
        }
        let Form(fields) = Form::<Vec<(String, String)>>::from_request(request, state)
            .await
            .map_err(|rejection| PageError::unreadable(rejection.into_response().status()))?;
        if fields.len() > MAX_FIELDS {
            return Err(PageError::Unreadable);
        }
        Ok(Self(fields))
    }
}

/// A form of a signed-in user.
pub(super) struct Sent {
    pub(super) visitor: Visitor,
    pub(super) fields: Fields,
}

impl FromRequest<AppState> for Sent {
    type Rejection = PageError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        if !forgery::comes_from_here(&parts.headers) {
            return Err(PageError::Forged);
        }
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        let fields = Fields::from_request(Request::from_parts(parts, body), state).await?;
        match forgery::is_genuine(&visitor.proof, fields.get(forgery::FIELD)) {
            true => Ok(Self { visitor, fields }),
            false => Err(PageError::Forged),
        }
    }
}
