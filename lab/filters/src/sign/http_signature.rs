//! HTTP Message Signatures (RFC 9421), and the digest of a body (RFC 9530).

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outgoing::Outgoing;
use super::{Header, Moment, optional};
use crate::encoding::Encoding;
use crate::token::signature;

/// Maximum components of a signature.
const MAX_COMPONENTS: usize = 50;
/// The derived components, which are no headers (RFC 9421, section 2.2).
const DERIVED: [&str; 7] = [
    "@method",
    "@target-uri",
    "@authority",
    "@scheme",
    "@request-target",
    "@path",
    "@query",
];
/// The header with a body's digest.
const DIGEST: &str = "content-digest";

/// An HTTP Message Signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpSign<T> {
    /// The name of one of the workload's `keys`, or the key: for `hmac-sha256` a text, else a private key as PEM.
    pub key: T,
    /// The algorithm: `hmac-sha256`, `ed25519`, `ecdsa-p256-sha256`, `ecdsa-p384-sha384`, `rsa-pss-sha512`,
    /// `rsa-v1_5-sha256`.
    pub algorithm: KeyAlgorithm,
    /// The identifier by which the server knows the key.
    pub key_id: T,
    /// The name of the signature. Default: `sig1`.
    #[serde(default = "usual_label")]
    pub label: String,
    /// The validity of the signature, such as `5m`. Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<T>,
    /// The signed components: `"@method"`, `"@path"`, `"@query"`, `"@authority"`, `"@target-uri"`, `"@scheme"`,
    /// `"@request-target"`, and headers by their lower-case names. `content-digest` is computed if it is listed.
    pub components: Vec<String>,
}

/// The algorithm of a signature (RFC 9421, section 6.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KeyAlgorithm {
    /// HMAC with SHA-256.
    #[serde(rename = "hmac-sha256")]
    HmacSha256,
    /// EdDSA on Curve25519.
    #[serde(rename = "ed25519")]
    Ed25519,
    /// ECDSA on P-256.
    #[serde(rename = "ecdsa-p256-sha256")]
    EcdsaP256,
    /// ECDSA on P-384.
    #[serde(rename = "ecdsa-p384-sha384")]
    EcdsaP384,
    /// RSA with PSS.
    #[serde(rename = "rsa-pss-sha512")]
    RsaPss,
    /// RSA with PKCS #1 v1.5 padding.
    #[serde(rename = "rsa-v1_5-sha256")]
    RsaV15,
}

fn usual_label() -> String {
    "sig1".to_owned()
}

impl KeyAlgorithm {
    /// Returns its name, and the JSON Web Signature name of the same algorithm.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::HmacSha256 => ("hmac-sha256", "HS256"),
            Self::Ed25519 => ("ed25519", "EdDSA"),
            Self::EcdsaP256 => ("ecdsa-p256-sha256", "ES256"),
            Self::EcdsaP384 => ("ecdsa-p384-sha384", "ES384"),
            Self::RsaPss => ("rsa-pss-sha512", "PS512"),
            Self::RsaV15 => ("rsa-v1_5-sha256", "RS256"),
        }
    }
}

/// Returns why a component can't be signed.
pub(super) fn component_problem(name: &str) -> Option<String> {
    let is_header = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    match name.starts_with('@') {
        true if DERIVED.contains(&name) => None,
        true => Some(format!(
            "there is no component `{name}`: it is one of {}, or a header",
            DERIVED.join(", ")
        )),
        false if !name.is_empty() && name.bytes().all(is_header) => None,
        false => Some(format!("`{name}` is no header's name in lower case")),
    }
}

/// Parses seconds: `5m`, `90s`, `1h`, or a number.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("", 1)];
    let read = units.into_iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds)
    });
    read.ok_or_else(|| format!("`{text}` is no time: write one as `5m` or `90s`"))
}

