//! HTTP Digest (RFC 7616): answers to challenges.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::challenge::{Challenge, challenges};
use crate::encoding::Encoding;
use crate::hash::{Hash, digest};

/// HTTP Digest credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Digest<T> {
    /// The user's name.
    pub username: T,
    /// The user's password.
    pub password: T,
}

impl<T> Digest<T> {
    /// Maps each text.
    ///
    /// # Errors
    /// That of `map`.
    pub fn try_map<U, E>(&self, map: &mut impl FnMut(&T) -> Result<U, E>) -> Result<Digest<U>, E> {
        Ok(Digest {
            username: map(&self.username)?,
            password: map(&self.password)?,
        })
    }
}

/// The answer to a challenge, for the requests of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    hash: Hash,
    /// The algorithm as the server names it; `None` where it names none.
    algorithm: Option<String>,
    /// Whether the hash of the password is bound to the nonce.
    is_session: bool,
    realm: String,
    /// The server's nonce.
    pub nonce: String,
    opaque: Option<String>,
    /// Whether the server takes a count and a client nonce; servers older than RFC 2617 don't.
    has_qop: bool,
    /// Whether the server refused only the nonce, as stale.
    pub is_stale: bool,
}

impl Answer {
    /// The answer to the first challenge of a header that can be answered.
    ///
    /// # Errors
    /// The reason why none can be answered.
    pub fn to(header: &str) -> Result<Self, String> {
        let mut why = "it asks for no digest".to_owned();
        for challenge in challenges(header) {
            if challenge.scheme != "digest" {
                continue;
            }
            match Self::to_one(&challenge) {
                Ok(answer) => return Ok(answer),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn to_one(challenge: &Challenge) -> Result<Self, String> {
        let algorithm = challenge.get("algorithm");
        let upper = algorithm.unwrap_or("MD5").to_ascii_uppercase();
        let (name, is_session) = match upper.strip_suffix("-SESS") {
            Some(name) => (name, true),
            None => (upper.as_str(), false),
        };
        let hash = match name {
            "MD5" => Hash::Md5,
            "SHA-256" => Hash::Sha256,
            _ => {
                return Err(format!(
                    "its algorithm is `{}`: only MD5 and SHA-256 are known",
                    algorithm.unwrap_or_default().escape_debug()
                ));
            }
        };
        let qop = challenge.get("qop");
        let takes_auth = |qop: &str| {
            let mut all = qop.split(',');
            all.any(|one| one.trim().eq_ignore_ascii_case("auth"))
        };
        if qop.is_some_and(|qop| !takes_auth(qop)) {
            return Err("it asks for a digest of the body: only `qop=auth` is known".to_owned());
        }
        let text = |name: &str| challenge.get(name).map(str::to_owned);
        let is_true = |value: &str| value.eq_ignore_ascii_case("true");
        Ok(Self {
            hash,
            algorithm: algorithm.map(str::to_owned),
            is_session,
            realm: text("realm").unwrap_or_default(),
            nonce: text("nonce").ok_or("its challenge has no nonce")?,
            opaque: text("opaque"),
            has_qop: qop.is_some(),
            is_stale: challenge.get("stale").is_some_and(is_true),
        })
    }

    /// The value of `Authorization` for a request (RFC 7616, section 3.4), the `count`th with this nonce. `cnonce` is
    /// the same for all requests with this nonce.
    #[must_use]
    pub fn header(
        &self,
        who: &Digest<String>,
        (method, uri): (&str, &str),
        (count, cnonce): (u32, &str),
    ) -> String {
        let hashed =
            |text: &str| digest(self.hash, text.as_bytes(), |sum| Encoding::Hex.encode(sum));
        let Self { realm, nonce, .. } = self;
        let mut user = hashed(&format!("{}:{realm}:{}", who.username, who.password));
        if self.is_session {
            user = hashed(&format!("{user}:{nonce}:{cnonce}"));
        }
        let request = hashed(&format!("{method}:{uri}"));
        let response = match self.has_qop {
            true => hashed(&format!(
                "{user}:{nonce}:{count:08x}:{cnonce}:auth:{request}"
            )),
            false => hashed(&format!("{user}:{nonce}:{request}")),
        };
        let mut header = format!(
            "Digest username={}, realm={}, nonce={}, uri={}, response=\"{response}\"",
            quoted(&who.username),
            quoted(realm),
            quoted(nonce),
            quoted(uri),
        );
        // Writing to a string can't fail.
        if let Some(algorithm) = &self.algorithm {
            let _infallible = write!(header, ", algorithm={algorithm}");
        }
        if let Some(opaque) = &self.opaque {
            let _infallible = write!(header, ", opaque={}", quoted(opaque));
        }
        if self.has_qop || self.is_session {
            let _infallible = write!(header, ", cnonce=\"{cnonce}\"");
        }
        if self.has_qop {
            let _infallible = write!(header, ", qop=auth, nc={count:08x}");
        }
        header
    }
}

/// A quoted string (RFC 9110, section 5.6.4).
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
