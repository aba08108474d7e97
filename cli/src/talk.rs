//! Talk on stderr. Nobody may listen any more: a terminal that was closed, or a pipe whose reader has
//! ended, is no reason to leave what is under way as it is.

use std::fmt::Arguments;
use std::io::{Write, stderr};

/// Says a line to whoever listens.
pub(crate) fn say(line: Arguments<'_>) {
    let _ = writeln!(stderr().lock(), "{line}");
}
