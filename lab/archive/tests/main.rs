//! Archives as they are written, read, and followed. One program, since each would be linked by itself.

mod archive;
mod follow;
