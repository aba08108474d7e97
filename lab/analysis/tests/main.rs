//! Analyses of archives that are made up in every number.
//! One program, since each would be linked by itself.

mod capacity;
mod checks;
mod duet;
mod environment;
mod failures;
mod power;
mod support;
