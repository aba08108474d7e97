//! Access checks: the token, the host, and the origin of a request. It sends no response.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, ORIGIN};
use subtle::ConstantTimeEq as _;

/// The origin of a request; sent by every current browser, and not settable by scripts.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The fewest characters of a given token: 16 of these have 95 bits.
const LEAST: usize = 16;
/// The most characters.
const MOST: usize = 128;

/// The secret in the page's address: 128 random bits, or the user's choice.
#[derive(Debug, Clone)]
pub struct Token(String);

impl Token {
    pub(super) fn new() -> std::io::Result<Self> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(hex::encode(bits)))
    }

    /// A given token: letters, digits, `-`, and `_`, 16 of them at least. `None` for any other text.
    #[must_use]
    pub fn given(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_long = (LEAST..=MOST).contains(&text.len());
        (is_long && text.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    /// Its form in the address.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns true if this is the token, in constant time.
    pub(super) fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

/// Returns true if the host of a request is an address or this machine's own name for itself: another name may have
/// been made to point here.
pub(super) fn is_our_host(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(|host| {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        name == "localhost" || bare.unwrap_or(name).parse::<IpAddr>().is_ok()
    })
}

/// Returns true if a changing request comes from the page itself, or from no page.
pub(super) fn is_own_page(headers: &HeaderMap) -> bool {
    let of = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = of(FETCH_SITE) {
        return matches!(site, "same-origin" | "none");
    }
    match (of(ORIGIN), of(HOST)) {
        (None, _) => true,
        (Some(origin), Some(host)) => origin.strip_prefix("http://") == Some(host),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let all = all
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        all.collect()
    }

    #[test]
    fn hosts_are_addresses_and_localhost() {
        for (host, ours) in [
            ("127.0.0.1:8080", true),
            ("localhost:8080", true),
            ("[::1]:8080", true),
            ("10.0.0.7", true),
            ("evil.example:8080", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example:80", false),
            ("", false),
        ] {
            assert_eq!(is_our_host(&headers(&[("host", host)])), ours, "{host}");
        }
        assert!(!is_our_host(&headers(&[])));
    }

    #[test]
    fn only_the_page_itself_changes_anything() {
        let host = ("host", "127.0.0.1:8080");
        for (all, own) in [
            (vec![host], true),
            (vec![host, ("sec-fetch-site", "same-origin")], true),
            (vec![host, ("sec-fetch-site", "cross-site")], false),
            (vec![host, ("sec-fetch-site", "same-site")], false),
            (vec![host, ("origin", "http://127.0.0.1:8080")], true),
            (vec![host, ("origin", "http://evil.example")], false),
            (vec![host, ("origin", "null")], false),
        ] {
            assert_eq!(is_own_page(&headers(&all)), own, "{all:?}");
        }
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, other) = (Token::new().unwrap(), Token::new().unwrap());
        assert_eq!(one.text().len(), 32);
        assert!(one.is(one.text()) && !one.is(other.text()) && !one.is(""));
    }
}
