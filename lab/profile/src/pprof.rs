//! The pprof format: `profile.proto`, compressed with gzip.

mod message;
mod read;
mod write;

pub use read::ReadError;
pub use write::Written;

use crate::model::Kind;

/// The largest file that is read or written.
pub const MOST_COMPRESSED_BYTES: usize = 16 << 20;
/// The most bytes that a file may have without its compression.
pub const MOST_UNCOMPRESSED_BYTES: usize = 128 << 20;

/// Different stacks in a file that is written.
const MOST_STACKS: usize = 200_000;
/// Locations in a stack that is written, as many as the kernel reports at most.
const MOST_STACK: usize = 127;
/// The maximum number of functions at one location in a written file: a compiled one, and the functions inlined there.
const MOST_INLINED: usize = 32;
/// Bytes of a text. C++ has names of kilobytes.
const MOST_TEXT_BYTES: usize = 16 << 10;

// Limits of a file to read. Every written file is within them.
const MOST_MAPPINGS: usize = 64 << 10;
const MOST_FUNCTIONS: usize = 1 << 20;
const MOST_LOCATIONS: usize = 1 << 20;
const MOST_TEXTS: usize = 2 << 20;
const MOST_SAMPLES: usize = 2 << 20;
/// Bytes of the names of all mappings, functions, and threads.
const MOST_NAME_BYTES: usize = 64 << 20;
/// Bytes of one sample, location, mapping, or function.
const MOST_MESSAGE_BYTES: usize = 64 << 10;
/// Functions of a stack, inlined ones included.
const MOST_FRAMES: usize = MOST_STACK * MOST_INLINED;
/// Functions of all stacks together.
const MOST_FRAMES_TOGETHER: usize = 32 << 20;

const COUNT: &str = "count";
const NANOSECONDS: &str = "nanoseconds";
const SECOND: &str = "second";
const SECONDS: &str = "seconds";
const THREAD: &str = "thread";
/// Label of the class of a wait: the name of a [`Class`](crate::class::Class).
const CLASS: &str = "class";
/// Label of a waker.
const WAKER: &str = "waker";

impl Kind {
    /// The types of the two values of each sample: how many, and their time.
    const fn values(self) -> (&'static str, &'static str) {
        match self {
            Self::Cpu => ("samples", "cpu"),
            Self::Off => ("intervals", "off"),
        }
    }
}

/// The numbers of the fields of a profile, whose messages are read one at a time.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const TEXT: u32 = 6;
}
