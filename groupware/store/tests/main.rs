//! The store's contract, on each engine.
//! One program, because each test program would be linked separately.

mod changes;
mod contract;
mod pending;
mod remembered;
mod room;
mod semantics;
mod serial;
