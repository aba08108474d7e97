//! Identifiers that several services share: the hash that names content, the names of objects, and new names that come of
//! random bits. It draws no bits, and knows neither the store nor what is named.

mod hash;
mod object;
mod sequence;

pub use hash::ContentHash;
pub use object::{ObjectId, Placed};
pub use sequence::Ids;
