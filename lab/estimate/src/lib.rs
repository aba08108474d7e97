//! What a plan comes to before it runs, in words: its trials in order, how long they take, the rows of data that they
//! need, which steps will find nothing to do with so few users, and which differences its blocks can show.
//!
//! Pure: a plan in, words and lengths of time out.

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
