//! The grid of a week: positions of entries, as classes of the style sheet.

use std::fmt::Write as _;

/// Rows of the grid: quarters of an hour.
pub(crate) const ROWS: usize = 96;
/// Rows of an hour.
pub(crate) const ROWS_PER_HOUR: usize = 4;
/// Entries side by side; further ones share the last lane.
pub(crate) const LANES: usize = 8;

/// Rules with a class for each position in the grid: pages have no inline styles.
pub(crate) fn grid_rules() -> String {
    let mut rules = String::new();
    let mut rule = |text: std::fmt::Arguments<'_>| {
        // Writing to a text can't fail.
        let _ = rules.write_fmt(text);
    };
    for row in 0..ROWS {
        rule(format_args!(".s{row}{{grid-row-start:{}}}", row + 1));
        rule(format_args!(".l{0}{{grid-row-end:span {0}}}", row + 1));
    }
    for lane in 1..=LANES {
        rule(format_args!(".c{lane}{{grid-column-start:{lane}}}"));
        rule(format_args!(
            ".of{lane}{{grid-template-columns:repeat({lane},minmax(0,1fr))}}"
        ));
    }
    rules
}
