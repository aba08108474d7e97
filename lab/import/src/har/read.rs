//! A recording as it is written (HTTP Archive 1.2, with what Chromium and Firefox add), within limits.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use url::Url;

use crate::error::{ImportError, otherwise};

/// Largest recording.
pub const MAX_BYTES: usize = 256 << 20;
/// Most requests in one.
pub const MAX_ENTRIES: usize = 5_000;
/// Longest body that is looked through for values that come back.
const MAX_BODY: usize = 4 << 20;

#[derive(Deserialize)]
struct File {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    entries: Vec<Entry>,
}

/// A request with its answer.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    #[serde(rename = "startedDateTime", default)]
    started: String,
    #[serde(default)]
    time: f64,
    pub(super) request: Request,
    #[serde(default)]
    pub(super) response: Response,
    /// Chromium's word for what it is.
    #[serde(rename = "_resourceType", default)]
    pub(super) kind: String,
    #[serde(rename = "_fromCache", default)]
    pub(super) from_cache: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Pair {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) value: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: Vec<Pair>,
    #[serde(rename = "postData", default)]
    pub(super) body: Option<Sent>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Sent {
    #[serde(rename = "mimeType", default)]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) text: String,
    #[serde(default)]
    pub(super) params: Vec<Pair>,
    #[serde(default, alias = "_encoding")]
    pub(super) encoding: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Response {
    /// 0 of a request without answer.
    #[serde(default)]
    pub(super) status: i64,
    #[serde(default)]
    pub(super) headers: Vec<Pair>,
    #[serde(default)]
    content: Content,
    #[serde(rename = "redirectURL", default, deserialize_with = "or_empty")]
    pub(super) redirect: String,
}

#[derive(Debug, Default, Deserialize)]
struct Content {
    #[serde(rename = "mimeType", default, deserialize_with = "or_empty")]
    kind: String,
    #[serde(default, deserialize_with = "or_empty")]
    text: String,
    #[serde(default)]
    encoding: Option<String>,
}

/// `null` is nothing.
fn or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A request of the recording, with its address and its time.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) entry: Entry,
    pub(super) url: Url,
    /// Milliseconds since the first one.
    pub(super) begins: f64,
    pub(super) ends: f64,
    /// The answer's body as text; empty where there is none, or it is no text.
    pub(super) body: String,
}

/// The requests in the order in which they were sent, and how many have no address that can be asked.
pub(super) fn read(text: &str) -> Result<(Vec<Recorded>, usize), ImportError> {
    let size = text.len();
    if size > MAX_BYTES {
        return Err(ImportError::TooLarge {
            size,
            most: MAX_BYTES,
        });
    }
    // Some tools begin a file with a byte-order mark.
    let text = text.trim_start_matches('\u{feff}');
    let file: Result<File, _> = serde_json::from_str(text);
    let file = file.map_err(|error| otherwise(text).unwrap_or_else(|| error.into()))?;
    let entries = file.log.entries;
    if entries.is_empty() {
        return Err(ImportError::Other("the recording has no request"));
    }
    if entries.len() > MAX_ENTRIES {
        return Err(ImportError::TooMany {
            what: "requests",
            count: entries.len(),
            most: MAX_ENTRIES,
        });
    }
    let count = entries.len();
    let mut read: Vec<Recorded> = entries.into_iter().filter_map(recorded).collect();
    let odd = count - read.len();
    let first = read
        .iter()
        .map(|one| one.begins)
        .fold(f64::INFINITY, f64::min);
    for one in &mut read {
        one.begins -= first;
        one.ends -= first;
    }
    read.sort_by(|a, b| a.begins.total_cmp(&b.begins));
    Ok((read, odd))
}

fn recorded(mut entry: Entry) -> Option<Recorded> {
    let url = Url::parse(&entry.request.url).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https" | "ws" | "wss");
    if !is_http || url.host_str().is_none() {
        return None;
    }
    // A recording without times has them in order.
    let started: Option<Timestamp> = entry.started.parse().ok();
    let begins = started.map_or(0.0, |at| at.as_millisecond() as f64);
    let took = if entry.time.is_finite() {
        entry.time.clamp(0.0, 3.6e6)
    } else {
        0.0
    };
    let body = std::mem::take(&mut entry.response.content).text();
    Some(Recorded {
        ends: begins + took,
        begins,
        body,
        url,
        entry,
    })
}

impl Content {
    fn text(self) -> String {
        let kind = self.kind.to_ascii_lowercase();
        let is_text = ["text/", "json", "xml", "javascript", "html", "form"];
        if self.text.len() > MAX_BODY
            || !(kind.is_empty() || is_text.iter().any(|k| kind.contains(k)))
        {
            return String::new();
        }
        match self.encoding.as_deref() {
            Some("base64") => BASE64_STANDARD
                .decode(self.text.trim())
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .unwrap_or_default(),
            _ => self.text,
        }
    }
}

impl Recorded {
    /// A header of the request, by its lower-case name.
    pub(super) fn sent(&self, name: &str) -> Option<&str> {
        header(&self.entry.request.headers, name)
    }

    /// A header of the answer, by its lower-case name.
    pub(super) fn answered(&self, name: &str) -> Option<&str> {
        header(&self.entry.response.headers, name)
    }

    /// `https://shop.example:8443`.
    pub(super) fn server(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

fn header<'p>(pairs: &'p [Pair], name: &str) -> Option<&'p str> {
    let found = pairs
        .iter()
        .find(|pair| pair.name.eq_ignore_ascii_case(name));
    found.map(|pair| pair.value.as_str())
}
