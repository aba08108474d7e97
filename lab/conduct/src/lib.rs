//! Runs a plan: systems, factors, trials, archive. Judges nothing.
