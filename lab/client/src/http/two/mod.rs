//! HTTP/2 (RFC 9113): many requests at once on a connection, each in a stream of its own.
//!
//! - A message is rendered as for HTTP/1.1 and sent as HTTP/2 has it ([`message`]); its answer is judged
//!   by the same rules.
//! - A connection serves itself ([`link`]): it answers pings, takes settings, and opens windows also
//!   while its users think. It lets in as many requests as the server allows at once; the others wait in
//!   their order, which is [`crate::Phase::Blocked`].
//! - Users may share connections ([`shared`]).
//! - What the server says that it did nothing with is sent again, once, by whatever method: a refused
//!   stream, and one beyond the last that a GOAWAY names (RFC 9113, section 8.7). Where a connection
//!   ended, the rule for stale ones holds. Any other end of a stream is a *reset*, and an answer that
//!   breaks HTTP/2 or a limit a *check*.

mod error;
mod exchange;
mod link;
mod message;
mod shared;
mod talk;

pub(super) use link::{Held, builder};
pub(super) use shared::Sharing;
