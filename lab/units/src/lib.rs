//! The small languages of single values in files that people write: durations, sizes, rates, waits; what is wrong in a
//! text and where; the nearest of some names. Pure.

pub mod nearest;
pub mod text_error;
pub mod units;

pub use text_error::TextError;
