//! Counters of this machine and of others. One program, since each would be linked by itself.

mod monitor;
mod remote;
