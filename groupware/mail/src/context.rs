//! What a decision is given besides the request, and what it gives back.

use std::collections::BTreeSet;
use std::sync::Arc;

use groupware_ids::Ids;
use groupware_people::Directory;
use groupware_store::{Batch, Snapshot};

use crate::Unid;

/// What a decision reads: one consistent state of the store, the users, the moment, and the
/// identifiers that it may give away.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// The local users.
    pub directory: &'a dyn Directory,
    /// Whose mailbox the request is about: its owner's name and the partition's.
    pub mailbox: &'a str,
    /// The moment of the request, microseconds since 1970.
    pub now_us: i64,
    /// New identifiers. Deciding again may start from the same.
    pub ids: Ids,
    /// Most bytes that the messages of one mailbox may have, if there is a limit. Deliveries that
    /// are decided at the same moment may together pass it by what they bring.
    pub quota_bytes: Option<u64>,
    /// Other users who were found to have no room for what this decision would bring them: the owner's message goes to
    /// the others.
    pub full: &'a BTreeSet<Arc<str>>,
}

/// What is to be committed, and which message comes of it.
#[derive(Debug, Default)]
pub struct Decision {
    /// To be committed as a whole; empty if there is nothing to change.
    pub batch: Batch,
    /// The message that the request made, in the owner's mailbox.
    pub made: Option<Unid>,
    /// There is more to do of what was asked for: decide again after the commit.
    pub more: bool,
}
