//! State shared by users: counters, queues, and pools, by name. It knows no workers and no threads.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::slot::Slot;
use crate::template::Template;

/// State that all users of a generator share, of any population.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedState {
    /// Its name in templates and steps; unique in its workload. Populations whose workloads use the same name share it.
    pub name: String,
    /// Its kind.
    pub kind: SharedKind,
}

/// The kinds of shared state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedKind {
    /// Numbers, each used by one request: `next('order_no')`.
    Counter {
        /// The first number.
        from: u64,
    },
    /// Entries that steps add and take.
    Queue {
        /// Most entries of a generator's process, at least one; further ones are dropped.
        at_most: u32,
    },
    /// Rows of a file, whose columns are variables.
    Pool {
        /// The rows.
        rows: Arc<Data>,
        /// The lease of a row.
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

/// A step's use of queues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Queued<T = Template> {
    /// The entry it takes before its first request.
    pub take: Option<Take>,
    /// The entry it adds when all of its requests met their `expect`.
    pub put: Option<Put<T>>,
}

/// The entry that a step takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// Name of the queue, which is among [`Workload::shared`](crate::Workload::shared).
    pub queue: String,
    /// The variable for the entry.
    pub slot: Slot,
    /// The step is skipped if no entry arrives within this time.
    pub within: Duration,
}

/// The entry that a step adds.
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

    /// Returns true if two with one name are the same.
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
