//! Reads a recording (HTTP Archive 1.2, with the deviations of Chromium, Firefox, and other recorders), within limits.
//!
//! Every member of an entry may be missing, null, or of a wrong type: unreadable members count as missing. An entry
//! without a request's address is skipped, and counted.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use super::coding::{self, base64};
use super::moment::Moments;
use crate::error::{ImportError, otherwise};

/// Largest recording.
pub const MAX_BYTES: usize = 256 << 20;
/// Most requests in a recording.
pub const MAX_ENTRIES: usize = 5_000;
/// Longest body that is searched for later values.
const MAX_BODY: usize = 4 << 20;
/// Longest response time, in milliseconds.
const MAX_TIME_MS: f64 = 3.6e6;

#[derive(Deserialize)]
struct File<'f> {
    #[serde(borrow)]
    log: HashMap<String, &'f RawValue>,
}

/// A request with its response.
#[derive(Debug)]
pub(super) struct Entry {
    started: String,
    time_ms: f64,
    pub(super) request: Request,
    pub(super) response: Response,
    /// Chromium's resource type.
    pub(super) kind: String,
    pub(super) is_from_cache: bool,
    /// Messages of a WebSocket, which Chromium records.
    pub(super) messages: usize,
}

#[derive(Debug)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: String,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<Pair>,
    pub(super) body: Option<Sent>,
}

/// The body of a request.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) params: Vec<Param>,
    /// True if the text is base64.
    pub(super) is_base64: bool,
}

/// A field of a form.
#[derive(Debug)]
pub(super) struct Param {
    pub(super) name: String,
    /// `None` if the recorder didn't store it.
    pub(super) value: Option<String>,
    pub(super) file: Option<String>,
    pub(super) kind: String,
}

#[derive(Debug)]
pub(super) struct Response {
    /// 0 for a request without a response.
    pub(super) status: i64,
    pub(super) headers: Vec<Pair>,
    pub(super) redirect: String,
    body: String,
}

/// A request of the recording, with its address and its time.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) entry: Entry,
    pub(super) url: Url,
    /// Milliseconds since the first one.
    pub(super) begins: f64,
    pub(super) ends: f64,
    /// The response's body as text; empty if there is none, or it is no text.
    pub(super) body: String,
    /// The body in each encoding of values, computed on demand.
    views: OnceCell<Vec<String>>,
}

