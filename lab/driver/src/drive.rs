//! What to drive: the workload, its server, the load, and the limits. Data only.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use lab_workload::LoadKind;
use lab_workload::Workload;
use serde::{Deserialize, Serialize};

/// One trial's worth of driving.
#[derive(Debug, Clone)]
pub struct Drive {
    /// What the users do, already at the plan's speed.
    pub workload: Arc<Workload>,
    /// The server.
    pub base: BaseUrl,
    /// How an `https` server is trusted.
    pub tls: TlsOptions,
    /// What makes sessions begin.
    pub kind: LoadKind,
    /// Number of virtual users, at least one; of arrivals, the connections that their sessions
    /// share, each with a user's identity; of a sequence, one.
    pub users: u32,
    /// Which of the users this program drives.
    pub part: Part,
    /// Further variables per user, such as a password from provisioning; either empty or one entry
    /// per user.
    pub user_extra: Vec<Vec<(String, String)>>,
    /// The study's seed.
    pub seed: u64,
    /// The block of this trial; with the seed and the user's index it fixes all randomness.
    pub block: u32,
    /// Day 0 of the date functions.
    pub base_date: Date,
    /// One worker thread per entry, pinned to that core; empty = one, unpinned.
    pub cores: Vec<usize>,
    /// Nothing under test runs on these cores, so that the workers go before whatever else turns up
    /// there: they take the highest priority where that is allowed.
    pub own_cores: bool,
    /// User i starts at `ramp × i ÷ users`; the rate of arrivals rises in a straight line.
    pub ramp: Duration,
    /// How long the full load lasts after the ramp; a sequence ends earlier when it is through.
    pub hold: Duration,
    /// Length of a window of counts; above zero.
    pub window: Duration,
    /// Bounds.
    pub limits: Limits,
}

impl Drive {
    /// Worker threads: one per core, but one in all for a sequence, which has but one user.
    pub(crate) fn workers(&self) -> usize {
        match self.kind {
            LoadKind::Sequence { .. } => 1,
            LoadKind::Users | LoadKind::Arrival { .. } => self.cores.len().max(1),
        }
    }
}

/// One program's part of the users: those whose number leaves `index` when divided by `of`, and of
/// sessions that arrive likewise. Part 0 sends the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// From 0, below `of`.
    pub index: u32,
    /// At least one.
    pub of: u32,
}

impl Part {
    /// All users.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// Bounds on what a request may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From the send to the last byte of the answer.
    pub request_timeout: Duration,
    /// For a new connection, TLS included. The request timeout goes on meanwhile.
    pub connect_timeout: Duration,
    /// A step of which a request timed out isn't repeated any further in that session.
    pub timeout_ends_step: bool,
    /// Largest response body.
    pub max_response_bytes: u64,
    /// Largest response head, and largest trailer section of a chunked body.
    pub max_header_bytes: usize,
    /// A connection idle for longer is closed before its next use.
    pub keep_alive_idle: Duration,
    /// Users in setup at the same time, over all workers.
    pub setup_concurrency: u32,
    /// Arrived sessions that may wait for a connection, over all workers; more are dropped and
    /// counted as such.
    pub max_waiting: u32,
    /// After a timeout, a connect failure, or a reset the user's next request goes out no sooner
    /// than this, also in a workload without waits.
    pub failure_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_millis(lab_workload::TIMEOUT_MS),
            connect_timeout: Duration::from_secs(10),
            timeout_ends_step: false,
            max_response_bytes: 64 << 20,
            max_header_bytes: 64 << 10,
            keep_alive_idle: Duration::from_secs(300),
            setup_concurrency: 64,
            max_waiting: 1_000_000,
            failure_pause: Duration::from_millis(100),
        }
    }
}

/// How an `https` server is trusted: by the web's usual authorities, and by these.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TlsOptions {
    /// Further root certificates, each a PEM file's content.
    pub extra_roots_pem: Vec<Vec<u8>>,
    /// Takes any certificate. For test systems only.
    pub insecure: bool,
}

/// Scheme, host, and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    /// `https` rather than `http`.
    pub secure: bool,
    /// Name or address; an IPv6 address without its brackets.
    pub host: String,
    /// The port, also where it is the scheme's own.
    pub port: u16,
}

/// Why a text is no [`BaseUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("“{0}” is not of the form http://host:port or https://host:port")]
pub struct BaseUrlError(pub String);

impl BaseUrl {
    /// What the `Host` header says: without the port where it is the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == Self::default_port(self.secure) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    pub(crate) fn default_port(secure: bool) -> u16 {
        if secure { 443 } else { 80 }
    }

    /// Splits an absolute URL into its server and the path with query, at least `/`; a fragment
    /// is dropped. User names in the URL are refused.
    ///
    /// # Errors
    /// What is no such URL.
    pub fn split(url: &str) -> Result<(Self, &str), BaseUrlError> {
        let bad = || BaseUrlError(url.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(bad()),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = split_authority(authority).ok_or_else(bad)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err(bad());
        }
        let port = match port {
            None => Self::default_port(secure),
            Some(text) => text.parse().ok().filter(|p| *p != 0).ok_or_else(bad)?,
        };
        let path = path.split('#').next().unwrap_or_default();
        Ok((
            Self {
                secure,
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

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        match Self::split(text) {
            Ok((base, "" | "/")) => Ok(base),
            _ => Err(BaseUrlError(text.to_owned())),
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
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
    fn an_absolute_url_splits_into_server_and_path() {
        let (base, path) = BaseUrl::split("http://h:81?x=1#frag").unwrap();
        assert_eq!((base.port, path), (81, "?x=1"));
    }
}
