//! Generators in processes of their own: the same users, spread over several programs, on this
//! machine now and on others later. The messages are the same; only who starts the program differs.
//!
//! A generator runs the workers of a [`crate::Driver`] and nothing else: it forwards what they report,
//! and does what it is ordered. One merger, in the program that conducts, holds the barriers of setup
//! for all workers of all generators and merges their windows as if they were threads of its own.
//!
//! Times in messages are those of the machine's monotonic clock, which all its processes share.
//! Generators on other machines need the difference of the clocks added; nothing measures that yet.

mod child;
mod error;
mod link;
mod message;
mod wire;

pub use child::{GenerateError, generate};
pub use error::{MAX_FRAME_BYTES, MessageError};
pub use link::Generators;
pub(crate) use link::Links;
pub use message::{check_from_generator, check_to_generator};
