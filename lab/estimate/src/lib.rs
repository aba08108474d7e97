//! Describes a plan before it runs, in words: its trials in order, their lengths, the rows of data that they need, the
//! steps that are always skipped with so few users, and the differences that its blocks can show.
//!
//! Pure: a plan in, words and durations out.

mod fewest;
#[cfg(test)]
mod folder;
mod length;
mod power;
mod profile;
mod rows;
mod schedule;
mod tokens;
mod words;

pub use fewest::warnings;
pub use length::Lengths;
pub use power::{Earlier, between_runs, power};
pub use rows::rows;
pub use schedule::{Waits, schedule};
pub use words::{cell_words, duration};