/// A member as text; numbers and booleans in JSON form.
fn text(value: &Value, key: &str) -> Option<String> {
    match value.get(key)? {
        Value::String(text) => Some(text.clone()),
        plain @ (Value::Number(_) | Value::Bool(_)) => Some(plain.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A member as a number, also in quotes.
fn number(value: &Value, key: &str) -> Option<f64> {
    let number: f64 = text(value, key)?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn pairs(value: &Value, key: &str) -> Vec<Pair> {
    let pair = |one: &Value| {
        Some(Pair {
            name: text(one, "name")?,
            value: text(one, "value").unwrap_or_default(),
        })
    };
    list(value, key).iter().filter_map(pair).collect()
}

impl Entry {
    /// The entry; `None` if it has no request with an address.
    fn of(value: &Value) -> Option<Self> {
        let response = value.get("response").unwrap_or(&Value::Null);
        Some(Self {
            started: text(value, "startedDateTime").unwrap_or_default(),
            time_ms: number(value, "time").unwrap_or(0.0).clamp(0.0, MAX_TIME_MS),
            request: Request::of(value.get("request")?)?,
            response: Response::of(response),
            kind: text(value, "_resourceType").unwrap_or_default(),
            is_from_cache: value.get("_fromCache").is_some_and(Value::is_string),
            messages: list(value, "_webSocketMessages").len(),
        })
    }
}

impl Request {
    fn of(value: &Value) -> Option<Self> {
        let written = text(value, "method").unwrap_or_default();
        // Methods are upper case; some recorders differ.
        let method = written.trim().to_ascii_uppercase();
        Some(Self {
            method: if method.is_empty() {
                "GET".to_owned()
            } else {
                method
            },
            url: text(value, "url")?,
            headers: pairs(value, "headers"),
            body: value
                .get("postData")
                .filter(|body| body.is_object())
                .map(Sent::of),
        })
    }
}

impl Sent {
    fn of(value: &Value) -> Self {
        let param = |one: &Value| {
            Some(Param {
                name: text(one, "name")?,
                value: text(one, "value"),
                file: text(one, "fileName"),
                kind: text(one, "contentType").unwrap_or_default(),
            })
        };
        Self {
            kind: text(value, "mimeType").unwrap_or_default(),
            text: text(value, "text").unwrap_or_default(),
            params: list(value, "params").iter().filter_map(param).collect(),
            is_base64: is_base64(value),
        }
    }
}

impl Response {
    fn of(value: &Value) -> Self {
        let content = value.get("content").unwrap_or(&Value::Null);
        Self {
            status: number(value, "status").map_or(0, |status| status as i64),
            headers: pairs(value, "headers"),
            redirect: text(value, "redirectURL").unwrap_or_default(),
            body: content_text(content),
        }
    }
}

fn is_base64(value: &Value) -> bool {
    let is = |key: &str| {
        text(value, key).is_some_and(|coding| coding.trim().eq_ignore_ascii_case("base64"))
    };
    is("encoding") || is("_encoding")
}

/// The body of a response as text. Invalid base64 is taken unchanged.
fn content_text(content: &Value) -> String {
    let kind = text(content, "mimeType")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_text = ["text/", "json", "xml", "javascript", "html", "form"];
    let body = text(content, "text").unwrap_or_default();
    if body.len() > MAX_BODY || !(kind.is_empty() || is_text.iter().any(|k| kind.contains(k))) {
        return String::new();
    }
    match is_base64(content).then(|| base64(&body)).flatten() {
        Some(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        None => body,
    }
}

/// The requests in the order of their sends, and notes about skipped or guessed data.
pub(super) fn read(text: &str) -> Result<(Vec<Recorded>, Vec<String>), ImportError> {
    let size = text.len();
    if size > MAX_BYTES {
        return Err(ImportError::TooLarge {
            size,
            most: MAX_BYTES,
        });
    }
    // Some tools start a file with a byte-order mark.
    let text = text.trim_start_matches('\u{feff}');
    let file: Result<File<'_>, _> = serde_json::from_str(text);
    let file = file.map_err(|error| otherwise(text).unwrap_or_else(|| error.into()))?;
    let entries: Option<Vec<&RawValue>> = match file.log.get("entries") {
        Some(entries) => serde_json::from_str(entries.get())?,
        None => None,
    };
    let entries = entries.unwrap_or_default();
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
    let mut left_out = LeftOut::default();
    let mut read: Vec<Recorded> = Vec::with_capacity(entries.len());
    let mut moments = Moments::default();
    for (nth, raw) in entries.iter().enumerate() {
        let value = serde_json::from_str::<Value>(raw.get());
        let Some(entry) = value.ok().and_then(|value| Entry::of(&value)) else {
            left_out.unreadable.push(nth + 1);
            continue;
        };
        let Some(url) = address(&entry.request.url) else {
            left_out.odd += 1;
            continue;
        };
        moments.push(&entry.started);
        read.push(recorded(entry, url));
    }
    let mut said = left_out.said();
    order(&mut read, moments, &mut said);
    Ok((read, said))
}

/// Entries that can't be imported.
#[derive(Default)]
struct LeftOut {
    /// Their numbers, from 1.
    unreadable: Vec<usize>,
    /// Number of entries without a usable address.
    odd: usize,
}

impl LeftOut {
    fn said(self) -> Vec<String> {
        let mut said = Vec::new();
        match self.unreadable.as_slice() {
            [] => {}
            [one] => said.push(format!(
                "entry {one} left out: it has no request with an address that can be read"
            )),
            [first, more @ ..] => said.push(format!(
                "{} entries left out: they have no request with an address that can be read (the first is entry {first})",
                1 + more.len()
            )),
        }
        if self.odd > 0 {
            said.push(format!(
                "{} requests left out: their addresses are no http",
                self.odd
            ));
        }
        said
    }
}

/// Sorts the requests by time, relative to the first.
fn order(read: &mut [Recorded], moments: Moments, said: &mut Vec<String>) {
    let unknown = moments.unknown();
    if unknown > 0 && unknown < read.len() {
        said.push(format!(
            "{unknown} of {} requests have no moment that can be read: they follow the request before them in the \
             recording, without a wait",
            read.len()
        ));
    } else if unknown > 0 {
        said.push(
            "the recording has no moments that can be read: requests keep their order, without waits"
                .to_owned(),
        );
    }
    let placed = moments.placed();
    let first = placed.iter().map(|at| at.ms).fold(f64::INFINITY, f64::min);
    let mut before_ends = 0.0;
    for (one, at) in read.iter_mut().zip(placed) {
        one.begins = at.ms - first;
        // A request without a time lasts as long as the one before it: this adds no wait before it, and loses none.
        one.ends = match at.is_known {
            true => one.begins + one.entry.time_ms,
            false => f64::max(one.begins, before_ends),
        };
        before_ends = one.ends;
    }
    read.sort_by(|a, b| a.begins.total_cmp(&b.begins));
}

fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https" | "ws" | "wss");
    (is_http && url.host_str().is_some()).then_some(url)
}

fn recorded(mut entry: Entry, url: Url) -> Recorded {
    let body = std::mem::take(&mut entry.response.body);
    Recorded {
        begins: 0.0,
        ends: 0.0,
        body,
        views: OnceCell::new(),
        url,
        entry,
    }
}

impl Recorded {
    /// A header of the request, by its lower-case name.
    pub(super) fn sent(&self, name: &str) -> Option<&str> {
        header(&self.entry.request.headers, name)
    }

    /// A header of the response, by its lower-case name.
    pub(super) fn answered(&self, name: &str) -> Option<&str> {
        header(&self.entry.response.headers, name)
    }

    /// Returns true if the response contains a text, raw or decoded.
    pub(super) fn holds(&self, text: &str) -> bool {
        let views = || self.views.get_or_init(|| coding::decoded(&self.body));
        let headers = &self.entry.response.headers;
        self.body.contains(text)
            || headers.iter().any(|header| header.value.contains(text))
            || views().iter().any(|view| view.contains(text))
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
