//! What users share: counters, queues, and pools, by their names. It knows no workers and no threads.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::slot::Slot;
use crate::template::Template;

/// Something that all users of a generator share, whatever population they are of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedState {
    /// As templates and steps name it; unique in its workload. Populations whose workloads name it alike share it.
    pub name: String,
    /// What it is.
    pub kind: SharedKind,
}

/// What users share.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedKind {
    /// Numbers, each of which one request gets: `next('order_no')`.
    Counter {
        /// The least of them.
        from: u64,
    },
    /// Entries that steps put in and take out.
    Queue {
        /// Most entries of a generator's process, at least one; further ones are dropped.
        at_most: u32,
    },
    /// Rows of a file, whose columns are variables.
    Pool {
        /// The rows.
        rows: Arc<Data>,
        /// How long a row belongs to one user.
        lease: Lease,
    },
}

/// How long a row of a pool belongs to one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lease {
    /// For a session: no other session has it meanwhile.
    Session,
    /// Each request gets the next one.
    Request,
}

/// What a step has to do with queues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Queued<T = Template> {
    /// What it takes before its first request.
    pub take: Option<Take>,
    /// What it puts in when all of its requests met their `expect`.
    pub put: Option<Put<T>>,
}

/// What a step takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// Name of the queue, which is among [`Workload::shared`](crate::Workload::shared).
    pub queue: String,
    /// The variable that keeps it.
    pub slot: Slot,
    /// It is skipped where nothing comes for so long.
    pub within: Duration,
}

/// What a step puts in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Put<T = Template> {
    /// Name of the queue, which is among [`Workload::shared`](crate::Workload::shared).
    pub queue: String,
    /// The entry.
    pub entry: T,
}

impl<T> Queued<T> {
    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Queued<U>, E> {
        let put = self.put.as_ref().map(|put| {
            Ok(Put {
                queue: put.queue.clone(),
                entry: map(&put.entry)?,
            })
        });
        Ok(Queued {
            take: self.take.clone(),
            put: put.transpose()?,
        })
    }
}

impl SharedState {
    /// Its rows, if it is a pool.
    #[must_use]
    pub fn pool(&self) -> Option<(&Arc<Data>, Lease)> {
        match &self.kind {
            SharedKind::Pool { rows, lease } => Some((rows, *lease)),
            SharedKind::Counter { .. } | SharedKind::Queue { .. } => None,
        }
    }

    /// Whether two of one name are one thing.
    #[must_use]
    pub fn is_as(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (SharedKind::Counter { from }, SharedKind::Counter { from: of }) => from == of,
            (SharedKind::Queue { at_most }, SharedKind::Queue { at_most: of }) => at_most == of,
            (
                SharedKind::Pool { rows, lease },
                SharedKind::Pool {
                    rows: of,
                    lease: other,
                },
            ) => rows.sha256 == of.sha256 && lease == other,
            _ => false,
        }
    }

    pub(crate) fn rows_mut(&mut self) -> Option<&mut Arc<Data>> {
        match &mut self.kind {
            SharedKind::Pool { rows, .. } => Some(rows),
            SharedKind::Counter { .. } | SharedKind::Queue { .. } => None,
        }
    }
}
