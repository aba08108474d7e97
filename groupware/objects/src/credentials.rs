//! This program's credentials at an object store. The secret is never shown.

use std::fmt;

/// The reason why a text has no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(String);

/// A key ID, its secret, and a session token, if there is one.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) key_id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

impl Credentials {
    /// Creates credentials.
    pub fn new(key_id: &str, secret: &str, token: Option<&str>) -> Self {
        Self {
            key_id: key_id.to_owned(),
            secret: secret.to_owned(),
            token: token.map(str::to_owned),
        }
    }

    /// Reads a profile from the text of an AWS credentials file:
    ///
    /// ```text
    /// [default]
    /// aws_access_key_id = …
    /// aws_secret_access_key = …
    /// ```
    ///
    /// # Errors
    /// When the profile doesn't exist, or has no key or no secret.
    pub fn of_profile(text: &str, profile: &str) -> Result<Self, CredentialsError> {
        let (mut key_id, mut secret, mut token) = (None, None, None);
        let (mut is_there, mut is_here) = (false, false);
        for line in text.lines().map(str::trim) {
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                is_here = name.trim() == profile;
                is_there |= is_here;
                continue;
            }
            let Some((name, value)) = line.split_once('=').filter(|_| is_here) else {
                continue;
            };
            let value = Some(value.trim()).filter(|value| !value.is_empty());
            match name.trim() {
                "aws_access_key_id" => key_id = value,
                "aws_secret_access_key" => secret = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
        let lacks = |what: &str| match is_there {
            true => CredentialsError(format!("[{profile}] has no {what}")),
            false => CredentialsError(format!("there is no [{profile}] in it")),
        };
        let key_id = key_id.ok_or_else(|| lacks("aws_access_key_id"))?;
        let secret = secret.ok_or_else(|| lacks("aws_secret_access_key"))?;
        Ok(Self::new(key_id, secret, token))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "
# by hand
[default]
aws_access_key_id=one
aws_secret_access_key = a=b/+
[ other ]
region = x
aws_access_key_id = two
aws_secret_access_key = secret
aws_session_token = token
[half]
aws_access_key_id = three
aws_secret_access_key =
";

    #[test]
    fn profiles_are_found() {
        let found = |profile| Credentials::of_profile(FILE, profile);
        assert_eq!(found("default"), Ok(Credentials::new("one", "a=b/+", None)));
        let other = Credentials::new("two", "secret", Some("token"));
        assert_eq!(found("other"), Ok(other.clone()));
        assert!(!format!("{other:?}").contains("secret"));
        let half = found("half").unwrap_err().to_string();
        assert_eq!(half, "[half] has no aws_secret_access_key");
        let none = found("none").unwrap_err().to_string();
        assert_eq!(none, "there is no [none] in it");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_no_secret_is_told(text: String, profile: String) {
            if let Err(error) = Credentials::of_profile(&format!("[p]\n{text}"), &profile) {
                prop_assert!(error.to_string().len() <= profile.len() + 60);
            }
        }
    }
}
