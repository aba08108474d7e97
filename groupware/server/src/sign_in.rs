//! Finds out who sends a request: by session, password, or application password.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use crate::AppState;
use crate::accounts::{Account, Credentials, Verdict};
use crate::client::Client;
use crate::credentials::{self, Authorization};
use crate::error::ApiError;
use crate::random::{self, SecretHash};
use crate::throttle::Attempt;

const WRONG: &str = "The user name or password is wrong.";

pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/login", axum::routing::post(log_in))
        .route("/logout", axum::routing::post(log_out))
}

/// Who sends the request. An `Authorization` header counts before a session cookie.
///
/// # Errors
/// 401 for nobody or wrong credentials; 429 after too many of those; 503 if too many passwords
/// wait to be verified.
pub(crate) async fn authenticate(
    state: &AppState,
    headers: &HeaderMap,
) -> Result<Arc<Account>, ApiError> {
    if let Some(header) = headers.get(AUTHORIZATION) {
        return match credentials::authorization(header.as_bytes()) {
            Some(Authorization::Basic { user, password }) => {
                let proven = verify(state, Client::of(headers), &user, &password).await?;
                Ok(proven.account)
            }
            _ => Err(ApiError::unauthenticated(
                "Sign in with Basic authentication.",
            )),
        };
    }
    session_token(headers)
        .and_then(|token| state.sessions.find(token, state.clock.now()))
        .ok_or_else(|| ApiError::unauthenticated("Sign in to use this."))
}

pub(crate) fn session_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .find_map(|header| credentials::session_cookie(header.as_bytes()))
}

/// A user, and what proved it.
pub(crate) struct Proven {
    pub(crate) account: Arc<Account>,
    by: Proof,
}

enum Proof {
    AppPassword(SecretHash),
    /// The credentials as they were when the password was looked at.
    Password(Arc<Credentials>),
}

impl Proven {
    /// Whether the proof is still one: looking at a password takes so long that meanwhile the
    /// user may have been deleted, or the password changed.
    fn holds(&self, state: &AppState) -> bool {
        let current = state.directory().find(self.account.name.key());
        if !current.is_some_and(|current| Arc::ptr_eq(&current, &self.account)) {
            return false;
        }
        let now = self.account.credentials();
        match &self.by {
            Proof::AppPassword(hash) => now.has_app_password(hash),
            Proof::Password(then) => then.password == now.password,
        }
    }
}

/// Application passwords are looked at first and always: they can't be guessed. Other passwords
/// are, and so wait while there are too many failures; an unknown user's is refused after
/// the same work as a known user's.
pub(crate) async fn verify(
    state: &AppState,
    client: Client,
    user: &str,
    password: &str,
) -> Result<Proven, ApiError> {
    // By whichever of the user's names: failures count for the user.
    let user = state.directory().local_name(user).unwrap_or(user);
    let account = state.directory().find(user);
    let hash = random::hash(password);
    let known = account.as_ref().map(|account| account.credentials());
    if let (Some(account), Some(known)) = (&account, &known)
        && known.has_app_password(&hash)
    {
        return Ok(Proven {
            account: Arc::clone(account),
            by: Proof::AppPassword(hash),
        });
    }
    let now = state.clock.now();
    let attempt = Attempt { user, client };
    let allowed = || state.throttle.wait(attempt, now).is_none();
    let stored = known.as_ref().and_then(|known| known.password.as_deref());
    let verdict = state
        .passwords
        .verify(user, stored, password, now, allowed)
        .await;
    match (verdict, account.zip(known)) {
        (Verdict::Right, Some((account, known))) => Ok(Proven {
            account,
            by: Proof::Password(known),
        }),
        (Verdict::Right | Verdict::Wrong, _) => {
            state.throttle.failed(attempt, now);
            Err(ApiError::unauthenticated(WRONG))
        }
        (Verdict::Refused, _) => {
            let wait = state.throttle.wait(attempt, now).unwrap_or_default();
            let seconds = u32::try_from(wait.as_secs())
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            let message = "Too many failed sign-ins: try again later.";
            Err(ApiError::later(
                StatusCode::TOO_MANY_REQUESTS,
                message,
                seconds,
            ))
        }
        (Verdict::Busy, _) => {
            let message = "Too many sign-ins at once: try again later.";
            Err(ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 1))
        }
    }
}

#[derive(Deserialize)]
struct LogIn {
    username: String,
    password: String,
}

#[derive(Serialize)]
struct SignedIn<'a> {
    user: &'a str,
}

async fn log_in(
    State(state): State<AppState>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let LogIn { username, password } = read_log_in(&headers, &body)?;
    let (account, cookie) = sign_in(&state, &headers, &username, &password).await?;
    let body = Json(SignedIn {
        user: account.name.spelling(),
    });
    Ok(([(SET_COOKIE, cookie)], body).into_response())
}

/// Starts a session for whoever has the password, and gives the cookie that carries it.
///
/// # Errors
/// As those of [`authenticate`], without a challenge: a browser would open its own dialogue over
/// the page's form.
pub(crate) async fn sign_in(
    state: &AppState,
    headers: &HeaderMap,
    username: &str,
    password: &str,
) -> Result<(Arc<Account>, HeaderValue), ApiError> {
    let proven = verify(state, Client::of(headers), username, password)
        .await
        .map_err(|error| error.challenge(None))?;
    let token = start_session(state, &proven)?;
    let cookie = cookie(&token, state.settings.secure_cookies)?;
    Ok((proven.account, cookie))
}

