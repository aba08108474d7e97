//! Signatures of requests: their methods, and the headers that carry them. Pure: the input is a rendered request, a
//! time, and keys; the output is headers.

mod aws;
mod hmac;
mod http_signature;
mod oauth1;
mod outgoing;

use crate::hash::Hash;
use crate::key::KeyKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use aws::{AwsSign, Payload};
pub use hmac::HmacSign;
pub use http_signature::{HttpSign, KeyAlgorithm};
pub use oauth1::{OauthMethod, OauthSign};
pub use outgoing::{Outgoing, PARTS, names_with_parts};

/// The signature of a request. `T` is the type of its texts: as written, compiled, or rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sign<T> {
    /// A keyed hash over parts of the request, in custom headers.
    Hmac(HmacSign<T>),
    /// AWS Signature Version 4.
    AwsSigv4(AwsSign<T>),
    /// HTTP Message Signatures (RFC 9421).
    HttpSignature(HttpSign<T>),
    /// OAuth 1.0 (RFC 5849).
    Oauth1(OauthSign<T>),
}

/// Inputs of a signature apart from the request.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// Seconds since 1970.
    pub seconds: i64,
    /// A text that no other request has.
    pub nonce: &'a str,
    /// The key that its text names, if it names one.
    pub key: Option<&'a [u8]>,
}

/// A header: its name and its value.
pub type Header = (String, String);

impl<T> Sign<T> {
    /// Maps each text.
    ///
    /// # Errors
    /// That of `map`.
    pub fn try_map<'s, U, E>(
        &'s self,
        map: &mut impl FnMut(&'s T) -> Result<U, E>,
    ) -> Result<Sign<U>, E> {
        Ok(match self {
            Self::Hmac(sign) => Sign::Hmac(sign.try_map(map)?),
            Self::AwsSigv4(sign) => Sign::AwsSigv4(sign.try_map(map)?),
            Self::HttpSignature(sign) => Sign::HttpSignature(sign.try_map(map)?),
            Self::Oauth1(sign) => Sign::Oauth1(sign.try_map(map)?),
        })
    }

    /// Returns what is wrong with it, apart from its texts.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Hmac(sign) if sign.algorithm == Hash::Md5 => {
                Some("HMAC by MD5 is not supported".to_owned())
            }
            Self::HttpSignature(sign) => sign.problem(),
            Self::Hmac(_) | Self::AwsSigv4(_) | Self::Oauth1(_) => None,
        }
    }

    /// Returns the text that is or names the key, the required kind of key, and its description.
    pub fn key(&self) -> Option<(&T, KeyKind, &'static str)> {
        match self {
            Self::Hmac(sign) => Some((&sign.key, KeyKind::Secret, "hmac")),
            Self::HttpSignature(sign) => {
                let (name, of_tokens) = sign.algorithm.names();
                Some((&sign.key, KeyKind::of_token(of_tokens)?, name))
            }
            Self::AwsSigv4(_) | Self::Oauth1(_) => None,
        }
    }

    /// Returns the names of the headers that a workload sets itself.
    pub fn own_headers(&self) -> impl Iterator<Item = &str> {
        let headers = match self {
            Self::Hmac(sign) => Some(&sign.headers),
            Self::AwsSigv4(_) | Self::HttpSignature(_) | Self::Oauth1(_) => None,
        };
        headers
            .into_iter()
            .flat_map(|all| all.keys())
            .map(String::as_str)
    }

    /// Returns true if it contains a time; `names` returns whether a text names a part of a request.
    pub fn has_time(&self, names: impl Fn(&T, &str) -> bool) -> bool {
        match self {
            Self::Hmac(sign) => sign.parts().any(|text| names(text, "timestamp")),
            Self::AwsSigv4(_) | Self::HttpSignature(_) | Self::Oauth1(_) => true,
        }
    }

    /// Returns the names of headers with secret content, in lower case; `names` as for [`Sign::has_time`].
    pub fn secret_headers(&self, names: impl Fn(&T, &str) -> bool) -> Vec<String> {
        let fixed: &[&str] = match self {
            Self::Hmac(sign) => {
                let headers = sign.headers.iter();
                let secret = headers.filter(|(_, value)| names(value, "signature"));
                return secret.map(|(name, _)| name.to_lowercase()).collect();
            }
            Self::AwsSigv4(_) => &["authorization", "x-amz-security-token"],
            Self::HttpSignature(_) => &["signature"],
            Self::Oauth1(_) => &["authorization"],
        };
        fixed.iter().map(|name| (*name).to_owned()).collect()
    }
}

impl<T: AsRef<str>> Sign<T> {
    /// Returns the headers that sign a request. The caller renders those of `hmac`: see [`HmacSign::signature`].
    ///
    /// # Errors
    /// A key that can't sign, and a request without a part to be signed.
    pub fn headers(
        &self,
        request: &Outgoing<'_>,
        moment: Moment<'_>,
    ) -> Result<Vec<Header>, String> {
        match self {
            Self::Hmac(_) => Ok(Vec::new()),
            Self::AwsSigv4(sign) => sign.headers(request, moment.seconds),
            Self::HttpSignature(sign) => sign.headers(request, moment),
            Self::Oauth1(sign) => sign.headers(request, moment),
        }
    }
}

/// Iterates over the optional texts of a signature.
fn optional<'s, T, U, E>(
    text: &'s Option<T>,
    map: &mut impl FnMut(&'s T) -> Result<U, E>,
) -> Result<Option<U>, E> {
    text.as_ref().map(map).transpose()
}

#[cfg(test)]
mod tests;
