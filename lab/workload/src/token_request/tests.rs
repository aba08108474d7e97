//! The tokens of users, and their lifetimes.

use std::sync::Arc;

use super::*;
use crate::inputs::Inputs;
use crate::scope::{DEFAULT_DATES_FROM, User, UserScope};
use crate::template::{Escape, Symbols};
use crate::tokens::{HeldToken, TokenState};

const S: u64 = 1_000_000_000;

fn tokens(grant: &str) -> Tokens<Request> {
    let auth: Oauth2<String> = serde_json::from_value(serde_json::json!({
        "token": "POST /t", "grant": grant, "client_id": "c&1", "client_secret": "s", "scope": "a b",
        "username": "u", "password": "p", "refresh_token": "r",
        "form": { "audience": "https://x" },
    }))
    .unwrap();
    let names = TOKEN_VARIABLES.map(str::to_owned);
    let parameters = crate::Parameters::new();
    let symbols = Symbols {
        variables: &names,
        parameters: &parameters,
        keys: &[],
        is_repeatable: false,
    };
    let mut compile = |text: &String| Template::parse_with(text, symbols, Escape::Form);
    let auth = auth.try_map(&mut compile).unwrap();
    let refresh = Template::parse_with("{{ auth_refresh_token }}", symbols, Escape::Form).unwrap();
    let target = Template::literal("/t");
    Tokens::new(&auth, &target, Duration::from_secs(30), (0, refresh)).unwrap()
}

fn user() -> UserScope {
    let names: Arc<[String]> = TOKEN_VARIABLES.map(str::to_owned).into();
    let user = User {
        index: 0,
        users: 1,
        first: 0,
        seed: 1,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
    };
    UserScope::unset(&names, (&Arc::<Inputs>::default(), None), user)
}

/// Sets the captures of a response.
fn answered(scope: &mut UserScope, kind: &[&str], expires_in: &[&str], refresh: &[&str]) {
    scope.set_found(0, &["t1"]);
    scope.set_found(1, kind);
    scope.set_found(2, expires_in);
    scope.set_found(3, refresh);
}

#[test]
fn a_token_is_renewed_before_it_expires() {
    let (tokens, mut scope) = (tokens("client_credentials"), user());
    assert_eq!(tokens.state(&scope, 0), TokenState::Missing);
    answered(&mut scope, &["BEARER"], &["3600"], &[]);
    tokens.take(&mut scope, 10 * S).unwrap();
    for (now, state) in [
        (10, TokenState::Valid),
        (3579, TokenState::Valid),
        (3580, TokenState::Due),
        (3609, TokenState::Due),
        (3610, TokenState::Missing),
    ] {
        assert_eq!(tokens.state(&scope, now * S), state, "{now} s");
    }
    scope.clear(0);
    assert_eq!(tokens.state(&scope, 10 * S), TokenState::Missing);
}

#[test]
fn a_short_life_is_renewed_at_its_half_and_an_untold_one_never() {
    let (tokens, mut scope) = (tokens("client_credentials"), user());
    answered(&mut scope, &[], &["4"], &[]);
    tokens.take(&mut scope, 0).unwrap();
    assert_eq!(tokens.state(&scope, 2 * S - 1), TokenState::Valid);
    assert_eq!(tokens.state(&scope, 2 * S), TokenState::Due);
    answered(&mut scope, &[], &[], &[]);
    tokens.take(&mut scope, 0).unwrap();
    assert_eq!(tokens.state(&scope, u64::MAX - 1), TokenState::Valid);
}

#[test]
fn an_answer_without_a_token_that_counts_is_refused() {
    let (tokens, mut scope) = (tokens("password"), user());
    for (kind, expires_in, why) in [
        (
            "mac",
            "60",
            "the answer's `token_type` is `mac`: only bearer tokens are known",
        ),
        (
            "bearer",
            "soon",
            "the answer's `expires_in` is `soon`: no number of seconds above zero",
        ),
        (
            "bearer",
            "0",
            "the answer's `expires_in` is `0`: no number of seconds above zero",
        ),
        (
            "bearer",
            "-1",
            "the answer's `expires_in` is `-1`: no number of seconds above zero",
        ),
        (
            "bearer",
            "inf",
            "the answer's `expires_in` is `inf`: no number of seconds above zero",
        ),
        (
            "bearer",
            "NaN",
            "the answer's `expires_in` is `NaN`: no number of seconds above zero",
        ),
    ] {
        answered(&mut scope, &[kind], &[expires_in], &["r2"]);
        assert_eq!(tokens.take(&mut scope, 0).unwrap_err(), why);
        assert_eq!(tokens.state(&scope, 0), TokenState::Missing);
        assert!(!tokens.has_refresh(&scope));
    }
}

