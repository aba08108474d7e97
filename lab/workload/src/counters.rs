//! Counters shared by users: numbers that no two users of any generator get, without communication between workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::inputs::{Inputs, Numbers};
use crate::model::Workload;
use crate::shared::SharedKind;

use crate::part::Slice;

/// A worker's part of all counters: every nth number, as it has every nth user.
#[derive(Debug)]
pub struct Counters {
    slice: Slice,
    counters: Box<[Counter]>,
}

/// A counter. Only its worker's thread counts: it is atomic since users may be moved between threads.
#[derive(Debug)]
struct Counter {
    name: Box<str>,
    from: u64,
    /// Number of values that its worker has taken.
    taken: AtomicU64,
}

impl Counters {
    /// The counters of a worker, for the workloads of all populations; `None` if they have none.
    pub fn of<'a>(
        workloads: impl Iterator<Item = &'a Workload>,
        slice: Slice,
    ) -> Option<Arc<Self>> {
        let mut counters: Vec<Counter> = Vec::new();
        for one in workloads.flat_map(|workload| &workload.shared) {
            if let SharedKind::Counter { from } = one.kind
                && counters.iter().all(|known| *known.name != *one.name)
            {
                counters.push(Counter {
                    name: one.name.as_str().into(),
                    from,
                    taken: AtomicU64::new(0),
                });
            }
        }
        (!counters.is_empty()).then(|| {
            Arc::new(Self {
                slice,
                counters: counters.into(),
            })
        })
    }
}

/// The environment of a workload's users on a worker with these counters.
pub fn inputs(workload: &Workload, counters: Option<&Arc<Counters>>) -> Arc<Inputs> {
    match counters {
        Some(counters) => Arc::new(workload.inputs.counting(Arc::clone(counters) as _)),
        None => Arc::clone(&workload.inputs),
    }
}

impl Numbers for Counters {
    fn next(&self, counter: &str) -> Option<u64> {
        let mut counters = self.counters.iter();
        let Counter { from, taken, .. } = counters.find(|one| *one.name == *counter)?;
        // No other thread writes it, so that a load and a store are enough.
        let nth = taken.load(Ordering::Relaxed);
        taken.store(nth + 1, Ordering::Relaxed);
        Some(from.saturating_add(self.slice.number(nth)))
    }
}
