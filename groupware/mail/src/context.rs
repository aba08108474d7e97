//! The inputs of a decision besides the request, and its result.

use std::collections::BTreeSet;
use std::sync::Arc;

use groupware_ids::Ids;
use groupware_people::Directory;
use groupware_store::{Batch, Snapshot};

use crate::Unid;

/// The inputs of a decision: one consistent state of the store, the users, the time, and the
/// identifiers that it may assign.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// The local users.
    pub directory: &'a dyn Directory,
    /// The account that the request is about: its owner's name, and the name of the partition.
    pub mailbox: &'a str,
    /// The time of the request, microseconds since 1970.
    pub now_us: i64,
    /// New identifiers. A repeated decision may start from the same ones.
    pub ids: Ids,
    /// The maximum of bytes that the messages of one account may have, if there is a limit.
    /// Deliveries decided at the same time may together exceed it by their own size.
    pub quota_bytes: Option<u64>,
    /// Other users without room for this delivery. The owner's message is delivered to the
    /// remaining recipients.
    pub full: &'a BTreeSet<Arc<str>>,
}

/// The batch to commit, and the message that it creates.
#[derive(Debug, Default)]
pub struct Decision {
    /// To be committed atomically; empty if nothing changes.
    pub batch: Batch,
    /// The message that the request created in the owner's account.
    pub made: Option<Unid>,
    /// The request is not finished: decide again after the commit.
    pub more: bool,
}
