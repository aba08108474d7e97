//! HTTP for virtual users. HTTP/1.1 is lean: a waiting connection keeps no buffer, and a request on a kept connection
//! costs one write, one read, and no allocation. HTTP/2 is used on request, by the same rules, with streams in place of
//! connections (`two`).
//!
//! The rules that show in the results:
//!
//! - One connection per user, kept as long as the server keeps it, at most [`Limits::keep_alive_idle`] idle. Or a fixed
//!   number for all users, each of which carries one request at a time: waiting for one is part of the response time. A
//!   request to another server than the base server (an absolute URL) replaces the connection; cookies are not sent
//!   there.
//! - Response time runs from just before the send to the last byte. A connection that must be
//!   opened first, TLS included, is part of it: the user waits for it too.
//! - All addresses of a server's name are tried, a quarter of a second apart; the first that connects is taken. The
//!   client reads a response while it still sends the request, if the server responds early.
//! - A redirect is followed if the workload says so. Each hop is an exchange; the engine counts all of them as one
//!   request. Credentials and cookies are not sent to another scheme, host, or port.
//! - The client requests a compressed response if the workload says so. It decodes that response, and any other one
//!   whose body is read, after the response time ends. It counts bytes as received and as decoded.
//! - **A stale connection.** A server may close a kept connection just when it is used again. The client sends a
//!   request a second time, once, on a fresh connection, if its method is idempotent (RFC 9110, 9.2.2), it was sent on
//!   a *reused* connection, and that connection ended (closed or reset) before *one byte* of a response. Each is
//!   counted as a [stale retry](crate::ClientCounts::stale_retries), and the response time spans both. Any other
//!   failure is an error: nothing else is ever sent twice.
//! - Error classes: no connection (refused, unreachable, TLS, connect timeout) is *connect*; no whole response in time
//!   is *timeout*; a connection that ends after sending began is *reset*; a response that breaks HTTP or a limit, or
//!   lacks what is expected or captured, is *check*; a response with an unexpected status is *status*.
//!
//! It knows no schedule.

mod answer;
mod call;
mod chunked;
mod client;
mod cookie;
mod events;
mod head;
mod message;
mod next;
mod parallel;
mod pool;
mod redirect;
mod request;
mod response;
mod scripted;
mod session;
mod two;

pub use crate::server::{Limits, Server};
pub use client::HttpClient;
pub use events::{Event, EventParser, EventTooLong};
pub use head::{Fault, Framing, Head, parse_response_head};
pub use lab_filters::coding::{Coding, CodingError, Codings};
pub use request::is_idempotent;
pub use response::{Complete, ResponseReader, StoredBody, Terms};
pub use session::HttpSession;

/// Messages up to this size are kept for reuse by number, larger ones by total bytes.
const POOLED_BYTES: usize = 16 << 10;
