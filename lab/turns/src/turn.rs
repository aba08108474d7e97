//! Types exchanged between a script and the lab: calls, turns, and outcomes.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::thrown::Thrown;

/// A call of an exported function for a user: an iteration, `setup`, `teardown`, `handleSummary`.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The name of the exported function, such as `default`.
    pub function: String,
    /// The first argument; shared by all users of the runtime, so it can't be changed.
    pub data: Option<std::sync::Arc<Value>>,
    /// What the script can ask about its place in the test.
    pub facts: Facts,
}

/// What a script can ask about its place in the test (`k6/execution`, `__VU`, `__ITER`).
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The number of the user in the whole test, from 1.
    pub vu_in_test: u64,
    /// The number of the user on this generator, from 1.
    pub vu_in_instance: u64,
    /// The number of the iteration in the scenario, over all generators, from 0.
    pub iteration_in_test: u64,
    /// The number of the iteration in the scenario on this generator, from 0.
    pub iteration_in_instance: u64,
    /// The number of the iteration of this user in this scenario, from 0.
    pub iteration_in_scenario: u64,
    /// The number of the iteration of this user, over all scenarios, from 0.
    pub iteration_of_user: u64,
    /// The name of the scenario.
    pub scenario: String,
    /// The name of the scenario's executor, such as `constant-vus`.
    pub executor: String,
    /// The start of the scenario in milliseconds since 1970.
    pub start_ms: f64,
    /// The time of the call in milliseconds since 1970.
    pub now_ms: f64,
    /// The share of the scenario that has passed, 0 to 1.
    pub progress: f64,
    /// Completed iterations of this generator.
    pub iterations_completed: u64,
    /// Interrupted iterations of this generator.
    pub iterations_interrupted: u64,
    /// Users that run an iteration on this generator.
    pub vus_active: u64,
    /// Users that exist on this generator.
    pub vus_initialized: u64,
}

/// The end of a turn.
#[derive(Debug, Clone)]
pub enum Turn {
    /// The user waits.
    Wait {
        /// Microseconds.
        micros: u64,
    },
    /// The user sends one request; resume with [`Outcome::Answers`] of one answer.
    Request(Box<Request>),
    /// The user sends several requests at once; resume with as many answers, in the same order.
    Batch(Vec<Request>),
    /// The call is over.
    Done {
        /// The returned value, if the function returned one that JSON can hold.
        value: Option<Value>,
    },
    /// The call ended by an uncaught error.
    Threw(Thrown),
}

/// What the lab did since the end of the last turn.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The wait is over.
    Waited,
    /// One answer per request, in the order of the requests.
    Answers(Vec<Answer>),
}

/// A request to send.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The place of the call in the sites of the program; 0 is an unknown place.
    pub site: u32,
    /// The method, in capitals.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// Header fields in order.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none.
    pub body: Bytes,
    /// The name that the script gives (`tags.name`, `http.url`); the site's name if it gives none.
    pub name: Option<String>,
    /// The longest time to wait for the answer.
    pub timeout: Option<Duration>,
    /// The most redirects to follow.
    pub redirects: Option<u32>,
    /// The statuses that don't count as failures.
    pub expected: Expected,
    /// What the script reads of the body.
    pub response: ResponseKind,
    /// The cookies to send and to keep.
    pub jar: Jar,
    /// How to sign in.
    pub auth: Auth,
    /// Codings to apply to the body, first one first.
    pub compression: Vec<Compression>,
}

/// The statuses that don't count as failures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Expected {
    /// 200 to 399.
    #[default]
    Usual,
    /// Any status.
    Any,
    /// Ranges with both ends.
    Ranges(Vec<(u16, u16)>),
}

/// What the script reads of the body of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResponseKind {
    /// Text.
    #[default]
    Text,
    /// Bytes.
    Binary,
    /// Nothing: the body is read and dropped.
    None,
}

/// The cookies of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Jar {
    /// Cookies of this request only: name, value, and whether it replaces the jar's.
    pub own: Vec<(String, String, bool)>,
    /// The script's changes to the user's jar since the last request.
    pub changes: Vec<Cookie>,
}

/// A cookie.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cookie {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// The domain.
    pub domain: String,
    /// The path.
    pub path: String,
    /// The end of its life in milliseconds since 1970.
    pub expires_ms: Option<f64>,
    /// The length of its life in seconds.
    pub max_age: Option<i64>,
    /// Sent by TLS only.
    pub secure: bool,
    /// Not for scripts of pages.
    pub http_only: bool,
}

/// How a request signs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Auth {
    /// By nothing but what its address or headers hold.
    #[default]
    None,
    /// By the name and password in the address, after a challenge (RFC 7616).
    Digest,
}

/// A coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// `gzip`
    Gzip,
    /// `deflate`
    Deflate,
    /// `br`
    Brotli,
    /// `zstd`
    Zstd,
}

/// An answer to a request.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The status; 0 if there was no answer.
    pub status: u16,
    /// Header fields in order.
    pub headers: Vec<(String, String)>,
    /// The body, without content codings.
    pub body: Bytes,
    /// The times of its phases.
    pub timings: Timings,
    /// The address after redirects.
    pub url: String,
    /// Why there was no answer.
    pub error: Option<Failure>,
    /// The protocol, such as `HTTP/1.1`.
    pub protocol: String,
}

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code of k6's documentation, such as 1050 for a timeout.
    pub code: u32,
    /// The message.
    pub message: String,
}

/// The times of the phases of a request, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Waiting for a free connection.
    pub blocked: u64,
    /// Looking up the name.
    pub looking_up: u64,
    /// Connecting.
    pub connecting: u64,
    /// The handshake of TLS.
    pub tls_handshaking: u64,
    /// Sending.
    pub sending: u64,
    /// Waiting for the first byte.
    pub waiting: u64,
    /// Receiving.
    pub receiving: u64,
}

impl Timings {
    /// Sending, waiting, and receiving together: what k6 calls the duration.
    pub fn duration(&self) -> u64 {
        self.sending + self.waiting + self.receiving
    }
}
