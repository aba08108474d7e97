//! Laws, known truths, and simulations of what the statistics claim.
//! One program, since each would be linked by itself.

mod between;
mod change;
mod duet;
mod interference;
mod laws;
mod line;
mod moderated;
mod noise;
mod runs;
mod safe;
mod truth;
