//! Comparisons of runs: every gate, and every way in which what it needs can be missing.

mod gates;
mod lines;
mod simulations;
mod support;
