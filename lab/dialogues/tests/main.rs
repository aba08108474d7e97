//! What the engine relies on, asked of each client over real sockets.
//! One program, since each would be linked by itself.

mod conformance;
mod time;
