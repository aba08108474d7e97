//! Credentials for joining a fleet: the hub's address and certificate, and a private key. A token is a secret: its
//! bearer acts as the agent or conductor that it names.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};

use crate::name::Name;

/// Prefix of a token, so that it is recognisable.
const PREFIX: &str = "plimsoll-join-1.";
/// Maximum length of a token.
const MOST: usize = 16 << 10;

/// Role of a token's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Drives load.
    Agent,
    /// Runs studies with agents.
    Conductor,
}

/// A parsed token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Address of the hub, `tls://HOST:PORT`.
    pub(crate) url: String,
    pub(crate) name: Name,
    pub(crate) role: Role,
    /// The certificate of the authority that signed the hub's own, DER in base64.
    pub(crate) authority: String,
    /// The seed of the owner's key.
    pub(crate) seed: String,
    /// The seed of the key that receives departure notices; for conductors, if the hub sends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<String>,
}

/// Why a text is no valid token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no token of `plimsoll agents invite`: {0}")]
pub struct NoToken(&'static str);

impl Token {
    /// Returns the owner's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the owner's role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the address of its hub.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the token's text, the only access to its secret.
    #[must_use]
    pub fn secret_text(&self) -> String {
        let json = serde_json::to_vec(self).expect("a token is JSON");
        format!("{PREFIX}{}", BASE64.encode(json))
    }
}

impl FromStr for Token {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let text = text.trim();
        if text.len() > MOST {
            return Err(NoToken("it is too long"));
        }
        let Some(rest) = text.strip_prefix(PREFIX) else {
            return Err(NoToken("it does not begin with plimsoll-join-1."));
        };
        let json = BASE64.decode(rest);
        let json = json.map_err(|_| NoToken("a part of it is missing, or something is added"))?;
        serde_json::from_slice(&json).map_err(|_| NoToken("what it says makes no sense"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token of {} at {}, secret", self.name, self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token {
            url: "tls://127.0.0.1:4222".to_owned(),
            name: "ada".parse().unwrap(),
            role: Role::Agent,
            authority: "AAAA".to_owned(),
            seed: "SUSECRET".to_owned(),
            watch: None,
        }
    }

    #[test]
    fn a_token_comes_back_from_its_text_and_is_shown_nowhere_else() {
        let text = token().secret_text();
        assert_eq!(format!("  {text}\n").parse::<Token>().unwrap(), token());
        assert!(!format!("{:?}", token()).contains("SECRET"));
        let half = &text[..text.len() / 2];
        for bad in ["", "hello", half, &text[1..], &format!("{text}x=")] {
            let error = bad.parse::<Token>().unwrap_err().to_string();
            assert!(!error.contains("SECRET") && error.contains("agents invite"));
        }
    }
}
