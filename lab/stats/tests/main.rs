//! Laws, known truths, and simulations that verify the statistics.
//! One program, since each would be linked separately.

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
