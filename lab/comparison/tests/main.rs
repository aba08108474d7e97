//! Comparisons of runs: every gate, and every way in which its inputs can be missing.

mod gates;
mod lines;
mod simulations;
mod support;
