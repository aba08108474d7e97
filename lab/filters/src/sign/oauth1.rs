//! OAuth 1.0 (RFC 5849), in the header `Authorization`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outgoing::Outgoing;
use super::{Header, Moment, optional};
use crate::encoding::Encoding;
use crate::escape::push_url;
use crate::hash::{Hash, hmac};

/// An OAuth 1 signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OauthSign<T> {
    /// The client's identifier.
    pub consumer_key: T,
    /// The client's secret.
    pub consumer_secret: T,
    /// The token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<T>,
    /// The token's secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_secret: Option<T>,
    /// The method: `HMAC-SHA1`, `HMAC-SHA256`, or `PLAINTEXT`. Default: `HMAC-SHA1`.
    #[serde(default)]
    pub method: OauthMethod,
}

/// The signature method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OauthMethod {
    /// HMAC with SHA-1 (RFC 5849, section 3.4.2).
    #[default]
    #[serde(rename = "HMAC-SHA1")]
    HmacSha1,
    /// The same with SHA-256.
    #[serde(rename = "HMAC-SHA256")]
    HmacSha256,
    /// The secrets themselves (RFC 5849, section 3.4.4).
    #[serde(rename = "PLAINTEXT")]
    Plaintext,
}

impl<T> OauthSign<T> {
    pub(super) fn try_map<'s, U, E>(
        &'s self,
        map: &mut impl FnMut(&'s T) -> Result<U, E>,
    ) -> Result<OauthSign<U>, E> {
        Ok(OauthSign {
            consumer_key: map(&self.consumer_key)?,
            consumer_secret: map(&self.consumer_secret)?,
            token: optional(&self.token, map)?,
            token_secret: optional(&self.token_secret, map)?,
            method: self.method,
        })
    }
}

fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_url(text, &mut out);
    out
}

/// Returns the decoded pairs of a query or form.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let decoded = |text: &str| {
        let spaced = text.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy();
        decoded.into_owned()
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

/// Returns the signature base string (RFC 5849, section 3.4.1).
pub(super) fn base(request: &Outgoing<'_>, own: &[(&str, String)]) -> String {
    let mut all: Vec<(String, String)> = own
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    all.extend(pairs(request.query().unwrap_or_default()));
    let kind = request.values("content-type").next().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        all.extend(pairs(&String::from_utf8_lossy(&request.body.concat())));
    }
    let mut all: Vec<(String, String)> = all
        .iter()
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    all.sort_unstable();
    let mut parameters = String::new();
    for (at, (name, value)) in all.iter().enumerate() {
        // Writing to a string can't fail.
        let _ = write!(
            parameters,
            "{}{name}={value}",
            if at > 0 { "&" } else { "" }
        );
    }
    let address = format!(
        "{}://{}{}",
        request.scheme(),
        request.authority(),
        request.path()
    );
    format!(
        "{}&{}&{}",
        request.method.to_ascii_uppercase(),
        encoded(&address),
        encoded(&parameters)
    )
}

impl<T: AsRef<str>> OauthSign<T> {
    pub(super) fn headers(
        &self,
        request: &Outgoing<'_>,
        moment: Moment<'_>,
    ) -> Result<Vec<Header>, String> {
        let method = match self.method {
            OauthMethod::HmacSha1 => "HMAC-SHA1",
            OauthMethod::HmacSha256 => "HMAC-SHA256",
            OauthMethod::Plaintext => "PLAINTEXT",
        };
        let mut own = vec![
            ("oauth_consumer_key", self.consumer_key.as_ref().to_owned()),
            ("oauth_signature_method", method.to_owned()),
        ];
        own.extend(
            self.token
                .iter()
                .map(|token| ("oauth_token", token.as_ref().to_owned())),
        );
        if self.method != OauthMethod::Plaintext {
            own.push(("oauth_timestamp", moment.seconds.to_string()));
            own.push(("oauth_nonce", moment.nonce.to_owned()));
        }
        let secret = self.token_secret.as_ref().map_or("", AsRef::as_ref);
        let key = format!(
            "{}&{}",
            encoded(self.consumer_secret.as_ref()),
            encoded(secret)
        );
        let hash = match self.method {
            OauthMethod::HmacSha1 => Some(Hash::Sha1),
            OauthMethod::HmacSha256 => Some(Hash::Sha256),
            OauthMethod::Plaintext => None,
        };
        let signature = match hash {
            Some(hash) => {
                let tag = hmac(hash, key.as_bytes(), base(request, &own).as_bytes())?;
                Encoding::Base64.encode(tag.as_ref())
            }
            None => key,
        };
        own.push(("oauth_signature", signature));
        let mut header = String::from("OAuth ");
        for (at, (name, value)) in own.iter().enumerate() {
            let between = if at > 0 { ", " } else { "" };
            let _ = write!(header, "{between}{name}=\"{}\"", encoded(value));
        }
        Ok(vec![("Authorization".to_owned(), header)])
    }
}
