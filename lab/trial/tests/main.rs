//! What the checks of one trial find in archives that are made up in every number, and in those of a simulated
//! generator with faults. One program, since each would be linked by itself.

mod checks;
mod circumstances;
mod faults;
mod lag;
mod probe;
mod skips;
mod support;
mod unknowns;
mod waiting;