/// A change of the password, or of the user, ends the user's sessions once it is made: either it
/// finds this one, or this finds the change.
fn start_session(state: &AppState, proven: &Proven) -> Result<String, ApiError> {
    let token = state.sessions.start(&proven.account, state.clock.now());
    if proven.holds(state) {
        return Ok(token);
    }
    state.sessions.end(&token);
    Err(ApiError::unauthenticated(WRONG).challenge(None))
}

fn read_log_in(headers: &HeaderMap, body: &[u8]) -> Result<LogIn, ApiError> {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media_type = media_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return serde_json::from_slice(body)
            .map_err(|_| ApiError::bad_request("The body must be {\"username\", \"password\"}."));
    }
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let (username, password) = credentials::login_form(body)
            .ok_or_else(|| ApiError::bad_request("The form needs username and password."))?;
        return Ok(LogIn { username, password });
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Send a form or application/json.",
    ))
}

/// Ends the session, if there is one.
async fn log_out(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ApiError> {
    let gone = sign_out(&state, &headers)?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, gone)]).into_response())
}

/// Ends the request's session, if it has one, and gives the cookie that removes its cookie.
///
/// # Errors
/// When that can't be written.
pub(crate) fn sign_out(state: &AppState, headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
    if let Some(token) = session_token(headers) {
        state.sessions.end(token);
    }
    let mut gone = cookie("", state.settings.secure_cookies)?
        .as_bytes()
        .to_vec();
    gone.extend_from_slice(b"; Max-Age=0");
    HeaderValue::from_bytes(&gone)
        .map_err(|_| ApiError::bad_request("The cookie can't be written."))
}

/// `SameSite=Lax`: other sites' pages can link to this server but not act on it in the user's
/// name.
fn cookie(token: &str, secure: bool) -> Result<HeaderValue, ApiError> {
    let secure = if secure { "; Secure" } else { "" };
    let name = credentials::COOKIE;
    HeaderValue::try_from(format!(
        "{name}={token}; HttpOnly; SameSite=Lax; Path=/{secure}"
    ))
    .map_err(|_| ApiError::bad_request("The cookie can't be written."))
}

#[cfg(test)]
mod tests {
    use groupware_store::{Store, StoreOptions};

    use super::*;
    use crate::accounts::{NewUser, UserName};

    fn name() -> UserName {
        UserName::parse("ada").unwrap()
    }

    async fn prove(state: &AppState, user: &str, password: &str) -> Result<Proven, ApiError> {
        verify(state, Client::of(&HeaderMap::new()), user, password).await
    }

    async fn with_password(state: &AppState, password: &str) {
        let hash = state.passwords.hash(password.into()).await.unwrap();
        state
            .accounts
            .set_password(name(), hash, 0, 0)
            .await
            .unwrap();
    }

    fn run(test: impl AsyncFnOnce(AppState)) {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let state = crate::server::state_for_tests(store);
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(test(state));
    }

    #[test]
    fn a_sign_in_under_way_does_not_outlive_a_new_password() {
        run(async |state| {
            with_password(&state, "correct horse").await;
            let late = prove(&state, "ada", "correct horse").await.unwrap();
            with_password(&state, "battery staple").await;
            state.sessions.end_all(&late.account);
            assert!(start_session(&state, &late).is_err());
            assert_eq!(state.sessions.count(), 0);
            let new = prove(&state, "ada", "battery staple").await.unwrap();
            assert!(start_session(&state, &new).is_ok());
        });
    }

    #[test]
    fn a_sign_in_under_way_does_not_outlive_its_user() {
        run(async |state| {
            with_password(&state, "correct horse").await;
            let late = prove(&state, "ada", "correct horse").await.unwrap();
            state.accounts.delete("ada").await.unwrap();
            assert!(start_session(&state, &late).is_err());
            // A user of the same name and password is another user.
            with_password(&state, "correct horse").await;
            assert!(start_session(&state, &late).is_err());
            assert_eq!(state.sessions.count(), 0);
        });
    }

    #[test]
    fn a_sign_in_under_way_does_not_outlive_its_application_password() {
        run(async |state| {
            let user = NewUser {
                name: name(),
                app_password: Some("phone"),
                pad_bytes: 0,
            };
            let made = state.accounts.register(vec![user], 0).await.unwrap();
            let password = made[0].app_password.clone().unwrap();
            let late = prove(&state, "ada", &password).await.unwrap();
            // Another one changes nothing.
            let other = state.accounts.add_app_password("ada", "tablet", 0).await;
            assert!(start_session(&state, &late).is_ok());
            let id = &late.account.credentials().app_passwords[0].id.clone();
            assert_ne!(*id, other.unwrap().0);
            state.accounts.remove_app_password("ada", id).await.unwrap();
            state.sessions.end_all(&late.account);
            assert!(start_session(&state, &late).is_err());
            assert_eq!(state.sessions.count(), 0);
        });
    }
}
