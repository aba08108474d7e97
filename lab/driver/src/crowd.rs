//! The populations of a mix, as shared by the workers of one program.

use std::sync::Arc;

use crate::drive::Drive;
use crate::mix::Mix;
use crate::script::Script;
use lab_queues::Queues;
use lab_queues::SharedPool;

/// A population on a worker.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    pub(crate) drive: Arc<Drive>,
    pub(crate) script: Arc<Script>,
    /// Shared by all workers in this program.
    pub(crate) pool: SharedPool,
    /// The queues of all populations.
    pub(crate) queues: Queues,
    /// Its index among the populations.
    pub(crate) place: usize,
    /// The index of its session's first step among those of all populations, likewise of its setup's.
    pub(crate) first_step: usize,
    pub(crate) first_setup: usize,
    /// Likewise of its first transaction.
    pub(crate) first_transaction: usize,
}

/// Returns the populations of a mix.
pub(crate) fn crowds(mix: &Mix) -> Vec<Crowd> {
    let (mut first_step, mut first_setup, mut first_transaction) = (0, 0, 0);
    let workloads = mix.drives().map(|drive| &*drive.workload);
    let queues = Queues::of(workloads, mix.first().workers());
    let crowd = |(place, drive): (usize, &Arc<Drive>)| {
        let script = Script::new(&drive.workload);
        let steps = (script.session.len(), script.setup.len());
        let transactions = script.transactions.len();
        let crowd = Crowd {
            drive: Arc::clone(drive),
            script: Arc::new(script),
            pool: pool(drive),
            queues: queues.clone(),
            place,
            first_step,
            first_setup,
            first_transaction,
        };
        first_step += steps.0;
        first_setup += steps.1;
        first_transaction += transactions;
        crowd
    };
    mix.shared().enumerate().map(crowd).collect()
}

/// Returns the pool where sessions wait for a connection, with this program's part of the maximum.
fn pool(drive: &Drive) -> SharedPool {
    let most = drive.part.share(drive.limits.max_waiting);
    SharedPool::new(drive.workers(), most as usize)
}
