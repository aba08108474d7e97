//! Credentials that a workload obtains: tokens of OAuth 2, and answers to the challenges of HTTP Digest. It sends
//! nothing.

mod challenge;
mod digest;
mod oauth2;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use challenge::{Challenge, challenges};
pub use digest::{Answer, Digest};
pub use oauth2::{ClientAuth, Grant, Oauth2, Per, moments};

/// The credentials that a workload obtains. `T` is the type of its texts: as written, or compiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Auth<T> {
    /// OAuth 2 tokens (RFC 6749), sent as bearer tokens (RFC 6750).
    Oauth2(Oauth2<T>),
    /// HTTP Digest (RFC 7616).
    Digest(Digest<T>),
}

impl<T> Auth<T> {
    /// Maps each text.
    ///
    /// # Errors
    /// That of `map`.
    pub fn try_map<U, E>(&self, map: &mut impl FnMut(&T) -> Result<U, E>) -> Result<Auth<U>, E> {
        Ok(match self {
            Self::Oauth2(auth) => Auth::Oauth2(auth.try_map(map)?),
            Self::Digest(auth) => Auth::Digest(auth.try_map(map)?),
        })
    }
}

#[cfg(test)]
mod tests;
