//! Generators in processes of their own: the same users, spread over several programs, on this machine or on others.
//! The messages are the same. The transport ([`FrameSink`], [`FrameSource`]) and the location of the program
//! ([`Place`]) differ.
//!
//! A generator only runs the workers of a [`crate::Driver`]: it forwards their reports, and follows orders. One merger,
//! in the conductor's program, holds the barriers of setup for all workers of all generators and merges their windows
//! as if they were threads of its own.
//!
//! Times in orders are those of the monotonic clock of the generator's machine: its [`Place`] knows the offset to the
//! conductor's. No response time is ever computed from two clocks.

mod channel;
mod content;
mod delivery;
mod error;
mod generator;
mod generators;
mod handle;
mod inbox;
mod message;
mod peer;
mod process;
#[cfg(test)]
mod simulation;

pub use channel::{FrameSink, FrameSource, Piped};
pub use delivery::{Arrivals, Full, Unacknowledged};
pub use error::{MAX_FRAME_BYTES, MessageError};
pub use generator::{GenerateError, generate};
pub use generators::{RemoteGenerators, Seen, SeenOffset};
pub(crate) use handle::{Common, GeneratorHandles};
pub use message::{check_from_generator, check_to_generator};
pub use peer::{End, Peer, Place};
pub use process::Generators;
