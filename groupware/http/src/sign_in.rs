//! Finds out who sends a request: by session, password, or application password.

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

/// Who sends the request. An `Authorization` header counts before a session cookie.
///
/// # Errors
/// 401 for nobody or wrong credentials; 429 after too many of those; 503 if too many passwords
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

/// Finds out who sends the request where that costs no more than a look, so that users have their own
/// share from the first moment: by session or application password, not by a password that would have
/// to be hashed.
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
        // Whoever can't be found now is told so later.
        None => session(service, headers).ok().flatten(),
    };
    if let Some(account) = account {
        caller.signed_in(&account);
    }
}

/// The user of the session that the request carries, if it does.
///
/// # Errors
/// When the store has to be asked, and can't be.
pub fn session(service: &Service, headers: &HeaderMap) -> Result<Option<Arc<Account>>, StoreError> {
    match session_token(headers) {
        Some(token) => service.auth.session(token),
        None => Ok(None),
    }
}

/// The token of the session that the request carries, if it does.
pub fn session_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .find_map(|header| session_cookie(header.as_bytes()))
}

/// The cookies that carry sessions.
#[derive(Debug, Clone, Copy)]
pub struct Cookies {
    /// They are for HTTPS only.
    pub are_secure: bool,
}

impl Cookies {
    /// Starts a session for whoever has the password, and gives the cookie that carries it.
    ///
    /// # Errors
    /// As those of [`authenticate`], without a challenge: a browser would open its own dialogue over
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

    /// Ends the request's session, if it has one, and gives the cookie that removes its cookie.
    ///
    /// # Errors
    /// When the store doesn't take that; when the cookie can't be written.
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

    /// `SameSite=Lax`: other sites' pages can link to this server but not act on it in the user's
    /// name.
    fn cookie(self, headers: &HeaderMap, token: &str) -> Result<HeaderValue, ApiError> {
        let is_secure = self.are_secure || is_within_tls(headers);
        let secure = if is_secure { "; Secure" } else { "" };
        let pair = session_pair(token, is_secure);
        HeaderValue::try_from(format!("{pair}; HttpOnly; SameSite=Lax; Path=/{secure}"))
            .map_err(|_| ApiError::bad_request("The cookie can't be written."))
    }
}

/// Whether a proxy says that the client speaks TLS with it. Anybody may say so: whoever does gets a cookie
/// that counts within TLS alone.
fn is_within_tls(headers: &HeaderMap) -> bool {
    let told = headers.get_all("x-forwarded-proto").iter().next_back();
    let told = told.and_then(|list| list.to_str().ok()?.rsplit(',').next());
    told.is_some_and(|protocol| protocol.trim().eq_ignore_ascii_case("https"))
}
