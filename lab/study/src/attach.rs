//! A system that runs already, as written, and what it comes to in one cell.

use lab_language::{CellError, Optional, Setting, TextError, units};
use serde::{Deserialize, Serialize};

use crate::model::Cell;

/// A server that runs already. The lab neither starts, pins, nor stops it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AttachSpec {
    /// `http://host:port` or `https://host:port`.
    pub url: String,
    /// Its main process, where it runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// `http://host:port/metrics` of the Prometheus node_exporter on its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_exporter: Option<String>,
    /// A command run on this machine before each trial, which brings it back to its first state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Vec<String>>,
    /// What is done to it before the load.
    #[serde(default, skip_serializing_if = "crate::Preparation::is_empty")]
    pub preparation: crate::Preparation,
}

/// Highest process id that Linux gives (`/proc/sys/kernel/pid_max` can't be set higher).
const MAX_PID: u64 = 4_194_304;

/// A server that runs already, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct AttachTemplate {
    pub(crate) url: Setting,
    pub(crate) pid: Option<Setting>,
    pub(crate) node_exporter: Option<Setting>,
    pub(crate) reset: Vec<Setting>,
    pub(crate) preparation: crate::preparation::PreparationTemplate,
}

impl AttachTemplate {
    /// The system in `cell`.
    pub(crate) fn spec(&self, cell: &Cell) -> Result<AttachSpec, CellError> {
        let url = self.url.value(cell, server)?;
        let pid = self
            .pid
            .value(cell, |text| units::whole_number(text, 1..=MAX_PID))?;
        let node_exporter = self.node_exporter.value(cell, exporter)?;
        let words = self
            .reset
            .iter()
            .map(|word| word.value(cell, |text| Ok(text.to_owned())));
        let reset: Vec<String> = words.collect::<Result<_, _>>()?;
        Ok(AttachSpec {
            url,
            pid: pid.map(|pid| pid as u32),
            node_exporter,
            reset: (!reset.is_empty()).then_some(reset),
            preparation: self.preparation.spec(cell)?,
        })
    }
}

/// Of URLs of servers.
const SCHEMES: [&str; 14] = [
    "ws",
    "wss",
    "http",
    "https",
    "tcp",
    "tls",
    "redis",
    "rediss",
    "smtp",
    "smtps",
    "imap",
    "imaps",
    "postgres",
    "postgresql",
];

/// A server without a path; a slash at its end goes.
fn server(text: &str) -> Result<String, TextError> {
    let help = "write `http://host:port` or `https://host:port`";
    match parts(text, &SCHEMES) {
        Some((_, "" | "/")) => Ok(text.trim().trim_end_matches('/').to_owned()),
        Some((_, path)) => {
            let message = format!("`{path}` is a path; the workload has those");
            Err(TextError::new(message, 0..text.len()).help(help))
        }
        None => {
            let message = format!("`{}` is not a server's address", text.trim());
            Err(TextError::new(message, 0..text.len()).help(help))
        }
    }
}

/// The address of an exporter, with its usual path where none is written.
fn exporter(text: &str) -> Result<String, TextError> {
    match parts(text, &["http", "https"]) {
        Some((server, "" | "/")) => Ok(format!("{server}/metrics")),
        Some(_) => Ok(text.trim().to_owned()),
        None => {
            let message = format!("`{}` is not the address of an exporter", text.trim());
            Err(TextError::new(message, 0..text.len()).help("write `http://host:9100/metrics`"))
        }
    }
}

/// Scheme, which is one of these, with the server; and the path.
fn parts<'a>(text: &'a str, schemes: &[&str]) -> Option<(&'a str, &'a str)> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://")?;
    schemes.contains(&scheme).then_some(())?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        // Within brackets a colon belongs to the address.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:%".contains(c);
    let good_port = port.is_none_or(|p| p.parse::<u16>().is_ok_and(|p| p > 0));
    let good = !host.is_empty() && host.chars().all(plain) && good_port;
    let good_path = !path.contains(|c: char| c.is_whitespace() || c.is_control());
    let server = scheme.len() + "://".len() + end;
    (good && good_path).then_some((&text[..server], path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_addresses_without_a_path() {
        for (text, expected) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            (" https://example.org/ ", "https://example.org"),
            ("http://[::1]:81", "http://[::1]:81"),
            ("http://[::1]", "http://[::1]"),
        ] {
            assert_eq!(server(text).as_deref(), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "localhost:80",
            "ftp://a",
            "http://",
            "http://a:0",
            "http://a:70000",
            "http://a/path",
            "http://a b",
            "http://u@a",
        ] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_exporter_has_its_usual_path() {
        assert_eq!(exporter("http://a:9100").unwrap(), "http://a:9100/metrics");
        assert_eq!(exporter("http://a:9100/x").unwrap(), "http://a:9100/x");
        assert!(exporter("a:9100").is_err());
    }
}