impl<T> HttpSign<T> {
    /// Returns what is wrong with it, apart from its texts.
    pub(super) fn problem(&self) -> Option<String> {
        let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.*".contains(&b);
        let begins = self.label.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || !self.label.bytes().all(rest) {
            return Some("a label is of lower-case letters, digits, `_`, and `-`".to_owned());
        }
        if self.components.len() > MAX_COMPONENTS {
            return Some(format!(
                "a signature has at most {MAX_COMPONENTS} components"
            ));
        }
        let again = |(at, name): (usize, &String)| {
            let is_again = self.components[..at].contains(name);
            is_again.then(|| format!("`{name}` is listed twice"))
        };
        let wrong = self
            .components
            .iter()
            .find_map(|name| component_problem(name));
        wrong.or_else(|| self.components.iter().enumerate().find_map(again))
    }

    pub(super) fn try_map<'s, U, E>(
        &'s self,
        map: &mut impl FnMut(&'s T) -> Result<U, E>,
    ) -> Result<HttpSign<U>, E> {
        Ok(HttpSign {
            key: map(&self.key)?,
            algorithm: self.algorithm,
            key_id: map(&self.key_id)?,
            label: self.label.clone(),
            expires: optional(&self.expires, map)?,
            components: self.components.clone(),
        })
    }
}

impl<T: AsRef<str>> HttpSign<T> {
    pub(super) fn headers(
        &self,
        request: &Outgoing<'_>,
        moment: Moment<'_>,
    ) -> Result<Vec<Header>, String> {
        let mut added = Vec::new();
        let has_digest = request.values(DIGEST).next().is_some();
        if self.components.iter().any(|name| name == DIGEST) && !has_digest {
            let sum = hex::decode(request.body_hash()).unwrap_or_default();
            let digest = format!("sha-256=:{}:", Encoding::Base64.encode(&sum));
            added.push(("Content-Digest".to_owned(), digest));
        }
        let (base, parameters) = self.base(request, &added, moment.seconds)?;
        let (_, algorithm) = self.algorithm.names();
        let key = moment.key.unwrap_or(self.key.as_ref().as_bytes());
        let signature = signature(algorithm, key, base.as_bytes())?;
        let label = &self.label;
        added.push((
            "Signature-Input".to_owned(),
            format!("{label}={parameters}"),
        ));
        let signature = Encoding::Base64.encode(&signature);
        added.push(("Signature".to_owned(), format!("{label}=:{signature}:")));
        Ok(added)
    }

    /// Returns the signature base (RFC 9421, section 2.5), and the parameters of the signature.
    pub(super) fn base(
        &self,
        request: &Outgoing<'_>,
        added: &[Header],
        seconds: i64,
    ) -> Result<(String, String), String> {
        let mut base = String::new();
        let mut parameters = String::from("(");
        for (at, name) in self.components.iter().enumerate() {
            let value = component(request, added, name)?;
            // Writing to a string can't fail.
            let _ = writeln!(base, "\"{name}\": {value}");
            let _ = write!(parameters, "{}\"{name}\"", if at > 0 { " " } else { "" });
        }
        let _ = write!(parameters, ");created={seconds}");
        if let Some(expires) = &self.expires {
            let end = seconds.saturating_add_unsigned(self::seconds(expires.as_ref())?);
            let _ = write!(parameters, ";expires={end}");
        }
        let id = self
            .key_id
            .as_ref()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        let _ = write!(parameters, ";keyid=\"{id}\"");
        let _ = write!(base, "\"@signature-params\": {parameters}");
        Ok((base, parameters))
    }
}

fn component(request: &Outgoing<'_>, added: &[Header], name: &str) -> Result<String, String> {
    Ok(match name {
        "@method" => request.method.to_owned(),
        "@target-uri" => format!(
            "{}://{}{}",
            request.scheme(),
            request.authority(),
            request.target
        ),
        "@authority" => request.authority(),
        "@scheme" => request.scheme().to_owned(),
        "@request-target" => request.target.to_owned(),
        "@path" => request.path().to_owned(),
        "@query" => format!("?{}", request.query().unwrap_or_default()),
        "host" => request.host.to_owned(),
        _ => {
            let own = request.values(name);
            let added = added
                .iter()
                .filter(|(one, _)| one.eq_ignore_ascii_case(name));
            let values: Vec<&str> = own.chain(added.map(|(_, value)| value.as_str())).collect();
            if values.is_empty() {
                return Err(format!("the request has no header `{name}` to sign"));
            }
            values.join(", ")
        }
    })
}
