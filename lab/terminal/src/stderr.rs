//! Messages on stderr. Write errors are ignored: a closed terminal, or a pipe without a reader, is no reason to abandon
//! the work under way.

use std::fmt::Arguments;
use std::io::{Write, stderr};

/// Prints a line.
pub fn say(line: Arguments<'_>) {
    let _ = writeln!(stderr().lock(), "{line}");
}
