//! Connections of HTTP/2 and who shares them. They know nothing of what is said in their streams.
//!
//! A connection serves itself ([`link`]): it answers pings, takes settings, and opens windows also while its
//! users think. It lets in as many streams as the server allows at once; the others wait in their order.
//! Users may share connections ([`shared`]).

mod link;
mod shared;

pub use link::StreamSlot;
pub(crate) use link::{HeldConnection, Link, Windows, builder};
pub(crate) use shared::Sharing;
