//! Destinations of figures, as a user writes them: `prometheus=http://127.0.0.1:9090`. It reads no environment, and
//! opens no connection.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lab_workload::looks_secret;
use url::{Host, Url};

/// A destination of figures, with its credentials.
#[derive(Clone)]
pub struct Destination {
    pub(crate) kind: Kind,
    pub(crate) place: Target,
    /// A form that may be shown: without password, token, and query.
    shown: String,
}

/// The protocol of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Remote write of Prometheus, with histograms as series of buckets.
    Prometheus,
    /// The same with native histograms.
    PrometheusNative,
    /// OTLP metrics over HTTP.
    Otlp,
    /// InfluxDB line protocol.
    Influx,
    /// OpenMetrics text with times, for `promtool`.
    OpenMetrics,
}

#[derive(Clone)]
pub(crate) enum Target {
    Server {
        url: String,
        headers: Vec<(String, String)>,
        is_encrypted: bool,
    },
    File(PathBuf),
}

/// A destination is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// The text doesn't have the required form.
    #[error(
        "{text:?} is not KIND=URL; the kinds are prometheus, prometheus-native, otlp, influx, and openmetrics"
    )]
    Form {
        /// The text, up to the first `=`.
        text: String,
    },
    /// The address can't be used.
    #[error("{kind}: {problem}")]
    Address {
        /// The given kind.
        kind: &'static str,
        /// The problem, and the correct form.
        problem: String,
    },
    /// A secret would be readable by others.
    #[error("{kind}: a password or token is not sent to {host} over plain HTTP; use https://")]
    Exposed {
        /// The given kind.
        kind: &'static str,
        /// The host.
        host: String,
    },
    /// A variable contains no valid header.
    #[error("{variable} is not a list of `Name: value`, one a line")]
    Header {
        /// The variable.
        variable: String,
    },
}

const KINDS: [Kind; 5] = [
    Kind::Prometheus,
    Kind::PrometheusNative,
    Kind::Otlp,
    Kind::Influx,
    Kind::OpenMetrics,
];

impl Kind {
    /// Its name before the `=`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::PrometheusNative => "prometheus-native",
            Self::Otlp => "otlp",
            Self::Influx => "influx",
            Self::OpenMetrics => "openmetrics",
        }
    }

    /// The part of its variables' names.
    fn variable(self) -> &'static str {
        match self {
            Self::Prometheus | Self::PrometheusNative => "PROMETHEUS",
            Self::Otlp => "OTLP",
            Self::Influx => "INFLUX",
            Self::OpenMetrics => "OPENMETRICS",
        }
    }

    /// The default path of its receivers.
    fn usual_path(self) -> Option<&'static str> {
        match self {
            Self::Prometheus | Self::PrometheusNative => Some("/api/v1/write"),
            Self::Otlp => Some("/v1/metrics"),
            Self::Influx | Self::OpenMetrics => None,
        }
    }

    fn takes_files(self) -> bool {
        matches!(self, Self::Influx | Self::OpenMetrics)
    }
}

