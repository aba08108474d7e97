//! Rejects forms that other sites send in a user's name (CSRF).
//!
//! Three checks, each sufficient with conforming browsers: the session's cookie is `SameSite=Lax`,
//! so that other sites' forms don't carry it; the request must declare a page of this server as its
//! origin; and it must carry a token that only such a page contains. The token belongs to the user,
//! not the session: a user who was signed out while writing signs in again and sends the same form.
//! A new password, and another user of the same name, have another token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use groupware_people::Account;
use http::HeaderMap;
use subtle::ConstantTimeEq;

/// The field that carries the token.
pub(crate) const FIELD: &str = "proof";

/// Returns the token of a user's forms, the same on all servers of one store.
pub(crate) fn token(key: &[u8; 32], account: &Account) -> String {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&account.created.to_le_bytes());
    hasher.update(&account.credentials().stamp.to_le_bytes());
    hasher.update(account.name.key().as_bytes());
    URL_SAFE_NO_PAD.encode(&hasher.finalize().as_bytes()[..24])
}

/// Returns true if a form carries its user's token.
pub(crate) fn is_genuine(expected: &str, given: &str) -> bool {
    expected.as_bytes().ct_eq(given.as_bytes()).into()
}

/// Returns true if a form is from a page of this server. A request without origin is from no
/// current browser, and only browsers send forms.
pub(crate) fn comes_from_here(headers: &HeaderMap) -> bool {
    groupware_http::comes_from_here(headers) == Some(true)
}

#[cfg(test)]
mod tests {
    use groupware_people::{Credentials, UserName};

    use super::*;

    #[test]
    fn a_token_is_of_one_user_with_one_password() {
        let name = || UserName::parse("ada").unwrap();
        let with = |created, stamp| {
            let credentials = Credentials {
                stamp,
                ..Credentials::default()
            };
            token(&[7; 32], &Account::new(name(), created, credentials))
        };
        assert_eq!(with(1, 2), with(1, 2));
        assert_ne!(with(1, 2), with(1, 3));
        assert_ne!(with(1, 2), with(2, 2));
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(is_genuine("abc", "abc"));
        for other in ["", "ab", "abd", "abcd"] {
            assert!(!is_genuine("abc", other), "{other}");
        }
    }
}
