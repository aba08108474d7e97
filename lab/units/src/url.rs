//! The address of a server: scheme, host, and port, parsed from a URL and formatted as one.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Schemes: whether they mean TLS, and the default port.
const SCHEMES: [(&str, bool, Option<u16>); 19] = [
    ("grpc", false, None),
    ("grpcs", true, Some(443)),
    ("ws", false, Some(80)),
    ("wss", true, Some(443)),
    ("http", false, Some(80)),
    ("https", true, Some(443)),
    ("tcp", false, None),
    ("tls", true, None),
    ("udp", false, None),
    ("redis", false, Some(6379)),
    ("rediss", true, Some(6379)),
    ("mqtt", false, Some(1883)),
    ("mqtts", true, Some(8883)),
    ("smtp", false, Some(25)),
    ("smtps", true, Some(465)),
    ("imap", false, Some(143)),
    ("imaps", true, Some(993)),
    ("postgres", false, Some(5432)),
    ("postgresql", false, Some(5432)),
];

/// Scheme, host, and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BaseUrl {
    /// True if its protocol is HTTP.
    pub http: bool,
    /// True if TLS is used from the start: `https` rather than `http`.
    pub secure: bool,
    /// True if it takes datagrams (UDP), not connections.
    pub datagrams: bool,
    /// Name or address; an IPv6 address without its brackets.
    pub host: String,
    /// The port, also if it is the scheme's own.
    pub port: u16,
}

/// Why a text is no [`BaseUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// A user name, or a password, before the host. The text is the URL without them.
    #[error(
        "“{0}” had a user before its host: write that as `basic_auth: {{ username: …, password: … }}` of a request, \
         or as a header `Authorization`"
    )]
    User(String),
    /// The socket of a file.
    #[error(
        "“{0}” is a socket of a file: have the server listen at an address, or pass it on: \
         socat TCP-LISTEN:8080,fork,reuseaddr,bind=127.0.0.1 UNIX-CONNECT:PATH"
    )]
    Unix(String),
    /// A path where only a server is expected.
    #[error("“{0}” has a path, and only the server is asked for")]
    Path(String, BaseUrl),
    /// Anything else.
    #[error("“{0}” is not of the form http://host:port or https://host:port")]
    Form(String),
}

impl BaseUrlError {
    fn of(url: &str) -> Self {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        let rest = rest.trim_start_matches('/');
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        match authority.rsplit_once('@') {
            _ if scheme.contains("unix") => Self::Unix(url.to_owned()),
            Some((user, _)) => Self::User(url.replacen(&format!("{user}@"), "", 1)),
            None => Self::Form(url.to_owned()),
        }
    }
}

impl BaseUrl {
    /// The value of the `Host` header: without the port if it is the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            // A zone is local to this machine (RFC 6874, section 4).
            let address = self.host.split('%').next().unwrap_or(&self.host);
            format!("[{address}]")
        } else {
            self.host.clone()
        };
        if self.http && self.port == Self::default_port(self.secure) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// The default port of a URL of HTTP.
    #[must_use]
    pub fn default_port(secure: bool) -> u16 {
        if secure { 443 } else { 80 }
    }

    /// As [`BaseUrl::split`], for an HTTP server.
    ///
    /// # Errors
    /// When the text is no URL of one.
    pub fn split_http(url: &str) -> Result<(Self, &str), BaseUrlError> {
        let split = Self::split(url)?;
        match split.0.http {
            true => Ok(split),
            false => Err(BaseUrlError::of(url)),
        }
    }

    /// Splits an absolute URL into its server and the path with query, at least `/`; a fragment is dropped. User names
    /// in the URL are refused. Names in scripts other than Latin become punycode. Besides `http` and `https` there are
    /// `tcp` and `tls` for other protocols, which need a port, and names of protocols with default ports.
    ///
    /// # Errors
    /// When the text is no such URL.
    pub fn split(url: &str) -> Result<(Self, &str), BaseUrlError> {
        let bad = || BaseUrlError::of(url);
        let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
        let scheme = scheme.to_ascii_lowercase();
        let known = SCHEMES.iter().find(|(name, ..)| *name == scheme);
        let &(_, secure, default_port) = known.ok_or_else(bad)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = split_authority(authority).ok_or_else(bad)?;
        let host = match host.is_ascii() {
            true => Cow::Borrowed(host),
            false => {
                let named = ::url::Url::parse(&format!("http://{host}/")).map_err(|_| bad())?;
                Cow::Owned(named.host_str().ok_or_else(bad)?.to_owned())
            }
        };
        // The zone of an address, in the notation of RFC 6874.
        let host = host.replacen("%25", "%", usize::from(host.contains(':')));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err(bad());
        }
        let port = match port {
            None => default_port.ok_or_else(bad)?,
            Some(text) => text.parse().ok().filter(|p| *p != 0).ok_or_else(bad)?,
        };
        let path = path.split('#').next().unwrap_or_default();
        Ok((
            Self {
                http: scheme.starts_with("http"),
                secure,
                datagrams: scheme == "udp",
                host: host.to_ascii_lowercase(),
                port,
            },
            path,
        ))
    }
}

fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None if rest.is_empty() => Some((host, None)),
            None => None,
        };
    }
    match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
        None => Some((authority, None)),
    }
}

impl From<BaseUrl> for String {
    fn from(url: BaseUrl) -> Self {
        url.to_string()
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = BaseUrlError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        match Self::split(text) {
            Ok((base, "" | "/")) => Ok(base),
            Ok((base, _)) => Err(BaseUrlError::Path(text.to_owned(), base)),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.http, self.secure) {
            (true, false) => "http",
            (true, true) => "https",
            (false, false) if self.datagrams => "udp",
            (false, false) => "tcp",
            (false, true) => "tls",
        };
        write!(f, "{scheme}://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_parse_and_print() {
        for (text, printed) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("HTTPS://Example.org/", "https://example.org"),
            ("http://[::1]:81", "http://[::1]:81"),
            ("https://host:443", "https://host"),
            ("tcp://host:80", "tcp://host:80"),
            ("tls://[::1]:443", "tls://[::1]:443"),
            ("udp://host:53", "udp://host:53"),
            ("redis://host", "tcp://host:6379"),
            ("rediss://host:1", "tls://host:1"),
            (
                "http://Bücher.example:81",
                "http://xn--bcher-kva.example:81",
            ),
            ("http://[fe80::1%25eth0]:81", "http://[fe80::1]:81"),
            ("http://[fe80::1%eth0]:81", "http://[fe80::1]:81"),
        ] {
            assert_eq!(text.parse::<BaseUrl>().unwrap().to_string(), printed);
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for text in [
            "",
            "host:80",
            "ftp://host",
            "tcp://host",
            "redis://host/3",
            "http://",
            "http://host:0",
            "http://host:99999",
            "http://host/path",
            "http://user@host",
            "http://a:b:c",
            "http://[::1",
            "http://h ost",
            "http://host:80\r\nX: y",
        ] {
            assert!(text.parse::<BaseUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_error_has_its_cause() {
        let said = |url: &str| url.parse::<BaseUrl>().unwrap_err().to_string();
        for (url, cause) in [
            ("http://me:p4ss@host:80/", "basic_auth"),
            ("unix:///run/app.sock", "socket of a file"),
            ("http+unix://%2Frun%2Fapp.sock/x", "socket of a file"),
            (
                "http://host/path",
                "has a path, and only the server is asked for",
            ),
            ("host:80", "not of the form"),
        ] {
            assert!(said(url).contains(cause), "{}", said(url));
        }
        assert!(!said("http://me:p4ss@host:80/").contains("p4ss"));
        let zone = "http://[fe80::1%25eth0]".parse::<BaseUrl>().unwrap();
        assert_eq!(zone.host, "fe80::1%eth0");
    }

    #[test]
    fn an_absolute_url_splits_into_server_and_path() {
        let (base, path) = BaseUrl::split("http://h:81?x=1#frag").unwrap();
        assert_eq!((base.port, path), (81, "?x=1"));
    }
}
