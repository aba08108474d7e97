//! HTTP/2 connections and their sharing between users. They know nothing of the content of streams.
//!
//! A connection serves itself ([`link`]): it responds to pings, applies settings, and opens windows also while its
//! users think. It admits as many streams as the server allows at once; the others wait in order of arrival. Users may
//! share connections ([`shared`]).

mod link;
mod shared;

pub use link::StreamSlot;
pub(crate) use link::{HeldConnection, Link, Windows, builder};
pub(crate) use shared::Sharing;
