//! Identifiers that several services share: the hash that names content, and new names that come of
//! random bits. It draws no bits, and knows neither the store nor what is named.

mod hash;
mod sequence;

pub use hash::ContentHash;
pub use sequence::Ids;
