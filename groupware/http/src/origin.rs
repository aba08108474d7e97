//! The origin of a request: a page of this server, a page of another site, or no page at all.
//!
//! A browser adds its cookies and saved passwords to every request, whichever page makes it. So a
//! request that changes something is rejected where the browser reports another site's page.

use http::HeaderMap;
use http::Method;
use http::header::{HOST, ORIGIN};

/// Returns true if a page of this server made the request, as browsers report it: by `Sec-Fetch-Site`,
/// which also holds behind a proxy that changes the host name, or by `Origin`, which they have sent
/// with every form since 2020. A client that sends neither is no current browser: `None`.
pub fn comes_from_here(headers: &HeaderMap) -> Option<bool> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    if headers.contains_key("sec-fetch-site") {
        return Some(matches!(
            text("sec-fetch-site"),
            Some("same-origin" | "none")
        ));
    }
    headers.get(ORIGIN)?;
    let origin = text(ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
    Some(match (origin, text(HOST.as_str())) {
        (Some((_, origin)), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    })
}

/// Returns true if the request would change something for another site's page.
pub(crate) fn is_forged(method: &Method, headers: &HeaderMap) -> bool {
    !method.is_safe() && comes_from_here(headers) == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_pages_of_this_server_count() {
        let check = |pairs: &[(&'static str, &str)], expected| {
            assert_eq!(comes_from_here(&headers(pairs)), expected, "{pairs:?}");
        };
        let host = ("host", "mail.example:8340");
        let (here, elsewhere) = (Some(true), Some(false));
        check(&[host, ("sec-fetch-site", "same-origin")], here);
        check(&[host, ("sec-fetch-site", "none")], here);
        check(&[host, ("sec-fetch-site", "same-site")], elsewhere);
        check(&[host, ("sec-fetch-site", "cross-site")], elsewhere);
        check(&[host, ("origin", "http://mail.example:8340")], here);
        check(&[host, ("origin", "https://MAIL.example:8340")], here);
        check(&[host, ("origin", "http://mail.example")], elsewhere);
        check(&[host, ("origin", "http://evil.example:8340")], elsewhere);
        check(&[host, ("origin", "null")], elsewhere);
        check(&[host], None);
        // The browser's own header takes precedence over one that others can set.
        let pair = ("origin", "http://mail.example:8340");
        check(&[host, ("sec-fetch-site", "cross-site"), pair], elsewhere);
    }

    #[test]
    fn who_only_reads_may_come_from_anywhere() {
        let elsewhere = headers(&[("sec-fetch-site", "cross-site")]);
        for (method, expected) in [
            (Method::GET, false),
            (Method::HEAD, false),
            (Method::OPTIONS, false),
            (Method::POST, true),
            (Method::PUT, true),
            (Method::DELETE, true),
            (Method::PATCH, true),
        ] {
            assert_eq!(is_forged(&method, &elsewhere), expected, "{method}");
        }
    }
}
