//! Identifiers shared by several services: hashes of content, identifiers of objects, and new identifiers from random
//! bits. This crate generates no random bits, and doesn't know the store or the identified items.

mod hash;
mod object;
mod sequence;

pub use hash::ContentHash;
pub use object::{ObjectId, Placed};
pub use sequence::Ids;
