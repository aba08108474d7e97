//! Reports of archives that are made up in every number, in all formats.
//! One program, since each would be linked by itself.

mod analysis;
mod answers;
mod arrivals;
mod bounds;
mod counted;
mod cpu;
mod differences;
mod events;
mod formats;
mod golden;
mod line;
mod parts;
mod populations;
mod profiles;
mod result;
mod runs;
mod search;
mod stages;
mod support;
mod traces;
mod transfer;
mod unmeasured;
mod waits;
mod writers;
