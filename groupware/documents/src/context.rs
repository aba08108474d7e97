//! What a decision is given besides the request, and what it gives back.

use groupware_store::{Batch, Snapshot};

use crate::Who;

/// What a decision reads: one consistent state of the store, who asks, the moment, and random bits
/// for new identifiers.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// Who asks, and whose documents they are.
    pub who: Who<'a>,
    /// The moment of the request, seconds since 1970.
    pub now: i64,
    /// 128 random bits. Deciding again may start from the same.
    pub bits: u128,
    /// Most bytes that the owner's documents and uploads may take.
    pub quota_bytes: u64,
}

/// What is to be committed, and what the decision came to.
#[derive(Debug)]
pub struct Decision<T> {
    /// To be committed as a whole.
    pub batch: Batch,
    /// What there is to answer, once it is committed.
    pub outcome: T,
}
