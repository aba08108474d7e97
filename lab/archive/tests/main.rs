//! Archives as they are written, read, and followed. One program, since each would be linked by itself.

mod again;
mod archive;
mod cpu;
mod follow;
mod profiled;
mod waits;
