//! Who may register.
//!
//! The original services ask nobody who they are. Here that holds only as long as nobody but this
//! machine can reach the server.

use std::str::FromStr;

use groupware_lookup::Registrant;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};

use super::reply::Failure;
use crate::AppState;
use crate::admin::Admin;
use crate::client::is_forwarded;
use crate::credentials::{self, Authorization};
use crate::error::ApiError;
use crate::sign_in;

/// Who may change registrations. Everybody may read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupAccess {
    /// Whoever can reach the server.
    Open,
    /// Users, each their own, and who has the admin token.
    Users,
    /// There is no lookup service.
    Off,
}

/// The names that settings have for it, in the order of the variants.
const NAMES: [(&str, LookupAccess); 3] = [
    ("open", LookupAccess::Open),
    ("users", LookupAccess::Users),
    ("off", LookupAccess::Off),
];

impl FromStr for LookupAccess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, access)| *access)
            .ok_or_else(|| "one of open, users, off".to_owned())
    }
}

/// Who may register, as it was set or as it follows from who can reach the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    access: LookupAccess,
    /// Nobody said so: a proxy that hands on what others ask makes it a service for users.
    is_default: bool,
}

impl Access {
    pub(crate) fn new(set: Option<LookupAccess>, exposed: bool) -> Self {
        let default = match exposed {
            true => LookupAccess::Users,
            false => LookupAccess::Open,
        };
        Self {
            access: set.unwrap_or(default),
            is_default: set.is_none(),
        }
    }

    pub(crate) fn is_off(self) -> bool {
        self.access == LookupAccess::Off
    }

    fn is_open_to(self, headers: &HeaderMap) -> bool {
        self.access == LookupAccess::Open && !(self.is_default && is_forwarded(headers))
    }
}

/// Media types of bodies.
pub(super) const JSON: &[&str] = &["application/json"];
pub(super) const XML: &[&str] = &["text/xml", "application/xml", "application/soap+xml"];

/// Who sends a change. Only an `Authorization` header tells: a cookie would go along with whatever
/// another site has a browser send.
///
/// # Errors
/// 401 for nobody where that is asked for, and for wrong credentials.
pub(super) async fn registrant(
    state: &AppState,
    headers: &HeaderMap,
) -> Result<Registrant, ApiError> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return match state.settings.lookup.is_open_to(headers) {
            true => Ok(Registrant::Anybody),
            false => Err(ApiError::unauthenticated(
                "Sign in, or send the admin token, to change registrations.",
            )),
        };
    };
    match credentials::authorization(header.as_bytes()) {
        Some(Authorization::Bearer(_)) => Admin::check(state, headers).map(|_| Registrant::Admin),
        _ => {
            let account = sign_in::authenticate(state, headers).await?;
            Ok(Registrant::User(account.name.key().as_ref().to_owned()))
        }
    }
}

/// Who sends a change whose body has to be of one of these types.
///
/// # Errors
/// As [`registrant`]; 415 for another type.
pub(super) async fn changer(
    state: &AppState,
    headers: &HeaderMap,
    types: &[&'static str],
) -> Result<Registrant, Failure> {
    check_type(headers, types)?;
    Ok(registrant(state, headers).await?)
}

/// Whether the body has one of these types. A browser asks before it lets a page of another site
/// send one of them: without it, any page could register here whoever it likes.
pub(super) fn check_type(headers: &HeaderMap, types: &[&'static str]) -> Result<(), Failure> {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    match types
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
    {
        true => Ok(()),
        false => Err(Failure::MediaType(types[0])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_be_reached_by_others_asks_who_they_are() {
        let mut forwarded = HeaderMap::new();
        forwarded.insert("x-forwarded-for", "192.0.2.1".parse().unwrap());
        let direct = HeaderMap::new();
        let check = |set, exposed, from_here, from_proxy| {
            let access = Access::new(set, exposed);
            assert_eq!(access.is_open_to(&direct), from_here, "{set:?} {exposed}");
            assert_eq!(
                access.is_open_to(&forwarded),
                from_proxy,
                "{set:?} {exposed}"
            );
        };
        check(None, false, true, false);
        check(None, true, false, false);
        check(Some(LookupAccess::Open), true, true, true);
        check(Some(LookupAccess::Users), false, false, false);
        check(Some(LookupAccess::Off), false, false, false);
    }
}