impl Destination {
    /// Parses `KIND=URL`, or `KIND=FILE` for the text kinds. `secret` returns the variables `PLIMSOLL_SEND_KIND_TOKEN`
    /// (a token, for the header `Authorization`) and `PLIMSOLL_SEND_KIND_HEADERS` (any headers, one a line); each is
    /// only used for its kind.
    ///
    /// # Errors
    /// [`DestinationError`].
    pub fn new(
        text: &str,
        secret: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, DestinationError> {
        let (name, place) = text.split_once('=').unwrap_or((text, ""));
        let kind = KINDS.into_iter().find(|kind| kind.name() == name.trim());
        let (Some(kind), place) = (kind, place.trim()) else {
            let text = name.chars().take(60).collect();
            return Err(DestinationError::Form { text });
        };
        if place.contains("://") {
            return Self::server(kind, place, secret);
        }
        let problem = match kind {
            _ if kind.takes_files() && !place.is_empty() => {
                return Ok(Self {
                    kind,
                    place: Target::File(place.into()),
                    shown: place.to_owned(),
                });
            }
            _ if kind.takes_files() => "name a file, or an address that begins with http://",
            _ => "name an address that begins with http:// or https://",
        };
        Err(address(kind, problem))
    }

    fn server(
        kind: Kind,
        text: &str,
        secret: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, DestinationError> {
        if kind == Kind::OpenMetrics {
            return Err(address(
                kind,
                "it is text for a file; a server takes prometheus=URL",
            ));
        }
        // The address itself is not repeated: it may hold a password.
        let url = Url::parse(text).map_err(|error| address(kind, &error.to_string()))?;
        let mut url = match url.scheme() {
            "http" | "https" if url.host_str().is_some_and(|host| !host.is_empty()) => url,
            _ => return Err(address(kind, "it begins with http:// or https://")),
        };
        match kind.usual_path() {
            Some(path) if url.path() == "/" => url.set_path(path),
            None if url.path() == "/" => {
                return Err(address(
                    kind,
                    "name the address that writes, such as http://HOST:8086/write?db=NAME, or \
                     http://HOST:8086/api/v2/write?org=ORG&bucket=NAME",
                ));
            }
            _ => {}
        }
        let variable = |what: &str| format!("PLIMSOLL_SEND_{}_{what}", kind.variable());
        let given = |what: &str| secret(&variable(what)).filter(|value| !value.trim().is_empty());
        let authorization = authorization(kind, &mut url, given("TOKEN"));
        let named = given("HEADERS").unwrap_or_default();
        let headers = headers(&named).ok_or_else(|| DestinationError::Header {
            variable: variable("HEADERS"),
        })?;
        let lets_in = authorization.is_some()
            || headers.iter().any(|(name, _)| is_secret(name))
            || url.query_pairs().any(|(name, _)| is_secret(&name));
        if lets_in && is_exposed(&url) {
            let host = url.host_str().unwrap_or_default().to_owned();
            let kind = kind.name();
            return Err(DestinationError::Exposed { kind, host });
        }
        let authorization = authorization.map(|value| ("Authorization".to_owned(), value));
        Ok(Self {
            kind,
            shown: shown(&url),
            place: Target::Server {
                is_encrypted: url.scheme() == "https",
                url: url.into(),
                headers: headers.into_iter().chain(authorization).collect(),
            },
        })
    }
}

fn address(kind: Kind, problem: &str) -> DestinationError {
    DestinationError::Address {
        kind: kind.name(),
        problem: problem.to_owned(),
    }
}

/// The credentials, removed from the address if they are there.
fn authorization(kind: Kind, url: &mut Url, token: Option<String>) -> Option<String> {
    let decoded = |text: &str| -> Vec<u8> {
        let pairs = url::form_urlencoded::parse(text.as_bytes()).next();
        pairs.map_or_else(Vec::new, |(name, _)| name.into_owned().into_bytes())
    };
    let user = decoded(&url.username().replace('+', "%2B"));
    let password = decoded(&url.password().unwrap_or_default().replace('+', "%2B"));
    // Only fails for addresses without a host.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    if let Some(token) = token {
        let scheme = if kind == Kind::Influx {
            "Token"
        } else {
            "Bearer"
        };
        return Some(format!("{scheme} {}", token.trim()));
    }
    if user.is_empty() && password.is_empty() {
        return None;
    }
    let both = BASE64.encode([&user[..], b":", &password].concat());
    Some(format!("Basic {both}"))
}

/// Returns true if a parameter of this name is a credential: InfluxDB's password is `p`.
fn is_secret(name: &str) -> bool {
    looks_secret(name) || name == "p" || name.eq_ignore_ascii_case("cookie")
}

/// Returns true if others may read the traffic.
fn is_exposed(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        None => false,
    };
    url.scheme() == "http" && !is_here
}

fn headers(text: &str) -> Option<Vec<(String, String)>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let is_header = !name.is_empty()
            && name.bytes().all(is_token)
            && value
                .bytes()
                .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
        is_header.then(|| (name.to_owned(), value.to_owned()))
    };
    lines.map(header).collect()
}

/// Queries may contain tokens and passwords.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let query = if url.query().is_some() { "?…" } else { "" };
    url.set_query(None);
    url.set_fragment(None);
    format!("{url}{query}")
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind.name(), self.shown)
    }
}

impl fmt::Debug for Destination {
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Destination, DestinationError> {
        Destination::new(text, &|_| None)
    }

