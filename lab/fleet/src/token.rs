//! What one joins a fleet with: where its hub is, what certificate it has, and a key of one's own. It
//! is a secret: who has it is the agent, or the conductor, that it names.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};

use crate::name::Name;

/// Begins a token, so that one is known where it turns up.
const PREFIX: &str = "plimsoll-join-1.";
/// Longer is none.
const MOST: usize = 16 << 10;

/// What its owner may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Drives load.
    Agent,
    /// Runs studies by agents.
    Conductor,
}

/// A token, as its text says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Where the hub is, `tls://HOST:PORT`.
    pub(crate) url: String,
    pub(crate) name: Name,
    pub(crate) role: Role,
    /// The certificate of the authority that the hub's own is signed by, DER in base64.
    pub(crate) authority: String,
    /// The seed of the owner's key.
    pub(crate) seed: String,
    /// The seed of the key that hears who leaves the hub; of conductors, where the hub tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<String>,
}

/// What is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no token of `plimsoll agents invite`: {0}")]
pub struct NoToken(&'static str);

impl Token {
    /// Whose it is.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What its owner may do.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Where its hub is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The text to hand over. The only way to its secret.
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
