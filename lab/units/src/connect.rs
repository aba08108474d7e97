//! How users connect to a system, in raw form, and the values in one cell.

use std::fmt;
use std::net::IpAddr;

use lab_template::level::{Level, Parameters as Cell};
use serde::{Deserialize, Serialize};

use crate::setting::{CellError, Optional, Setting};
use crate::text_error::TextError;
use crate::{AddressRange, servers, source::sibling_path, units};

/// Replaced by the folder of a trial when the trial starts.
const SCRATCH: &str = "{{ scratch }}";

/// Maximum connections that users share.
const MAX_SHARED: u64 = 1_000_000;

/// How users connect to a system, for any system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConnectSpec {
    /// Whether a system started by the lab uses TLS; for an attached one its URL decides.
    #[serde(default, skip_serializing_if = "is_false")]
    pub secure: bool,
    /// Authorities that users trust, and certificates that they present.
    #[serde(default, skip_serializing_if = "TlsSpec::is_default")]
    pub tls: TlsSpec,
    /// Hosts in lower case, and their addresses, which override the resolver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolve: Vec<(String, IpAddr)>,
    /// Version of HTTP, and sharing of connections.
    #[serde(default, skip_serializing_if = "HttpSpec::is_default")]
    pub http: HttpSpec,
    /// Source addresses of connections on this machine, in turn; empty if the kernel chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<AddressRange>,
}

/// How users use HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HttpSpec {
    /// Version of HTTP.
    pub version: HttpVersion,
    /// How many connections all users share; `None` if each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<u32>,
}

/// A version of HTTP in a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    One,
    /// HTTP/2.
    Two,
    /// Chosen by the server.
    Auto,
}

impl HttpSpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.version {
            HttpVersion::One => "HTTP/1.1",
            HttpVersion::Two => "HTTP/2",
            HttpVersion::Auto => "HTTP/2 or HTTP/1.1, as the server takes it",
        })?;
        match self.shared {
            None => Ok(()),
            Some(1) => f.write_str(", on one connection for all users"),
            Some(count) => write!(f, ", on {count} connections for all users"),
        }
    }
}

/// Authorities that users trust, and certificates that they present. Paths are relative to the run's working directory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TlsSpec {
    /// A file with an authority's certificate, or the system's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// A file with the users' certificate, and one with its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<(String, String)>,
    /// The name that the system must prove to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Whether any certificate is accepted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,
}