    fn sent(destination: &Destination) -> (String, Vec<String>) {
        match &destination.place {
            Target::Server { url, headers, .. } => {
                let headers = headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}"));
                (url.clone(), headers.collect())
            }
            Target::File(path) => (path.display().to_string(), Vec::new()),
        }
    }

    #[test]
    fn addresses_get_the_usual_path_where_they_have_none() {
        for (text, url) in [
            ("prometheus=http://h:9090", "http://h:9090/api/v1/write"),
            ("prometheus-native=https://h/push", "https://h/push"),
            ("otlp=http://[::1]:4318/", "http://[::1]:4318/v1/metrics"),
            (
                "influx=http://h:8086/write?db=x",
                "http://h:8086/write?db=x",
            ),
            ("influx=figures.lp", "figures.lp"),
            ("openmetrics=/tmp/a=b", "/tmp/a=b"),
        ] {
            assert_eq!(sent(&read(text).unwrap()).0, url, "{text}");
        }
    }

    #[test]
    fn what_can_not_be_reached_is_refused_with_what_to_write() {
        for (text, said) in [
            ("http://h:9090", "the kinds are"),
            ("graphite=http://h", "the kinds are"),
            ("prometheus", "begins with http://"),
            ("prometheus=file.txt", "begins with http://"),
            ("prometheus=ftp://h", "begins with http://"),
            ("influx=http://h:8086", "/write?db=NAME"),
            ("influx=", "name a file"),
            ("openmetrics=http://h", "prometheus=URL"),
            ("otlp=http://h:70000", "port"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn secrets_are_sent_and_not_shown() {
        let with = |name: &str| match name {
            "PLIMSOLL_SEND_INFLUX_TOKEN" => Some("t0ken\n".to_owned()),
            "PLIMSOLL_SEND_INFLUX_HEADERS" => Some("X-Org: a\n\nX-Two: b: c".to_owned()),
            _ => None,
        };
        let text = "influx=https://h/api/v2/write?bucket=secret";
        let destination = Destination::new(text, &with).unwrap();
        let expected = ["X-Org: a", "X-Two: b: c", "Authorization: Token t0ken"];
        assert_eq!(sent(&destination).1, expected);
        let shown = format!("{destination} {destination:?}");
        assert!(
            !shown.contains("t0ken") && !shown.contains("secret"),
            "{shown}"
        );
        // It is not used for another kind.
        let other = Destination::new("otlp=https://h", &with).unwrap();
        assert!(sent(&other).1.is_empty());

        let basic = read("prometheus=http://me:p%40ss+1@127.0.0.1:9090").unwrap();
        assert_eq!(
            sent(&basic),
            (
                "http://127.0.0.1:9090/api/v1/write".to_owned(),
                vec![format!(
                    "Authorization: Basic {}",
                    BASE64.encode("me:p@ss+1")
                )]
            )
        );
        assert!(!basic.to_string().contains("p%40ss"), "{basic}");
    }

    #[test]
    fn secrets_do_not_go_where_others_read_them() {
        let error = read("prometheus=http://me:secret@mon.example/").unwrap_err();
        assert_eq!(
            error.to_string(),
            "prometheus: a password or token is not sent to mon.example over plain HTTP; use https://"
        );
        assert!(read("prometheus=https://me:secret@mon.example/").is_ok());
        let with = |header: &'static str| {
            move |name: &str| (name == "PLIMSOLL_SEND_INFLUX_HEADERS").then(|| header.to_owned())
        };
        let of = |text: &str, header| Destination::new(text, &with(header));
        for (query, header, is_fine) in [
            ("db=x", "Authorization: Token t", false),
            ("db=x", "X-API-Key: k", false),
            ("db=x", "cookie: session=1", false),
            ("db=x&u=me&p=pass", "X-Org: a", false),
            ("db=x", "X-Org: a", true),
        ] {
            let to = |scheme: &str| of(&format!("influx={scheme}://h:1/write?{query}"), header);
            assert_eq!(to("http").is_ok(), is_fine, "{query} {header}");
            assert!(to("https").is_ok(), "{query} {header}");
        }
    }

    #[test]
    fn what_is_no_header_is_not_sent() {
        for bad in ["no colon", ": x", "a b: c", "a: \u{e9}", "a: b\u{7f}"] {
            assert_eq!(headers(bad), None, "{bad}");
        }
    }
}
