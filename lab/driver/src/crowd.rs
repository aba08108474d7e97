//! The populations of a mix as the workers of one program share them.

use std::sync::Arc;

use crate::drive::Drive;
use crate::load::SharedPool;
use crate::mix::Mix;
use crate::queues::Queues;
use crate::script::Script;

/// A population as each worker has it.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    pub(crate) drive: Arc<Drive>,
    pub(crate) script: Arc<Script>,
    /// Of all workers in this program.
    pub(crate) pool: SharedPool,
    /// The queues of all populations.
    pub(crate) queues: Queues,
    /// Its place among the populations.
    pub(crate) place: usize,
    /// Place of its session's first step among those of all populations, likewise of its setup's.
    pub(crate) first_step: usize,
    pub(crate) first_setup: usize,
    /// Likewise of its first transaction.
    pub(crate) first_transaction: usize,
}

/// The populations of a mix.
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

/// Where the sessions of this program's workers wait for a connection: its part of those that may.
fn pool(drive: &Drive) -> SharedPool {
    let most = drive.part.share(drive.limits.max_waiting);
    SharedPool::new(drive.workers(), most as usize)
}
