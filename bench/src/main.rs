//! Side-by-side benchmarks against peers, reported as ratios.

fn main() {}
