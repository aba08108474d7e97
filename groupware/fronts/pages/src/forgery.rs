//! Refuses forms that other sites send in a user's name.
//!
//! Three fences, each enough by itself where browsers keep to the rules: the session's cookie is
//! `SameSite=Lax`, so that other sites' forms don't carry it; the request must say that it comes
//! from a page of this server; and it must carry a token that only such a page shows. The token
//! is the user's, not the session's: who was signed out while writing signs in again and sends
//! the same form.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use groupware_people::Account;
use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use subtle::ConstantTimeEq;

/// The field that carries the token.
pub(crate) const FIELD: &str = "proof";

/// The token of a user's forms. It ends with the server.
pub(crate) fn token(key: &[u8; 32], account: &Account) -> String {
    let hash = blake3::keyed_hash(key, account.name.key().as_bytes());
    URL_SAFE_NO_PAD.encode(&hash.as_bytes()[..24])
}

/// Whether a form carries its user's token.
pub(crate) fn is_genuine(expected: &str, given: &str) -> bool {
    expected.as_bytes().ct_eq(given.as_bytes()).into()
}

/// Whether a request comes from a page of this server, as browsers tell it: by `Sec-Fetch-Site`,
/// which also holds behind a proxy that changes the host's name, or by `Origin`, which they have
/// sent with every form since 2020. Who sends neither is no browser of today.
pub(crate) fn comes_from_here(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    if let Some(site) = text("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let origin = text(ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
    match (origin, text(HOST.as_str())) {
        (Some((_, origin)), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_server_count() {
        let check = |pairs: &[(&'static str, &str)], expected| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
                .collect();
            assert_eq!(comes_from_here(&headers), expected, "{pairs:?}");
        };
        let host = ("host", "mail.example:8340");
        check(&[host, ("sec-fetch-site", "same-origin")], true);
        check(&[host, ("sec-fetch-site", "none")], true);
        check(&[host, ("sec-fetch-site", "same-site")], false);
        check(&[host, ("sec-fetch-site", "cross-site")], false);
        check(&[host, ("origin", "http://mail.example:8340")], true);
        check(&[host, ("origin", "https://MAIL.example:8340")], true);
        check(&[host, ("origin", "http://mail.example")], false);
        check(&[host, ("origin", "http://evil.example:8340")], false);
        check(&[host, ("origin", "null")], false);
        check(&[host], false);
        // The browser's own word counts before a header that others can have set.
        let pair = ("origin", "http://mail.example:8340");
        check(&[host, ("sec-fetch-site", "cross-site"), pair], false);
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(is_genuine("abc", "abc"));
        for other in ["", "ab", "abd", "abcd"] {
            assert!(!is_genuine("abc", other), "{other}");
        }
    }
}
