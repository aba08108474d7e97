//! How users reach a system, as written, and what it comes to in one cell.

use std::net::IpAddr;

use lab_language::{CellError, Optional, Setting, TextError, beside, units};
use serde::{Deserialize, Serialize};

use crate::command::SCRATCH;
use crate::model::{Cell, Level};

/// How users reach a system, whichever it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReachSpec {
    /// Whether a system that the lab starts speaks TLS; of an attached one its URL says that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub secure: bool,
    /// Whom users trust, and what they show.
    #[serde(default, skip_serializing_if = "TlsSpec::is_default")]
    pub tls: TlsSpec,
    /// Hosts in lower case, and their addresses, whatever the resolver has for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolve: Vec<(String, IpAddr)>,
}

/// Whom users trust, and what they show. Files are seen from where the run is started.
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
    /// Whether any certificate is taken.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,
}

impl ReachSpec {
    /// Whether there is nothing to say.
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

/// How users reach a system, still with references to factors.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReachTemplate {
    pub(crate) scheme: Option<Setting>,
    pub(crate) ca: Option<Setting>,
    pub(crate) client: Option<(Setting, Setting)>,
    pub(crate) server_name: Option<Setting>,
    pub(crate) insecure: Option<Setting>,
    pub(crate) resolve: Vec<(String, Setting)>,
}

impl ReachTemplate {
    pub(crate) fn spec(&self, cell: &Cell) -> Result<ReachSpec, CellError> {
        let mut cell = cell.clone();
        cell.insert("scratch".to_owned(), Level::Text(SCRATCH.to_owned()));
        let cell = &cell;
        let client = match &self.client {
            Some((certificate, key)) => Some((file(certificate, cell)?, file(key, cell)?)),
            None => None,
        };
        let resolve = self.resolve.iter();
        let resolve = resolve.map(|(host, address)| {
            Ok((host.to_ascii_lowercase(), address.value(cell, ip_address)?))
        });
        Ok(ReachSpec {
            secure: self.scheme.value(cell, scheme)?.unwrap_or_default(),
            tls: TlsSpec {
                ca: self.ca.as_ref().map(|ca| file(ca, cell)).transpose()?,
                client,
                server_name: self.server_name.value(cell, server_name)?,
                insecure: self
                    .insecure
                    .value(cell, units::switch)?
                    .unwrap_or_default(),
            },
            resolve: resolve.collect::<Result<_, _>>()?,
        })
    }
}

/// A file, seen from where the run is started.
fn file(setting: &Setting, cell: &Cell) -> Result<String, CellError> {
    setting.value(cell, |text| path(&setting.at.span.file.name, text))
}

/// A path beside the file that names it; one in the scratch folder stays as it is.
fn path(from: &str, text: &str) -> Result<String, TextError> {
    let path = text.trim();
    if path.is_empty() || path.contains(char::is_control) {
        let error = TextError::new("this names no file", 0..text.len());
        return Err(error.help("write the name of a PEM file beside the study, such as `ca.pem`"));
    }
    match path.starts_with(SCRATCH) {
        true => Ok(path.to_owned()),
        false => Ok(beside(from, path)),
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

/// A name as certificates have it; an address, too.
fn server_name(text: &str) -> Result<String, TextError> {
    let name = text.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(name.to_owned());
    }
    let error = TextError::new(
        format!("`{name}` is not the name of a server"),
        0..text.len(),
    );
    Err(error.help("write a name without a port, such as `staging.example.org`"))
}

fn ip_address(text: &str) -> Result<IpAddr, TextError> {
    text.trim().parse().map_err(|_| {
        let message = format!("`{}` is not an address", text.trim());
        TextError::new(message, 0..text.len()).help("write `10.0.0.7` or `fd00::7`, without a port")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_beside_the_study() {
        for (written, expected) in [
            ("ca.pem", "studies/ca.pem"),
            (" ../ca.pem ", "ca.pem"),
            ("/etc/ca.pem", "/etc/ca.pem"),
            ("{{ scratch }}/ca.pem", "{{ scratch }}/ca.pem"),
        ] {
            let found = path("studies/a.study.yaml", written);
            assert_eq!(found.unwrap(), expected, "{written}");
        }
        assert_eq!(path("--set", "ca.pem").unwrap(), "ca.pem");
        assert!(path("a.yaml", " ").is_err());
    }

    #[test]
    fn addresses_have_no_port_and_names_neither() {
        assert_eq!(
            ip_address(" fd00::7").unwrap(),
            "fd00::7".parse::<IpAddr>().unwrap()
        );
        for wrong in ["", "10.0.0.7:80", "[::1]", "host"] {
            assert!(ip_address(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            server_name("staging.example.org").unwrap(),
            "staging.example.org"
        );
        for wrong in ["", "https://a", "a b", "a/b"] {
            assert!(server_name(wrong).is_err(), "{wrong}");
        }
        assert!(scheme("https").unwrap() && !scheme("http").unwrap() && scheme("ftp").is_err());
    }
}
