//! The requests that obtain tokens of OAuth 2 (RFC 6749).

use std::time::Duration;

use lab_filters::auth::{ClientAuth, Grant, Oauth2};
use lab_filters::{JsonPath, push_form};

use crate::capture::{Capture, CaptureSource};
use crate::expectation::{Expectation, JsonState};
use crate::model::{Body, Request};
use crate::slot::Slot;
use crate::template::Template;
use crate::tokens::{TOKEN_VARIABLES, Tokens};

impl Tokens<Request> {
    /// The token requests of `auth`, whose texts are escaped for a form; `target` is their target, and `first` the slot
    /// of the first variable. `refresh` renders the refresh token.
    #[must_use]
    pub fn new(
        auth: &Oauth2<Template>,
        target: &Template,
        renew: Duration,
        (first, refresh): (Slot, Template),
    ) -> Option<Self> {
        let grant = auth.grant;
        let mut form = vec![("grant_type".to_owned(), Template::literal(grant.name()))];
        let mut add = |name: &str, value: Option<&Template>| {
            form.extend(value.map(|value| (name.to_owned(), value.clone())));
        };
        match grant {
            Grant::ClientCredentials => {}
            Grant::Password => {
                add("username", auth.username.as_ref());
                add("password", auth.password.as_ref());
            }
            Grant::RefreshToken => add("refresh_token", auth.refresh_token.as_ref()),
        }
        let obtain = request(auth, target, (first, form))?;
        let form = vec![
            (
                "grant_type".to_owned(),
                Template::literal(Grant::RefreshToken.name()),
            ),
            ("refresh_token".to_owned(), refresh),
        ];
        Some(Self {
            obtain,
            refresh: request(auth, target, (first, form))?,
            per: auth.per,
            renew,
            refreshes: grant != Grant::ClientCredentials,
            first,
        })
    }
}

/// A token request (RFC 6749, sections 4.3.2, 4.4.2, and 6) with this form and the common fields.
fn request(
    auth: &Oauth2<Template>,
    target: &Template,
    (first, mut form): (Slot, Vec<(String, Template)>),
) -> Option<Request> {
    let mut add = |name: &str, value: Option<&Template>| {
        form.extend(value.map(|value| (name.to_owned(), value.clone())));
    };
    add("scope", auth.scope.as_ref());
    for (name, value) in auth.form.iter().flatten() {
        let mut written = String::new();
        push_form(name, &mut written);
        add(&written, Some(value));
    }
    let (id, secret) = (auth.client_id.as_ref(), auth.client_secret.as_ref());
    let basic_auth = match (auth.client_auth, id, secret) {
        (ClientAuth::Basic, Some(id), Some(secret)) => Some((id.clone(), secret.clone())),
        _ => {
            add("client_id", id);
            add("client_secret", secret);
            None
        }
    };
    let paths = [
        "$.access_token",
        "$.token_type",
        "$.expires_in",
        "$.refresh_token",
    ];
    let path_of = |path: &str| JsonPath::parse(path).ok().map(Box::new);
    let capture = |(place, path): (Slot, &str)| {
        Some(Capture {
            variable: TOKEN_VARIABLES[usize::from(place)].to_owned(),
            slot: first + place,
            source: CaptureSource::JsonPath(path_of(path)?),
        })
    };
    let captures = (0..).zip(paths).map(capture).collect::<Option<_>>()?;
    let found = Expectation::Found {
        path: path_of(paths[0])?,
        state: JsonState::Present,
    };
    Some(Request {
        method: "POST".to_owned(),
        headers: vec![("Accept".to_owned(), Template::literal("application/json"))],
        body: Body::Form(form),
        basic_auth,
        answer: vec![found],
        captures,
        hides_answer: true,
        ..Request::get(target.clone())
    })
}

#[cfg(test)]
mod tests;
