//! The events of a dry run. Data only; secrets are masked already.

use lab_client::http::Codings;
use lab_client::{ErrorClass, Side, Version};

/// An event of a dry run.
#[derive(Debug, Clone, PartialEq)]
pub enum Moment {
    /// A request was sent, or failed to be.
    Exchanged(Box<Exchanged>),
    /// A script logged a line.
    Logged(String),
    /// A step that this session skipped.
    NotDone {
        /// Its name.
        step: String,
        /// Why.
        why: NotDone,
    },
}

/// Why a session skipped a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDone {
    /// It has a share, or is one of several.
    Chance,
    /// Its condition, or its group's, doesn't hold.
    Condition,
    /// A step before it failed.
    Other,
}

/// A part of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the load.
    Setup,
    /// The measured part.
    Session,
}

/// A request of the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanged {
    /// The part it belongs to.
    pub phase: Phase,
    /// The name of its step.
    pub step: String,
    /// The round of a repeated step, from 0; `None` for a step that runs once.
    pub round: Option<u32>,
    /// Its index in its step, from 0, and the number of requests.
    pub place: (usize, usize),
    /// Its user.
    pub user: u32,
    /// Its text in the workload, such as `GET {{ next }}`.
    pub line: String,
    /// Its messages on the wire, for HTTP; empty if there were none.
    pub messages: Vec<Message>,
    /// Its messages, for other protocols.
    pub lines: Vec<Line>,
    /// The durations of its parts.
    pub timing: Timing,
    /// How it ended.
    pub ended: Ended,
    /// From the send to the last byte, including the opening of the connection.
    pub took_ms: f64,
    /// The workload's expectations of the response, in words.
    pub expected: String,
    /// Its captures of the response.
    pub captured: Vec<Captured>,
}

/// A message of one side in a protocol other than HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The sender.
    pub side: Side,
    /// Its readable form; it may have several lines.
    pub text: String,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// As expected.
    Well,
    /// It failed.
    Failed {
        /// The class of the failure.
        class: ErrorClass,
        /// The actual result.
        detail: String,
    },
    /// Not sent: a list or a value that it needs is empty.
    Skipped {
        /// Its variables without a value.
        empty: Vec<String>,
    },
    /// Not sent, for another reason.
    Unmade {
        /// The reason.
        detail: String,
    },
}

/// A value captured from a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The variable.
    pub variable: String,
    /// Number of entries; 0 if nothing was found.
    pub count: usize,
    /// The first of them.
    pub first: String,
}

/// A request on the wire, and its response.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Scheme and host.
    pub server: String,
    /// The HTTP version.
    pub version: Version,
    /// The request.
    pub request: Request,
    /// The response; `None` if there was none, or it can't be parsed.
    pub response: Option<Response>,
    /// The durations of its parts.
    pub timing: Timing,
}

/// The durations of the parts of an exchange, in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timing {
    /// Start time, relative to that of the dry run.
    pub began_ms: f64,
    /// Opening the connection, name resolution and TLS included; `None` for an open one.
    pub connect_ms: Option<f64>,
    /// From the send to the response's first byte.
    pub wait_ms: Option<f64>,
    /// From there to its last byte.
    pub receive_ms: Option<f64>,
}

/// A request as sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// In order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A response as received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// In order.
    pub headers: Vec<(String, String)>,
    /// The body without its framing, as far as it was stored; decoded if `is_decoded`.
    pub body: Vec<u8>,
    /// Bytes of the whole body as received.
    pub body_bytes: u64,
    /// Bytes of it that were not stored.
    pub left_out_bytes: u64,
    /// True if the body had a content coding, and is decoded here.
    pub is_decoded: bool,
}

impl Response {
    /// The codings that the body still has, if any.
    pub(crate) fn coding(&self) -> Option<String> {
        coding(&self.headers).filter(|_| !self.is_decoded)
    }
}

/// The codings that all `Content-Encoding` headers name.
pub(crate) fn codings(headers: &[(String, String)]) -> Codings {
    let mut all = Codings::default();
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("content-encoding") {
            all.add(value.as_bytes());
        }
    }
    all
}

/// Their names, where the body needs decoding.
pub(crate) fn coding(headers: &[(String, String)]) -> Option<String> {
    let codings = codings(headers);
    codings.decodes().then(|| codings.names())
}

/// The totals of a dry run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that ended as expected.
    pub well: usize,
    /// Requests that failed, or could not be made.
    pub failed: usize,
    /// Skipped requests.
    pub skipped: usize,
}

/// The first header of this name.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}
