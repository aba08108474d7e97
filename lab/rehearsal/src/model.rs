//! What happens in a rehearsal. Data only; secrets are masked already.

use lab_client::http::Codings;
use lab_client::{ErrorClass, Side, Version};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Moment {
    /// A request was sent, or was to be.
    Exchanged(Box<Exchanged>),
    /// A step that this session did not do.
    NotDone {
        /// Its name.
        step: String,
        /// Why.
        why: NotDone,
    },
}

/// Why a session did not do a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDone {
    /// It has a share, or is one of several.
    Chance,
    /// Its condition, or its group's, doesn't hold.
    Condition,
    /// One before it failed.
    Other,
}

/// Which part of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the load.
    Setup,
    /// What is measured.
    Session,
}

/// A request of the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanged {
    /// Which part it belongs to.
    pub phase: Phase,
    /// The name of its step.
    pub step: String,
    /// Which round of a repeated step, from 0; `None` of a step that is done once.
    pub round: Option<u32>,
    /// Which request of its step, from 0, and of how many.
    pub place: (usize, usize),
    /// Who sent it.
    pub user: u32,
    /// As the workload has it, such as `GET {{ next }}`.
    pub line: String,
    /// What went over the wire for it, of HTTP; empty where nothing did.
    pub messages: Vec<Message>,
    /// What was said, of other protocols.
    pub lines: Vec<Line>,
    /// How long the parts of that took.
    pub timing: Timing,
    /// How it ended.
    pub ended: Ended,
    /// From the send to the last byte, the connection's opening included.
    pub took_ms: f64,
    /// What the workload asked of the answer, in words.
    pub expected: String,
    /// What it was to keep of the answer.
    pub captured: Vec<Captured>,
}

/// What one side said in a protocol other than HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Who said it.
    pub side: Side,
    /// As a person reads it; it may have several lines.
    pub text: String,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// As expected.
    Well,
    /// Otherwise.
    Failed {
        /// In which way.
        class: ErrorClass,
        /// What came instead.
        detail: String,
    },
    /// Not sent: a list or a value that it needs is empty.
    Skipped {
        /// The variables that it names and that have nothing.
        empty: Vec<String>,
    },
    /// Not sent, for another reason.
    Unmade {
        /// Which.
        detail: String,
    },
}

/// A value kept of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The variable.
    pub variable: String,
    /// Its entries; 0 where nothing was found.
    pub count: usize,
    /// The first of them.
    pub first: String,
}

/// A request on the wire, and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Scheme and host.
    pub server: String,
    /// What was spoken.
    pub version: Version,
    /// What was sent.
    pub request: Request,
    /// What came; `None` where nothing came, or nothing that can be read.
    pub response: Option<Response>,
    /// How long its parts took.
    pub timing: Timing,
}

/// How long the parts of an exchange took, in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timing {
    /// When it began, after the rehearsal did.
    pub began_ms: f64,
    /// To open the connection, name and TLS included; `None` on one that was open.
    pub connect_ms: Option<f64>,
    /// From the send to the answer's first byte.
    pub wait_ms: Option<f64>,
    /// From there to its last.
    pub receive_ms: Option<f64>,
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// `GET` and the like.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// In this order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// What the server says to it.
    pub reason: String,
    /// In this order.
    pub headers: Vec<(String, String)>,
    /// The body without its framing, as far as it was kept; decoded where `is_decoded`.
    pub body: Vec<u8>,
    /// Bytes of the whole body as it came.
    pub body_bytes: u64,
    /// Bytes of it that were not kept.
    pub left_out_bytes: u64,
    /// Whether the body came in a content coding, and this is what it stands for.
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

/// What a rehearsal came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that went as expected.
    pub well: usize,
    /// Those that did not, or could not be made.
    pub failed: usize,
    /// Those that were skipped.
    pub skipped: usize,
}

/// The first header of this name.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}
