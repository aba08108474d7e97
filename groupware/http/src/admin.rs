//! Proof that a request bears the admin token.

use axum::extract::FromRequestParts;
use groupware_proto_http::{Authorization, authorization};
use groupware_service::Service;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::error::ApiError;

/// Proof that the request bears the admin token.
#[derive(Debug, Clone, Copy)]
pub struct Admin(());

impl Admin {
    /// Checks the token.
    ///
    /// # Errors
    /// 401 if the token is missing or wrong.
    pub fn check(service: &Service, headers: &HeaderMap) -> Result<Self, ApiError> {
        let header = headers.get(AUTHORIZATION).map(|header| header.as_bytes());
        if let Some(Authorization::Bearer(token)) = header.and_then(authorization)
            && service.auth.is_admin(&token)
        {
            return Ok(Self(()));
        }
        let error = ApiError::unauthenticated("This needs the admin token.");
        Err(error.challenge(Some("Bearer")))
    }
}

impl<S: AsRef<Service> + Sync> FromRequestParts<S> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Self::check(state.as_ref(), &parts.headers)
    }
}
