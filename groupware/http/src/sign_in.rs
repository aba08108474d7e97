//! Authenticates requests: by session, password, or application password.

use std::sync::Arc;

use groupware_auth::SignInError;
use groupware_people::Account;
use groupware_proto_http::{Authorization, authorization, session_cookie, session_pair};
use groupware_runtime::Caller;
use groupware_service::Service;
use groupware_store::StoreError;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderValue};

use crate::client::client;
use crate::error::ApiError;

/// Returns the account that sends the request. An `Authorization` header takes precedence over a session cookie.
///
/// # Errors
/// 401 for missing or wrong credentials; 429 after too many wrong ones; 503 if too many passwords
/// wait to be verified.
pub async fn authenticate(
    service: &Service,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Arc<Account>, ApiError> {
    if let Some(header) = headers.get(AUTHORIZATION) {
        return match authorization(header.as_bytes()) {
            Some(Authorization::Basic { user, password }) => {
                let client = client(caller);
                let proven = service
                    .auth
                    .verify(caller, client, &user, &password)
                    .await?;
                caller.signed_in(&proven.account);
                Ok(proven.account)
            }
            _ => Err(ApiError::unauthenticated(
                "Sign in with Basic authentication.",
            )),
        };
    }
    let account = session(service, headers)?
        .ok_or_else(|| ApiError::unauthenticated("Sign in to use this."))?;
    caller.signed_in(&account);
    Ok(account)
}

/// Identifies the sender where that costs only a look-up, so that users have their own share from
/// the start: by session or application password, not by a password that needs hashing.
pub(crate) fn recognise(service: &Service, caller: &Caller, headers: &HeaderMap) {
    if !caller.is_nobody_yet() {
        return;
    }
    let account = match headers.get(AUTHORIZATION) {
        Some(header) => match authorization(header.as_bytes()) {
            Some(Authorization::Basic { user, password }) => {
                service.auth.recognise(&user, &password)
            }
            _ => None,
        },
        // A sender that is not identified here is authenticated later.
        None => session(service, headers).ok().flatten(),
    };
    if let Some(account) = account {
        caller.signed_in(&account);
    }
}

/// Returns the user of the request's session, if any.
///
/// # Errors
/// When the store must be read, and can't be.
pub fn session(service: &Service, headers: &HeaderMap) -> Result<Option<Arc<Account>>, StoreError> {
    match session_token(headers) {
        Some(token) => service.auth.session(token),
        None => Ok(None),
    }
}

/// Returns the request's session token, if any.
pub fn session_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .find_map(|header| session_cookie(header.as_bytes()))
}

/// The cookies that carry sessions.
#[derive(Debug, Clone, Copy)]
pub struct Cookies {
    /// Whether they are for HTTPS only.
    pub are_secure: bool,
}

impl Cookies {
    /// Starts a session after checking the password, and returns the session cookie.
    ///
    /// # Errors
    /// Those of [`authenticate`], without a challenge: a browser would open its own dialogue over
    /// the page's form.
    pub async fn sign_in(
        self,
        service: &Service,
        caller: &Caller,
        headers: &HeaderMap,
        (username, password): (&str, &str),
    ) -> Result<(Arc<Account>, HeaderValue), ApiError> {
        let client = client(caller);
        let refused = |error: SignInError| ApiError::from(error).challenge(None);
        let proven = service
            .auth
            .verify(caller, client, username, password)
            .await;
        let proven = proven.map_err(refused)?;
        caller.signed_in(&proven.account);
        let token = service.auth.start_session(&proven).await.map_err(refused)?;
        Ok((proven.account, self.cookie(headers, &token)?))
    }

    /// Ends the request's session, if any, and returns the cookie that removes its cookie.
    ///
    /// # Errors
    /// When the store can't record it; when the cookie can't be written.
    pub async fn sign_out(
        self,
        service: &Service,
        headers: &HeaderMap,
    ) -> Result<HeaderValue, ApiError> {
        if let Some(token) = session_token(headers) {
            service.auth.sessions.end(token).await?;
        }
        let mut gone = self.cookie(headers, "")?.as_bytes().to_vec();
        gone.extend_from_slice(b"; Max-Age=0");
        HeaderValue::from_bytes(&gone)
            .map_err(|_| ApiError::bad_request("The cookie can't be written."))
    }

    /// `SameSite=Lax`: other sites' pages can link to this server but not act in the user's name.
    fn cookie(self, headers: &HeaderMap, token: &str) -> Result<HeaderValue, ApiError> {
        let is_secure = self.are_secure || is_within_tls(headers);
        let secure = if is_secure { "; Secure" } else { "" };
        let pair = session_pair(token, is_secure);
        HeaderValue::try_from(format!("{pair}; HttpOnly; SameSite=Lax; Path=/{secure}"))
            .map_err(|_| ApiError::bad_request("The cookie can't be written."))
    }
}

/// Returns true if a proxy reports that its client uses TLS. Any client may send this header: its
/// cookie then counts within TLS only.
fn is_within_tls(headers: &HeaderMap) -> bool {
    let told = headers.get_all("x-forwarded-proto").iter().next_back();
    let told = told.and_then(|list| list.to_str().ok()?.rsplit(',').next());
    told.is_some_and(|protocol| protocol.trim().eq_ignore_ascii_case("https"))
}
