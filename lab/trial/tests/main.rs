//! Results of the checks of one trial in fully artificial archives, and in those of a simulated generator with faults.
//! One program, since each would be linked separately.

mod checks;
mod environment;
mod faults;
mod lag;
mod probe;
mod skips;
mod support;
mod unknowns;
mod waiting;