#[test]
fn the_newest_refresh_token_counts_until_the_server_refuses_it() {
    let (with, without, mut scope) = (tokens("password"), tokens("client_credentials"), user());
    answered(&mut scope, &[], &[], &["r1"]);
    without.take(&mut scope, 0).unwrap();
    assert!(!without.has_refresh(&scope));
    with.take(&mut scope, 0).unwrap();
    // A response without one keeps the old one (RFC 6749, section 6).
    answered(&mut scope, &[], &[], &[]);
    with.take(&mut scope, 0).unwrap();
    assert_eq!(scope.get("auth_refresh_token").as_deref(), Some("r1"));
    // The shared copy forgets the same refresh token, too, but no other.
    let (mut same, mut other, mut user) = (with.held(&scope), HeldToken::default(), user());
    with.forget_refresh(&mut scope, Some(&mut other));
    assert!(!with.has_refresh(&scope));
    with.hold(&mut scope, &same);
    with.forget_refresh(&mut scope, Some(&mut same));
    with.share(&mut user, &same);
    assert!(!with.has_refresh(&scope) && !with.has_refresh(&user));
    assert_eq!(with.state(&user, 0), TokenState::Valid);
}

#[test]
fn a_shared_token_is_the_same_for_all() {
    let (tokens, mut one, mut other) = (tokens("client_credentials"), user(), user());
    answered(&mut one, &[], &["60"], &[]);
    tokens.take(&mut one, 0).unwrap();
    tokens.hold(&mut other, &tokens.held(&one));
    assert_eq!(tokens.state(&other, 29 * S), TokenState::Valid);
    assert_eq!(other.text(0), one.text(0));
    tokens.hold(&mut other, &HeldToken::default());
    assert_eq!(tokens.state(&other, 0), TokenState::Missing);
}

#[test]
fn what_became_of_a_token_beside_the_user_is_its_own() {
    let (tokens, mut scope) = (tokens("client_credentials"), user());
    answered(&mut scope, &[], &[], &[]);
    tokens.take(&mut scope, 1).unwrap();
    let held = tokens.held(&scope);
    let branch = || {
        let mut branch = user();
        tokens.hold(&mut branch, &held);
        branch
    };
    let (mut refused, mut renewed, mut other) = (branch(), branch(), branch());
    refused.clear(0);
    other.clear(0);
    renewed.set_text(0, "t2");
    tokens.take(&mut renewed, 2).unwrap();
    // A branch without a token changes nothing.
    tokens.join(&mut scope, &user());
    assert_eq!(scope.text(0).as_deref(), Some("t1"));
    tokens.join(&mut scope, &refused);
    assert_eq!(tokens.state(&scope, 3), TokenState::Missing);
    tokens.join(&mut scope, &renewed);
    assert_eq!(scope.text(0).as_deref(), Some("t2"));
    // The refusal of an older token doesn't affect this one.
    tokens.join(&mut scope, &other);
    assert_eq!(tokens.state(&scope, 3), TokenState::Valid);
    tokens.join(&mut scope, &branch());
    assert_eq!(scope.text(0).as_deref(), Some("t2"));
}

#[test]
fn requests_are_those_of_the_rfc() {
    let body = |request: &Request| {
        let Body::Form(fields) = &request.body else {
            panic!("{request:?}");
        };
        let mut scope = user();
        scope.set_text(4, "r 1");
        let mut text = String::new();
        for (name, value) in fields {
            text.push_str(&format!("{name}="));
            value.render(&mut scope, &mut text).unwrap();
            text.push(' ');
        }
        text
    };
    let of = tokens("client_credentials");
    let (id, _) = of.obtain.basic_auth.as_ref().unwrap();
    // Form-encoded before base64 (section 2.3.1).
    assert_eq!(id.as_literal(), Some("c%261"));
    assert_eq!(
        body(&of.obtain),
        "grant_type=client_credentials scope=a+b audience=https%3A%2F%2Fx "
    );
    let of = tokens("password");
    assert!(body(&of.obtain).starts_with("grant_type=password username=u password=p scope="));
    assert!(body(&of.refresh).starts_with("grant_type=refresh_token refresh_token=r+1 scope="));
    let of = tokens("refresh_token");
    assert!(body(&of.obtain).starts_with("grant_type=refresh_token refresh_token=r scope="));
}
