//! What a plan tells before it runs: how long it takes, how many rows of data it needs, and which steps will find
//! nothing to do with so few users.
//!
//! Pure: a plan in, words and lengths of time out.

mod fewest;
mod length;
mod rows;

pub use fewest::warnings;
pub use length::Lengths;
pub use rows::rows;
