//! The width of printed text: that of the terminal, or `COLUMNS`.

use std::io::{IsTerminal, stdout};

/// The width for pipes, and of short pages.
pub const USUAL: usize = 80;
/// The maximum width: longer lines are hard to read.
const MOST: usize = 120;
/// The minimum width of the tables in reports.
const LEAST_OF_REPORTS: usize = 60;

/// Columns of a report.
pub fn of_reports() -> usize {
    at_least(LEAST_OF_REPORTS)
}

/// Returns the width of a text that needs at least this many columns.
pub fn at_least(least: usize) -> usize {
    let said = std::env::var("COLUMNS").ok();
    let columns = match said.and_then(|text| text.parse().ok()) {
        Some(columns) => columns,
        None if stdout().is_terminal() => textwrap::termwidth(),
        None => USUAL,
    };
    columns.clamp(least, MOST)
}
