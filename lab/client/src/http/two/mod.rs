//! HTTP/2 (RFC 9113): many requests at once on a connection, each in a stream of its own.
//!
//! - A message is rendered as for HTTP/1.1 and sent as HTTP/2 has it ([`message`]); its answer is judged
//!   by the same rules.
//! - Connections, and who shares them, are those of [`crate::streams`]. Waiting for a place on one is
//!   [`crate::Phase::Blocked`].
//! - What the server says that it did nothing with is sent again, once, by whatever method: a refused
//!   stream, and one beyond the last that a GOAWAY names (RFC 9113, section 8.7). Where a connection
//!   ended, the rule for stale ones holds. Any other end of a stream is a *reset*, and an answer that
//!   breaks HTTP/2 or a limit a *check*.

mod error;
mod exchange;
mod message;
mod talk;

use crate::streams::Windows;

/// As browsers have it (Chromium's), so that a server is measured by its own speed.
pub(super) const WINDOWS: Windows = Windows {
    stream: 6 << 20,
    connection: 15 << 20,
    tiny_frames: 4 << 20,
};
