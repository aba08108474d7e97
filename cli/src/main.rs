//! The command `plimsoll`: arguments, exit codes, wiring.

fn main() {}
