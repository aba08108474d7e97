//! The state that the users of a worker share with others: numbers of counters, entries of queues, and rows of pools,
//! divided among all workers. It knows no user.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lab_workload::{Inputs, Queued, SharedKind, Slot, Step, Template, Workload};

use crate::error::DriverError;
use crate::mix::Mix;
use lab_queues::{Pools, WorkerPools};
use lab_queues::{Queue, WorkerQueues};
use lab_workload::counters::{Counters, inputs};
use lab_workload::part::Slice;

/// The queue operations of a step, on a worker.
#[derive(Debug)]
pub(crate) struct StepQueues {
    /// The queue to take from, the variable, and the maximum wait.
    pub(crate) take: Option<(Rc<Queue>, Slot, Duration)>,
    /// The queue to put into, and the entry.
    pub(crate) put: Option<(Rc<Queue>, Template)>,
}

impl StepQueues {
    fn of(queued: &Queued, queues: &WorkerQueues) -> Self {
        let take = queued.take.as_ref();
        let take = take.and_then(|take| {
            let queue = queues.named(&take.queue)?;
            Some((Rc::clone(queue), take.slot, take.within))
        });
        let put = queued.put.as_ref();
        let put = put.and_then(|put| {
            let queue = queues.named(&put.queue)?;
            Some((Rc::clone(queue), put.entry.clone()))
        });
        Self { take, put }
    }
}

/// The shared state of a worker's users, of all populations.
#[derive(Default)]
pub(crate) struct WorkerSharing {
    counters: Option<Arc<Counters>>,
    queues: WorkerQueues,
    pools: WorkerPools,
}

impl WorkerSharing {
    /// Returns the shared state for the workloads of all populations.
    pub(crate) fn of<'a>(
        workloads: impl Iterator<Item = &'a Workload> + Clone,
        queues: WorkerQueues,
        slice: Slice,
    ) -> Self {
        Self {
            queues,
            pools: WorkerPools::of(workloads.clone(), &slice),
            counters: Counters::of(workloads, slice),
        }
    }

    /// Returns the part for one population with this number of users.
    pub(crate) fn of_population(&self, workload: &Workload, users: usize) -> Sharing {
        Sharing {
            inputs: inputs(workload, self.counters.as_ref()),
            steps: step_queues(workload, &self.queues),
            queues: self.queues.clone(),
            pools: self.pools.of_population(workload, users),
        }
    }
}

/// The shared state of a population's users, on a worker.
pub(crate) struct Sharing {
    /// Inputs of templates: values of the environment, and numbers of the worker's counters.
    pub(crate) inputs: Arc<Inputs>,
    /// The queue operations of each step; empty if there are none.
    steps: Box<[Option<StepQueues>]>,
    /// The queues of all populations.
    pub(crate) queues: WorkerQueues,
    /// The pools of rows of the users.
    pub(crate) pools: Option<Pools>,
}

/// Returns the queue operations of a session's steps, by index; empty if there are none.
fn step_queues(workload: &Workload, queues: &WorkerQueues) -> Box<[Option<StepQueues>]> {
    if queues.is_empty() {
        return Box::default();
    }
    let steps = workload.session.steps.iter();
    let of = steps.map(|step| {
        let queued = step.queued.as_deref()?;
        Some(StepQueues::of(queued, queues))
    });
    of.collect()
}

impl Sharing {
    /// Returns the queue operations of a step; `None` if it has none.
    pub(crate) fn of_step(&self, step: usize) -> Option<&StepQueues> {
        self.steps.get(step)?.as_ref()
    }
}

/// Rejects pools with fewer rows than there are workers, and queues from which no user of some worker takes: entries
/// kept by that worker would never be used.
pub(crate) fn validate(mix: &Mix) -> Result<(), DriverError> {
    let (part, workers) = (&mix.first().part, mix.first().workers());
    for worker in 0..workers {
        let slice = Slice::new(part, worker, workers);
        for one in mix.assignments().flat_map(|drive| &drive.workload.shared) {
            let name = &one.name;
            let too_few = match &one.kind {
                SharedKind::Counter { .. } => None,
                SharedKind::Pool { rows, .. } => (slice.number(0) >= rows.rows).then(|| {
                    let rows = rows.rows;
                    format!(
                        "the pool `{name}` has {rows} rows, which is less than one for each worker: give it more rows, or"
                    )
                }),
                SharedKind::Queue { .. } => (!has_takers(mix, name, &slice)).then(|| {
                    format!(
                        "fewer users take from the queue `{name}` than there are workers: give the load more users, or"
                    )
                }),
            };
            if let Some(why) = too_few {
                let why =
                    format!("{why} the generators fewer cores ({workers} workers in this one)");
                return Err(DriverError::Shared(why));
            }
        }
    }
    Ok(())
}

/// Returns true if users of a worker take from a queue.
fn has_takers(mix: &Mix, queue: &str, slice: &Slice) -> bool {
    mix.assignments().any(|drive| {
        let mut takes = drive.workload.session.steps.iter().filter_map(Step::take);
        takes.any(|take| take.queue == queue) && slice.users(drive.users).next().is_some()
    })
}
