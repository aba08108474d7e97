//! The store by its contract, on each engine.
//! One program, since each would be linked by itself.

mod changes;
mod contract;
mod pending;
mod remembered;
mod room;
mod semantics;
mod serial;
