//! AWS Signature Version 4, in headers (Amazon's “Signature Version 4 for API requests”).

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::BuildHasher;

use ring::hmac::{HMAC_SHA256, Key, sign};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outgoing::Outgoing;
use super::{Header, optional};
use crate::encoding::push_hex;
use crate::escape::push_url;
use crate::hash::{Hash, digest};

/// The most signing keys that a thread keeps.
const MAX_KEPT_KEYS: usize = 4_096;
/// Replaces the hash of an unsigned body.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// Headers that are not signed: intermediaries may change them, or they carry the signature.
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

/// A moment as `20150830T123600Z`.
type TimeText = [u8; 16];

thread_local! {
    /// Signing keys, by a hash of what they are derived from.
    static KEYS: RefCell<HashMap<u64, StoredKey>> = RefCell::default();
    /// The last second that a request was signed in, and its text.
    static LAST_TIME: Cell<Option<(i64, TimeText)>> = const { Cell::new(None) };
}

/// A signing key, and the day, region, service, and secret key that it is derived from.
struct StoredKey {
    parts: [Box<str>; 4],
    key: Key,
}

/// AWS Signature Version 4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwsSign<T> {
    /// The service, such as `s3` or `execute-api`.
    pub service: T,
    /// The region, such as `eu-west-1`.
    pub region: T,
    /// The ID of the access key.
    pub access_key: T,
    /// The secret access key.
    pub secret_key: T,
    /// The token of temporary credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_token: Option<T>,
    /// Whether the body is signed: `signed` or `unsigned`. Default: `signed`.
    #[serde(default)]
    pub payload: Payload,
}

/// Whether the body is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The signature covers the body's hash.
    #[default]
    Signed,
    /// The signature does not cover the body.
    Unsigned,
}

impl<T> AwsSign<T> {
    pub(super) fn try_map<'s, U, E>(
        &'s self,
        map: &mut impl FnMut(&'s T) -> Result<U, E>,
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

impl<T: AsRef<str>> AwsSign<T> {
    pub(super) fn headers(
        &self,
        request: &Outgoing<'_>,
        seconds: i64,
    ) -> Result<Vec<Header>, String> {
        let time = time_text(seconds)?;
        let time = std::str::from_utf8(&time).unwrap_or_default();
        let day = &time[..8];
        let [region, service] = [&self.region, &self.service].map(AsRef::as_ref);
        let is_s3 = service == "s3";
        let hash = match self.payload {
            Payload::Signed => request.body_hash(),
            Payload::Unsigned => UNSIGNED.to_owned(),
        };
        let mut added = Vec::with_capacity(4);
        added.push(("X-Amz-Date".to_owned(), time.to_owned()));
        let hash_name = "X-Amz-Content-Sha256";
        let says_hash = is_s3 || self.payload == Payload::Unsigned;
        if says_hash && request.values(hash_name).next().is_none() {
            added.push((hash_name.to_owned(), hash.clone()));
        }
        if let Some(token) = &self.session_token {
            added.push(("X-Amz-Security-Token".to_owned(), token.as_ref().to_owned()));
        }
        let (canonical, names) = canonical(request, &added, is_s3, &hash);
        let mut signed = String::with_capacity(192);
        signed.extend(["AWS4-HMAC-SHA256\n", time, "\n"]);
        let scope_start = signed.len();
        signed.extend([day, "/", region, "/", service, "/aws4_request"]);
        let scope = scope_start..signed.len();
        signed.push('\n');
        digest(Hash::Sha256, canonical.as_bytes(), |sum| {
            push_hex(sum, &mut signed)
        });
        let tag = with_key([day, region, service, self.secret_key.as_ref()], |key| {
            sign(key, signed.as_bytes())
        });
        let mut authorization = String::with_capacity(160 + scope.len() + names.len());
        let access_key = self.access_key.as_ref();
        authorization.extend(["AWS4-HMAC-SHA256 Credential=", access_key, "/"]);
        authorization.extend([&signed[scope], ", SignedHeaders=", &names, ", Signature="]);
        push_hex(tag.as_ref(), &mut authorization);
        added.push(("Authorization".to_owned(), authorization));
        Ok(added)
    }
}

/// Formats a time as `20150830T123600Z`. The last one is cached, since many requests are signed in one second.
fn time_text(seconds: i64) -> Result<TimeText, String> {
    if let Some((_, text)) = LAST_TIME.get().filter(|(last, _)| *last == seconds) {
        return Ok(text);
    }
    let time = jiff::Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
    let text = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    let text = TimeText::try_from(text.as_bytes())
        .map_err(|_| format!("a signature can't be dated {text}"))?;
    LAST_TIME.set(Some((seconds, text)));
    Ok(text)
}

/// Passes the signing key of a day, region, service, and secret key to `take`. Derived keys are cached.
fn with_key<R>(parts: [&str; 4], take: impl FnOnce(&Key) -> R) -> R {
    KEYS.with_borrow_mut(|kept| {
        let hash = kept.hasher().hash_one(parts);
        if kept.len() >= MAX_KEPT_KEYS && !kept.contains_key(&hash) {
            kept.clear();
        }
        let one = kept.entry(hash).or_insert_with(|| StoredKey::of(parts));
        if !one.is_of(parts) {
            *one = StoredKey::of(parts);
        }
        take(&one.key)
    })
}

impl StoredKey {
    fn of(parts: [&str; 4]) -> Self {
        let [day, region, service, secret] = parts;
        let mut key = Key::new(HMAC_SHA256, format!("AWS4{secret}").as_bytes());
        for part in [day, region, service, "aws4_request"] {
            key = Key::new(HMAC_SHA256, sign(&key, part.as_bytes()).as_ref());
        }
        let parts = parts.map(Box::from);
        Self { parts, key }
    }

    fn is_of(&self, parts: [&str; 4]) -> bool {
        self.parts.iter().map(|part| &**part).eq(parts)
    }
}

/// Returns the canonical request, and the names of its headers.
fn canonical(
    request: &Outgoing<'_>,
    added: &[Header],
    is_s3: bool,
    hash: &str,
) -> (String, String) {
    let added = added
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let own = request.headers.iter().copied();
    let mut headers = Vec::with_capacity(request.headers.len() + added.len() + 1);
    headers.push(("host", request.host));
    headers.extend(own.chain(added).filter(|(name, _)| is_signed(name)));
    // Stable, so that headers with the same name keep their order.
    headers.sort_by(|(a, _), (b, _)| compare_names(a, b));
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
    for (name, value) in headers {
        if before.eq_ignore_ascii_case(name) {
            out.push(',');
        } else {
            if !names.is_empty() {
                names.push(';');
            }
            let start = names.len();
            names.push_str(name);
            names[start..].make_ascii_lowercase();
            out.extend(["\n", &names[start..], ":"]);
        }
        for (at, word) in value.split_ascii_whitespace().enumerate() {
            out.extend([if at > 0 { " " } else { "" }, word]);
        }
        before = name;
    }
    out.extend(["\n\n", &names, "\n", hash]);
    (out, names)
}

fn is_signed(name: &str) -> bool {
    !NOT_SIGNED.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// Compares two names in lower case.
fn compare_names(a: &str, b: &str) -> Ordering {
    let [a, b] = [a, b].map(|name| name.bytes().map(|byte| byte.to_ascii_lowercase()));
    a.cmp(b)
}

/// Appends the path without `.`, `..`, and empty segments (RFC 3986, section 6), encoded once more.
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

/// Appends a query's parameters, sorted by their encoded names and values.
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
