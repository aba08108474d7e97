//! HTTP/2 (RFC 9113): many requests at once on a connection, each in a stream of its own.
//!
//! - A message is rendered as for HTTP/1.1 and sent in the form of HTTP/2 ([`message`]); its response is judged by the
//!   same rules.
//! - Connections and their sharing are those of [`crate::streams`]. Waiting for a free stream is
//!   [`crate::Phase::Blocked`].
//! - A request that the server reports as not processed is sent again, once, whatever its method: a refused stream, and
//!   one beyond the last that a GOAWAY names (RFC 9113, section 8.7). If a connection ended, the rule for stale ones
//!   applies. Any other end of a stream is a *reset*. A response that breaks HTTP/2 or a limit is a *check*.

mod error;
mod exchange;
mod message;
mod stream;

use crate::streams::Windows;

/// The windows of Chromium, so that the server's own speed is measured.
pub(super) const WINDOWS: Windows = Windows {
    stream: 6 << 20,
    connection: 15 << 20,
    tiny_frames: 4 << 20,
};
