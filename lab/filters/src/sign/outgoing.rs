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

/// The names that templates of a signature may use: a workload's variables, of which those called like a part of a
/// request give way to it, and then the parts.
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

/// SHA-256 of a body in pieces, in hexadecimal.
fn hash_of<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> String {
    let mut context = Context::new(&SHA256);
    pieces.for_each(|piece| context.update(piece));
    Encoding::Hex.encode(context.finish().as_ref())
}

/// A rendered request.
#[derive(Debug, Clone)]
pub struct Outgoing<'a> {
    /// Whether it goes over TLS.
    pub secure: bool,
    /// Its method.
    pub method: &'a str,
    /// Path and query as sent.
    pub target: &'a str,
    /// Who it is for, with the port unless that is the scheme's.
    pub host: &'a str,
    /// The others, in order.
    pub headers: Vec<(&'a str, &'a str)>,
    /// Its body.
    pub body: Vec<&'a [u8]>,
    /// SHA-256 of its body in hexadecimal, where that is known.
    pub body_sha256: Option<&'a str>,
}

impl<'a> Outgoing<'a> {
    /// The request with this head, as HTTP/1.1 writes it.
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

    /// The path as sent.
    pub(super) fn path(&self) -> &'a str {
        self.target.split('?').next().unwrap_or(self.target)
    }

    /// The query as sent, without its question mark.
    pub(super) fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The values of all headers of this name.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = move |(one, _): &&(&str, &str)| one.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| *value)
    }

    /// Lower-case host, without the scheme's own port.
    pub(super) fn authority(&self) -> String {
        let own = if self.secure { ":443" } else { ":80" };
        let host = self.host.to_ascii_lowercase();
        host.strip_suffix(own)
            .map_or_else(|| host.clone(), str::to_owned)
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// SHA-256 of its body in hexadecimal.
    pub(super) fn body_hash(&self) -> String {
        match self.body_sha256 {
            Some(known) => known.to_owned(),
            None => hash_of(self.body.iter().copied()),
        }
    }

    /// What one of [`PARTS`] is of this request; those of the moment are the caller's.
    ///
    /// # Errors
    /// A body that is no text.
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
