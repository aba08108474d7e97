//! Parameters of OAuth 2 token requests (RFC 6749).

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// OAuth 2 tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Oauth2<T> {
    /// Method and target of the token endpoint: `POST /oauth/token`, or with an absolute URL.
    pub token: T,
    /// The grant: `client_credentials`, `password`, or `refresh_token`. Default: `client_credentials`.
    #[serde(default)]
    pub grant: Grant,
    /// The client's identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<T>,
    /// The client's secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<T>,
    /// Client authentication: `basic` (HTTP Basic) or `body` (fields of the form). Default: `basic`.
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// The user's name, for the grant `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<T>,
    /// The user's password, for the grant `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<T>,
    /// The first refresh token, for the grant `refresh_token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<T>,
    /// The scope of the token: words separated by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<T>,
    /// Further fields of the form: `{ audience: https://api.example.com }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<BTreeMap<String, T>>,
    /// The owner of a token: each `user`, or each `worker` thread, whose users share it. Default: `user`.
    #[serde(default)]
    pub per: Per,
    /// The time between renewal and expiry of a token. Default: 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew: Option<T>,
}

/// The grant of a token request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Client credentials (RFC 6749, section 4.4).
    #[default]
    ClientCredentials,
    /// The user's name and password (section 4.3).
    Password,
    /// A refresh token (section 6).
    RefreshToken,
}

/// Client authentication (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// HTTP Basic, as the RFC recommends.
    #[default]
    Basic,
    /// `client_id` and `client_secret` in the form.
    Body,
}

/// The owner of a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Each user.
    #[default]
    User,
    /// Each worker thread: its users share the token.
    Worker,
}

impl Grant {
    /// The value of `grant_type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::Password => "password",
            Self::RefreshToken => "refresh_token",
        }
    }
}

impl<T> Oauth2<T> {
    /// Maps each text.
    ///
    /// # Errors
    /// That of `map`.
    pub fn try_map<U, E>(&self, map: &mut impl FnMut(&T) -> Result<U, E>) -> Result<Oauth2<U>, E> {
        let form = self.form.as_ref().map(|form| {
            let fields = form.iter();
            let field = |(name, value): (&String, &T)| Ok((name.clone(), map(value)?));
            fields.map(field).collect::<Result<BTreeMap<_, _>, E>>()
        });
        let form = form.transpose()?;
        let mut optional = |text: &Option<T>| text.as_ref().map(&mut *map).transpose();
        Ok(Oauth2 {
            client_id: optional(&self.client_id)?,
            client_secret: optional(&self.client_secret)?,
            username: optional(&self.username)?,
            password: optional(&self.password)?,
            refresh_token: optional(&self.refresh_token)?,
            scope: optional(&self.scope)?,
            renew: optional(&self.renew)?,
            token: map(&self.token)?,
            grant: self.grant,
            client_auth: self.client_auth,
            form,
            per: self.per,
        })
    }

    /// The first key that the grant doesn't use, if there is one.
    #[must_use]
    pub fn unused(&self) -> Option<&'static str> {
        let (user, token) = match self.grant {
            Grant::ClientCredentials => (true, true),
            Grant::Password => (false, true),
            Grant::RefreshToken => (true, false),
        };
        let all = [
            ("username", user && self.username.is_some()),
            ("password", user && self.password.is_some()),
            ("refresh_token", token && self.refresh_token.is_some()),
        ];
        all.into_iter()
            .find_map(|(name, is_there)| is_there.then_some(name))
    }

    /// The first field of `form` that has a key of its own, if there is one.
    #[must_use]
    pub fn doubled(&self) -> Option<&str> {
        const OWN: [&str; 7] = [
            "grant_type",
            "scope",
            "client_id",
            "client_secret",
            "username",
            "password",
            "refresh_token",
        ];
        let mut names = self.form.iter().flatten().map(|(name, _)| name.as_str());
        names.find(|name| OWN.contains(name))
    }

    /// The first missing key of the grant, if there is one.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        let needed: &[(&str, &Option<T>)] = match self.grant {
            Grant::ClientCredentials => &[
                ("client_id", &self.client_id),
                ("client_secret", &self.client_secret),
            ],
            Grant::Password => &[("username", &self.username), ("password", &self.password)],
            Grant::RefreshToken => &[("refresh_token", &self.refresh_token)],
        };
        let missing = needed.iter().find(|(_, value)| value.is_none());
        let without_id = self.client_secret.is_some() && self.client_id.is_none();
        let id = without_id.then_some("client_id");
        missing.map(|(name, _)| *name).or(id)
    }
}

/// The upper bound of a token's lifetime, in seconds: longer than any trial.
const LONGEST_S: f64 = 1e9;

/// The start of a wrong value, for an error: the value may be a secret in the wrong place.
fn shown(value: &str) -> String {
    const MOST: usize = 12;
    let start: String = value.chars().take(MOST).collect();
    let more = if start.len() < value.len() { "…" } else { "" };
    format!("{}{more}", start.escape_debug())
}

/// When a token is due for renewal, and when it expires, in ns on the clock of `sent`; both `u64::MAX` if the answer
/// has no lifetime. The texts are `access_token`, `token_type`, and `expires_in` of the answer.
///
/// # Errors
/// The reason why the answer has no valid token.
pub fn moments(
    (token, kind, lives): (Option<&str>, Option<&str>, Option<&str>),
    renew: Duration,
    sent: u64,
) -> Result<(u64, u64), String> {
    if token.is_none_or(str::is_empty) {
        return Err("the answer has no `access_token`".to_owned());
    }
    if let Some(kind) = kind.filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        let kind = shown(kind);
        return Err(format!(
            "the answer's `token_type` is `{kind}`: only bearer tokens are known"
        ));
    }
    let Some(lives) = lives else {
        return Ok((u64::MAX, u64::MAX));
    };
    let seconds = lives.parse().ok();
    let seconds = seconds.filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    let seconds = seconds.ok_or_else(|| {
        let lives = shown(lives);
        format!("the answer's `expires_in` is `{lives}`: no number of seconds above zero")
    })?;
    let lives = Duration::from_secs_f64(seconds.min(LONGEST_S));
    // A token with a shorter lifetime is renewed at half of it.
    let renews = lives.checked_sub(renew).filter(|left| !left.is_zero());
    let after = |time: Duration| sent.saturating_add(time.as_nanos() as u64);
    Ok((after(renews.unwrap_or(lives / 2)), after(lives)))
}
