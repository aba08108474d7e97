//! Types exchanged between scripts and the lab: calls, the ends of turns, events, and errors. They are a crate of their
//! own so that clients don't depend on the engine.

pub mod event;
pub mod thrown;
pub mod turn;
