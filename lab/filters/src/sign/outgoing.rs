//! A rendered request as signatures see it.

use ring::digest::{Context, SHA256};

use crate::encoding::Encoding;

/// The parts of a request that an `hmac` may name.
pub const PARTS: [&str; 10] = [
    "method",
    "path",
    "query",
    "query_sorted",
    "host",
    "body",
    "body_sha256",
    "timestamp",
    "nonce",
    "signature",
];

/// Returns the names that templates of a signature may use: the workload's variables without those named like a part of
/// a request, then the parts.
#[must_use]
pub fn names_with_parts(variables: &[String]) -> Vec<String> {
    let own = variables
        .iter()
        .map(|name| match PARTS.contains(&name.as_str()) {
            true => String::new(),
            false => name.clone(),
        });
    own.chain(PARTS.map(str::to_owned)).collect()
}

/// Returns the SHA-256 of a body in pieces, in hexadecimal.
fn hash_of<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> String {
    let mut context = Context::new(&SHA256);
    pieces.for_each(|piece| context.update(piece));
    Encoding::Hex.encode(context.finish().as_ref())
}

/// A rendered request.
#[derive(Debug, Clone)]
pub struct Outgoing<'a> {
    /// Whether it is sent over TLS.
    pub secure: bool,
    /// Its method.
    pub method: &'a str,
    /// Path and query as sent.
    pub target: &'a str,
    /// Its host, with the port unless that is the scheme's default.
    pub host: &'a str,
    /// The other headers, in order.
    pub headers: Vec<(&'a str, &'a str)>,
    /// Its body.
    pub body: Vec<&'a [u8]>,
    /// SHA-256 of its body in hexadecimal, if known.
    pub body_sha256: Option<&'a str>,
}

impl<'a> Outgoing<'a> {
    /// Creates the request from this HTTP/1.1 head.
    #[must_use]
    pub fn new(head: &'a str, secure: bool, body: Vec<&'a [u8]>) -> Self {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or("/");
        let mut host = "";
        let mut headers = Vec::with_capacity(12);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match name.eq_ignore_ascii_case("host") {
                true => host = value.trim(),
                false => headers.push((name, value.trim())),
            }
        }
        Self {
            secure,
            method,
            target,
            host,
            headers,
            body,
            body_sha256: None,
        }
    }

    /// Returns the path as sent.
    pub(super) fn path(&self) -> &'a str {
        self.target.split('?').next().unwrap_or(self.target)
    }

    /// Returns the query as sent, without its question mark.
    pub(super) fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// Returns the values of all headers with this name.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = move |(one, _): &&(&str, &str)| one.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| *value)
    }

    /// Returns the host in lower case, without the scheme's default port.
    pub(super) fn authority(&self) -> String {
        let own = if self.secure { ":443" } else { ":80" };
        let host = self.host.to_ascii_lowercase();
        host.strip_suffix(own)
            .map_or_else(|| host.clone(), str::to_owned)
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// Returns the SHA-256 of its body in hexadecimal.
    pub(super) fn body_hash(&self) -> String {
        match self.body_sha256 {
            Some(known) => known.to_owned(),
            None => hash_of(self.body.iter().copied()),
        }
    }

    /// Returns one of [`PARTS`] of this request; the caller provides those of the moment.
    ///
    /// # Errors
    /// A body that is not valid UTF-8.
    pub fn part(&self, name: &str) -> Result<String, String> {
        Ok(match name {
            "method" => self.method.to_owned(),
            "path" => self.path().to_owned(),
            "query" => self.query().unwrap_or_default().to_owned(),
            "query_sorted" => {
                let mut pairs: Vec<&str> = self.query().unwrap_or_default().split('&').collect();
                pairs.sort_unstable();
                pairs.join("&")
            }
            "host" => self.host.to_owned(),
            "body" => String::from_utf8(self.body.concat())
                .map_err(|_| "the body is no text: sign its `body_sha256`".to_owned())?,
            "body_sha256" => self.body_hash(),
            _ => String::new(),
        })
    }
}
