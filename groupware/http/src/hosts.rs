//! The host names of a server.
//!
//! A page of another site can point its own name at this machine, and then read and write with the
//! rights of any local client (DNS rebinding). The host name of the request reveals this.

use std::net::IpAddr;

use http::header::HOST;
use http::{HeaderMap, Uri};

/// The accepted host names, if they are checked at all.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Option<Vec<String>>);

impl Hosts {
    /// Accepts any name.
    pub fn any() -> Self {
        Self(None)
    }

    /// Accepts these names, `localhost`, and addresses, which no other site's page can have.
    pub fn only(names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter();
        Self(Some(names.map(|name| name.to_ascii_lowercase()).collect()))
    }

    /// Returns the request's host name if it is not accepted. A request without a name is from no browser.
    pub(crate) fn foreign<'a>(&self, uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
        let names = self.0.as_ref()?;
        // The name in the request line takes precedence over the header (RFC 9112, 3.2.2).
        let host = match uri.host() {
            Some(host) => host,
            None => match headers.get(HOST)?.to_str() {
                Ok(host) => without_port(host),
                Err(_) => return Some(""),
            },
        };
        let name = host.trim_end_matches('.');
        let counts = name.eq_ignore_ascii_case("localhost")
            || is_address(name)
            || names.iter().any(|known| name.eq_ignore_ascii_case(known));
        (!counts).then_some(host)
    }
}

fn is_address(name: &str) -> bool {
    let plain = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    plain.unwrap_or(name).parse::<IpAddr>().is_ok()
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_not_said_do_not_count() {
        let hosts = Hosts::only(["Mail.example".to_owned()]);
        let check = |uri: &str, host: Option<&str>, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.extend(host.map(|host| (HOST, host.parse().unwrap())));
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(hosts.foreign(&uri, &headers), expected, "{uri} {host:?}");
            assert_eq!(Hosts::any().foreign(&uri, &headers), None);
        };
        for host in [
            "localhost",
            "LOCALHOST:8340",
            "127.0.0.1:8340",
            "[::1]:8340",
            "[::1]",
            "192.0.2.7",
            "mail.example",
            "MAIL.example.:443",
        ] {
            check("/", Some(host), None);
        }
        check("/", None, None);
        check("/", Some("evil.example:8340"), Some("evil.example"));
        check("/", Some("xmail.example"), Some("xmail.example"));
        check(
            "/",
            Some("localhost.evil.example"),
            Some("localhost.evil.example"),
        );
        check("/", Some(""), Some(""));
        check(
            "/",
            Some("127.0.0.1.evil.example"),
            Some("127.0.0.1.evil.example"),
        );
        check(
            "http://evil.example/x",
            Some("localhost"),
            Some("evil.example"),
        );
        check("http://localhost:1/x", Some("evil.example"), None);
    }
}
