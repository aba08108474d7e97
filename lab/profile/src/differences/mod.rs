//! Differences between the profiles of two variants: columns by block, and the functions that explain them. Which
//! columns differ beyond noise is the caller's to test.

mod reduce;
mod table;

pub use reduce::{Flagged, MOST_FLAGGED, Moved, Reduced, called_by, parts, reduce};
pub use table::{Sides, Stack, Table, Tested, mean};
