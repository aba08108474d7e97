//! The inputs of a decision besides the request, and its result.

use groupware_store::{Batch, Snapshot};

use crate::Principal;

/// The inputs of a decision: one consistent state of the store, the principal, the time, and random
/// bits for new identifiers.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// The principal, and the owner of the documents.
    pub who: Principal<'a>,
    /// The time of the request, seconds since 1970.
    pub now: i64,
    /// 128 random bits. A repeated decision may start from the same ones.
    pub bits: u128,
    /// The maximum bytes of the owner's documents and uploads.
    pub quota_bytes: u64,
}

/// The batch to commit, and the result of a decision.
#[derive(Debug)]
pub struct Decision<T> {
    /// To be committed atomically.
    pub batch: Batch,
    /// The response once the batch is committed.
    pub outcome: T,
}
