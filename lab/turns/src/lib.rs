//! The border between scripts and the lab: what a turn begins and ends with, what happened in it, and what is thrown.
//! It is its own crate so that what answers requests knows no engine.

pub mod event;
pub mod thrown;
pub mod turn;
