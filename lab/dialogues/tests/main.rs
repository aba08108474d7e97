//! Behaviour that the engine requires, tested for each client over real sockets.
//! One program, since each would be linked separately.

mod conformance;
mod servers;
mod time;
