//! AWS Signature Version 4, in headers (Amazon's “Signature Version 4 for API requests”).

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use ring::hmac::{HMAC_SHA256, Key, sign};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outgoing::Outgoing;
use super::{Header, optional};
use crate::encoding::Encoding;
use crate::escape::push_url;
use crate::hash::sha256;

/// So many keys of a day are kept.
const KEPT: usize = 64;
/// What stands for the hash of a body that isn't signed.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// Headers that are not signed: what stands on the way may change them, or they carry the signature.
const NOT_SIGNED: [&str; 14] = [
    "accept-encoding",
    "authorization",
    "connection",
    "cookie",
    "expect",
    "keep-alive",
    "proxy-authorization",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-amzn-trace-id",
];

thread_local! {
    /// Keys of a day, by what they are derived from.
    static KEYS: RefCell<HashMap<KeyName, Key>> = RefCell::default();
}

/// A day, a region, a service, and the secret key.
type KeyName = [String; 4];

/// AWS Signature Version 4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwsSign<T> {
    /// The service, such as `s3` or `execute-api`.
    pub service: T,
    /// The region, such as `eu-west-1`.
    pub region: T,
    /// The id of the access key.
    pub access_key: T,
    /// The secret access key.
    pub secret_key: T,
    /// The token of temporary credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_token: Option<T>,
    /// Whether the body is signed: `signed` or `unsigned`; `signed` unless said.
    #[serde(default)]
    pub payload: Payload,
}

/// Whether the body is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// By its hash.
    #[default]
    Signed,
    /// It is not.
    Unsigned,
}

impl<T> AwsSign<T> {
    pub(super) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<AwsSign<U>, E> {
        Ok(AwsSign {
            service: map(&self.service)?,
            region: map(&self.region)?,
            access_key: map(&self.access_key)?,
            secret_key: map(&self.secret_key)?,
            session_token: optional(&self.session_token, map)?,
            payload: self.payload,
        })
    }
}

impl AwsSign<String> {
    pub(super) fn headers(
        &self,
        request: &Outgoing<'_>,
        seconds: i64,
    ) -> Result<Vec<Header>, String> {
        let time = jiff::Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
        let time = time.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = &time[..8];
        let is_s3 = self.service == "s3";
        let hash = match self.payload {
            Payload::Signed => request.body_hash(),
            Payload::Unsigned => UNSIGNED.to_owned(),
        };
        let mut added = vec![("X-Amz-Date".to_owned(), time.clone())];
        let hash_name = "X-Amz-Content-Sha256";
        let says_hash = is_s3 || self.payload == Payload::Unsigned;
        if says_hash && request.values(hash_name).next().is_none() {
            added.push((hash_name.to_owned(), hash.clone()));
        }
        if let Some(token) = &self.session_token {
            added.push(("X-Amz-Security-Token".to_owned(), token.clone()));
        }
        let (canonical, names) = canonical(request, &added, is_s3, &hash);
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let signed = format!(
            "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
            sha256(canonical.as_bytes())
        );
        let tag = sign(&self.key(day), signed.as_bytes());
        let signature = Encoding::Hex.encode(tag.as_ref());
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.access_key
        );
        added.push(("Authorization".to_owned(), authorization));
        Ok(added)
    }

    /// The key of a day, derived once.
    fn key(&self, day: &str) -> Key {
        let name = [
            day.to_owned(),
            self.region.clone(),
            self.service.clone(),
            self.secret_key.clone(),
        ];
        if let Some(kept) = KEYS.with_borrow(|kept| kept.get(&name).cloned()) {
            return kept;
        }
        let first = format!("AWS4{}", self.secret_key);
        let mut key = Key::new(HMAC_SHA256, first.as_bytes());
        for part in [day, &self.region, &self.service, "aws4_request"] {
            key = Key::new(HMAC_SHA256, sign(&key, part.as_bytes()).as_ref());
        }
        KEYS.with_borrow_mut(|kept| {
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(name, key.clone());
        });
        key
    }
}

/// The canonical request, and the names of the headers that are in it.
fn canonical(
    request: &Outgoing<'_>,
    added: &[Header],
    is_s3: bool,
    hash: &str,
) -> (String, String) {
    let mut headers: Vec<(String, &str)> = vec![("host".to_owned(), request.host)];
    let own = request.headers.iter().copied();
    let added = added
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.chain(added) {
        let name = name.to_ascii_lowercase();
        if !NOT_SIGNED.contains(&name.as_str()) {
            headers.push((name, value));
        }
    }
    // Stable, so that several of a name keep their order.
    headers.sort_by(|a, b| a.0.cmp(&b.0));
    let mut out = String::with_capacity(512);
    out.push_str(request.method);
    out.push('\n');
    match is_s3 {
        true => out.push_str(request.path()),
        false => push_normal_path(request.path(), &mut out),
    }
    out.push('\n');
    push_query(request.query().unwrap_or_default(), &mut out);
    let mut names = String::with_capacity(64);
    let mut before = "";
    for (name, value) in &headers {
        if before == name.as_str() {
            out.push(',');
        } else {
            // Writing to a string can't fail.
            let _ = write!(out, "\n{name}:");
            if !names.is_empty() {
                names.push(';');
            }
            names.push_str(name);
        }
        for (at, word) in value.split_whitespace().enumerate() {
            out.push_str(if at > 0 { " " } else { "" });
            out.push_str(word);
        }
        before = name;
    }
    let _ = write!(out, "\n\n{names}\n{hash}");
    (out, names)
}

/// The path without `.`, `..`, and empty segments (RFC 3986, section 6), encoded once more.
fn push_normal_path(path: &str, out: &mut String) {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    for segment in &kept {
        out.push('/');
        push_url(segment, out);
    }
    let is_folder = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    if kept.is_empty() || is_folder {
        out.push('/');
    }
}

/// The parameters of a query in the order of their encoded names and values.
fn push_query(query: &str, out: &mut String) {
    let encoded = |text: &str| {
        let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
        let mut encoded = String::with_capacity(text.len());
        push_url(&decoded, &mut encoded);
        encoded
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<(String, String)> = pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (encoded(name), encoded(value))
        })
        .collect();
    pairs.sort_unstable();
    for (at, (name, value)) in pairs.iter().enumerate() {
        let _ = write!(out, "{}{name}={value}", if at > 0 { "&" } else { "" });
    }
}