impl ConnectSpec {
    /// Returns true if all settings have their defaults.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl TlsSpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

fn is_false(is: &bool) -> bool {
    !is
}

/// How users connect to a system, with unresolved references to factors.
#[derive(Debug, Clone, Default)]
pub struct ConnectTemplate {
    /// `http` or `https`.
    pub scheme: Option<Setting>,
    /// A file with an authority's certificate.
    pub ca: Option<Setting>,
    /// A file with the users' certificate, and one with its key.
    pub client: Option<(Setting, Setting)>,
    /// The name that the system must prove to have.
    pub server_name: Option<Setting>,
    /// Whether any certificate is accepted.
    pub insecure: Option<Setting>,
    /// Hosts, and their addresses.
    pub resolve: Vec<(String, Setting)>,
    /// How users use HTTP.
    pub http: Option<HttpTemplate>,
}

/// How users use HTTP, with unresolved references to factors.
#[derive(Debug, Clone)]
pub struct HttpTemplate {
    /// Version of HTTP.
    pub version: Setting,
    /// Whether they share connections.
    pub share: Option<Setting>,
    /// How many they share.
    pub connections: Option<Setting>,
}

impl HttpTemplate {
    fn spec(&self, cell: &Cell) -> Result<HttpSpec, CellError> {
        let version = self.version.value(cell, http_version)?;
        let shares = self.share.value(cell, |text| share(text, version))?;
        let shares = shares.unwrap_or_default();
        let connections = self
            .connections
            .value(cell, |text| shared_connections(text, shares))?;
        Ok(HttpSpec {
            version,
            shared: shares.then(|| connections.unwrap_or(1)),
        })
    }
}

impl ConnectTemplate {
    /// Returns the settings in `cell`.
    ///
    /// # Errors
    /// A setting that is invalid there.
    pub fn spec(&self, cell: &Cell) -> Result<ConnectSpec, CellError> {
        let mut cell = cell.clone();
        cell.insert("scratch".to_owned(), Level::Text(SCRATCH.to_owned()));
        let cell = &cell;
        let client = match &self.client {
            Some((certificate, key)) => Some((file(certificate, cell)?, file(key, cell)?)),
            None => None,
        };
        let resolve = self.resolve.iter();
        let resolve = resolve.map(|(host, address)| {
            Ok((
                host.to_ascii_lowercase(),
                address.value(cell, servers::ip_address)?,
            ))
        });
        Ok(ConnectSpec {
            secure: self.scheme.value(cell, scheme)?.unwrap_or_default(),
            tls: TlsSpec {
                ca: self.ca.as_ref().map(|ca| file(ca, cell)).transpose()?,
                client,
                server_name: self.server_name.value(cell, servers::name)?,
                insecure: self
                    .insecure
                    .value(cell, units::switch)?
                    .unwrap_or_default(),
            },
            resolve: resolve.collect::<Result<_, _>>()?,
            http: match &self.http {
                Some(http) => http.spec(cell)?,
                None => HttpSpec::default(),
            },
            sources: Vec::new(),
        })
    }
}

/// Returns a file's path, relative to the run's working directory.
fn file(setting: &Setting, cell: &Cell) -> Result<String, CellError> {
    setting.value(cell, |text| path(&setting.at.span.file.name, text))
}

/// Resolves a path beside the file that names it; one in the scratch folder is unchanged.
fn path(from: &str, text: &str) -> Result<String, TextError> {
    let path = text.trim();
    if path.is_empty() || path.contains(char::is_control) {
        let error = TextError::new("this names no file", 0..text.len());
        return Err(error.help("write the name of a PEM file beside the study, such as `ca.pem`"));
    }
    match path.starts_with(SCRATCH) {
        true => Ok(path.to_owned()),
        false => Ok(sibling_path(from, path)),
    }
}

fn scheme(text: &str) -> Result<bool, TextError> {
    match text.trim() {
        "http" => Ok(false),
        "https" => Ok(true),
        _ => {
            let message = format!("`{text}` is not a scheme that users speak");
            Err(TextError::new(message, 0..text.len()).help("write `http` or `https`"))
        }
    }
}

fn http_version(text: &str) -> Result<HttpVersion, TextError> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "1.1" => Ok(HttpVersion::One),
        "2" => Ok(HttpVersion::Two),
        "auto" => Ok(HttpVersion::Auto),
        _ => {
            let message = format!("`{text}` is not a version of HTTP that users speak");
            Err(TextError::new(message, 0..text.len()).help("write `1`, `2`, or `auto`"))
        }
    }
}

/// Parses whether users share connections.
fn share(text: &str, version: HttpVersion) -> Result<bool, TextError> {
    let wrong = |message: &str, help: &str| Err(TextError::new(message, 0..text.len()).help(help));
    match (text.trim(), version) {
        ("user", _) => Ok(false),
        ("machine", HttpVersion::One | HttpVersion::Two) => Ok(true),
        ("machine", HttpVersion::Auto) => wrong(
            "how users share connections depends on the version of HTTP",
            "say `version: 1` or `version: 2`, or leave `share` out",
        ),
        _ => wrong(
            "connections are each user's own, or all users' on this machine",
            "write `user` or `machine`",
        ),
    }
}

fn shared_connections(text: &str, shares: bool) -> Result<u32, TextError> {
    if !shares {
        let message = "a user that shares no connection has one: its requests follow each other";
        return Err(TextError::new(message, 0..text.len())
            .help("say `share: machine`, or leave `connections` out"));
    }
    let count = units::whole_number(text, 1..=MAX_SHARED)?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Parses the number of connections in a load.
///
/// # Errors
/// A text that is no such number, or one that the system's own setting already defines.
pub fn load_connections(text: &str, http: HttpSpec) -> Result<u32, TextError> {
    let wrong = |message: &str, help: &str| Err(TextError::new(message, 0..text.len()).help(help));
    if http.shared.is_some() {
        return wrong(
            "the system says already that users share connections, and how many",
            "leave `share` of its `http` out, or `connections` of the load",
        );
    }
    if http.version == HttpVersion::Auto {
        return wrong(
            "how users share connections depends on the version of HTTP",
            "say `http: 1` or `http: 2` under `system`",
        );
    }
    shared_connections(text, true)
}

#[cfg(test)]
mod tests;
