//! HTTP for virtual users. HTTP/1.1 is made lean: a connection that waits keeps no buffer, and a request
//! on a kept connection costs one write, one read, and no allocation. HTTP/2 is spoken where it is asked
//! for, by the same rules, with streams in the place of connections (`two`).
//!
//! The rules that show in the results:
//!
//! - One connection per user, kept as long as the server keeps it and at most
//!   [`Limits::keep_alive_idle`] idle; or so many for all users, each of which carries one request at a
//!   time: waiting for one is part of the response time. A request to another server than the drive's
//!   (an absolute URL) takes the connection along; cookies stay behind.
//! - Response time runs from just before the send to the last byte. A connection that must be
//!   opened first, TLS included, is part of it: the user waits for it too.
//! - All addresses of a server's name are tried, a quarter of a second apart; the first that connects
//!   is taken. An answer is read while its request still goes out, if the server is that early.
//! - A redirect is followed where the workload says so. Each hop is an exchange; the engine counts all of them as one
//!   request. Credentials and cookies don't follow to another scheme, host, or port.
//! - The client asks for a compressed response where the workload says so. It decodes that response, and any other one
//!   whose body is read, after the response time ends. It counts bytes as received and as decoded.
//! - **A stale connection.** A server may close a kept connection just when it is used again. If a
//!   request of an idempotent method (RFC 9110, 9.2.2) went out on a *reused* connection that then
//!   ended (closed or reset) before *one byte* of an answer came, it is sent a second time, once, on
//!   a fresh connection. Each is counted as a [stale retry](crate::ClientCounts::stale_retries), and the
//!   response time spans both. Whatever else breaks is an error: nothing else is ever sent twice.
//! - Classes of errors: no connection (refused, unreachable, TLS, connect timeout) is *connect*; no
//!   whole answer in time is *timeout*; a connection that ends after sending began is *reset*; an
//!   answer that breaks HTTP or a limit, or lacks what is expected or captured, is *check*; an answer with
//!   another status than expected is *status*.
//!
//! It knows no schedule.

mod answer;
mod beside;
mod call;
mod chunked;
mod client;
mod coding;
mod cookie;
mod events;
mod head;
mod message;
mod pool;
mod redirect;
mod request;
mod response;
mod session;
mod two;

pub use crate::server::{Limits, Server};
pub use client::HttpClient;
pub use coding::{Coding, CodingError, Codings};
pub use events::{Event, EventParser, EventTooLong};
pub use head::{Fault, Framing, Head, parse_response_head};
pub use request::is_idempotent;
pub use response::{Complete, KeptBody, ResponseReader, Terms};
pub use session::HttpSession;

/// Messages up to this size are kept for reuse by the hundred, larger ones by the megabyte.
const POOLED_BYTES: usize = 16 << 10;
