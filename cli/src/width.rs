//! How wide what is printed is: as the terminal, or as whoever asks says (`COLUMNS`).

use std::io::{IsTerminal, stdout};

/// Of a pipe, and of short pages.
pub(crate) const USUAL: usize = 80;
/// Longer lines are hard to read.
const MOST: usize = 120;
/// Tables of reports take as much.
const LEAST_OF_REPORTS: usize = 60;

/// Columns of a report.
pub(crate) fn of_reports() -> usize {
    at_least(LEAST_OF_REPORTS)
}

/// Columns of what needs no more than these.
pub(crate) fn at_least(least: usize) -> usize {
    let said = std::env::var("COLUMNS").ok();
    let columns = match said.and_then(|text| text.parse().ok()) {
        Some(columns) => columns,
        None if stdout().is_terminal() => textwrap::termwidth(),
        None => USUAL,
    };
    columns.clamp(least, MOST)
}
