//! Names of agents and conductors. They are parts of subjects, file names, and command lines, so few characters are
//! allowed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name.
const MOST: usize = 32;

/// A name: a–z, 0–9, and `-` between them, at most 32 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Why a text is no valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "“{0}” is no name: a name is a-z, 0-9, and - between them, {MOST} at most, such as “gen-3”"
)]
pub struct NoName(String);

impl Name {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let ends = !text.starts_with('-') && !text.ends_with('-');
        if text.is_empty() || text.len() > MOST || !ends || !text.bytes().all(fits) {
            // The start of a long text is enough.
            return Err(NoName(text.chars().take(MOST + 1).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Name {
    type Error = NoName;

    fn try_from(text: String) -> Result<Self, NoName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_nothing_that_a_subject_or_a_path_takes_for_more() {
        for good in ["a", "gen-3", "0"] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        let long = "a".repeat(33);
        for bad in [
            "", "A", "a.b", "*", ">", "a b", "-a", "a-", "../x", "ä", &long,
        ] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Name>("\"a.b\"").is_err());
    }
}
