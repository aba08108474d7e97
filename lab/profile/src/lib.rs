//! Profiles of the CPU time of a system: call stacks with their samples, as data.
//!
//! A profile covers the hold of one trial. `lab/sampling` records it, an archive keeps it, and reports sum it up by
//! function. The types have the shape and the names of the pprof format (`profile.proto`), so that nothing is lost between
//! the two. Nothing here reads a clock, a file, or the kernel.

pub mod bars;
mod builder;
mod class;
pub mod columns;
pub mod comparable;
pub mod differences;
pub mod flame;
pub mod formats;
mod kernel;
mod key;
mod model;
mod pprof;
mod shrink;
mod sums;
mod svg;
mod tree;
pub mod waits;

pub use builder::Builder;
pub use key::{Key, thread_group};
pub use model::{Function, Kind, Line, Location, Mapping, Profile, Sample, Wait, Weight};
pub use pprof::{MOST_COMPRESSED_BYTES, MOST_UNCOMPRESSED_BYTES, ReadError, Written};
pub use sums::{FunctionSum, Sums, ThreadSum};
pub use tree::{Node, Tree};
