//! The one thread that writes: takes every waiting batch, has the engine apply them as one
//! group, then replies. While it has nothing to do, others may use the engine in its place. Whoever
//! panics with the engine in hand ends all writing.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};

use crate::cache::Cache;
use crate::engine::{Outcome, Writer};
use crate::life::Life;
use crate::stats::Counters;
use crate::{Batch, CommitError};

/// Most batches in one transaction. A group that waits longer than its own sync only adds delay.
pub const GROUP_BATCHES: usize = 1024;

pub(crate) enum Job {
    Commit {
        batch: Batch,
        reply: oneshot::Sender<Outcome>,
    },
    /// Housekeeping, for who used the engine in the writer's place.
    Tend,
    Close {
        done: oneshot::Sender<()>,
    },
}

/// Where the engine lies, and whoever has it may write.
pub(crate) struct Place {
    /// Gone once the store is closed, or while a transaction is under way: nobody goes on after one
    /// that panicked.
    engine: Option<Box<dyn Writer>>,
    life: Arc<Life>,
    /// Told of every group.
    cache: Option<Arc<Cache>>,
}

impl Place {
    pub(crate) fn new(engine: Box<dyn Writer>, life: Arc<Life>, cache: Option<Arc<Cache>>) -> Self {
        let engine = Some(engine);
        Self {
            engine,
            life,
            cache,
        }
    }

    /// Whether somebody may write in the writer's place.
    pub(crate) fn can_be_lent(&self) -> bool {
        let engine = self.engine.as_ref();
        engine.is_some_and(|engine| engine.can_be_lent())
    }

    /// Commits one batch; whether there is housekeeping then.
    pub(crate) fn commit(&mut self, batch: &Batch, counters: &Counters) -> (Outcome, bool) {
        let mut outcomes = Vec::with_capacity(1);
        self.commit_all(&[batch], &mut outcomes, counters);
        let outcome = outcomes.pop().unwrap_or(Err(CommitError::Closed));
        let engine = self.engine.as_ref();
        let wants_work =
            engine.is_some_and(|engine| engine.wants_tending() || engine.wants_idle_work());
        (outcome, wants_work)
    }

    fn commit_all(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>, counters: &Counters) {
        if group.is_empty() {
            return;
        }
        let Some(mut engine) = self.engine.take() else {
            outcomes.extend(group.iter().map(|_| Err(CommitError::Closed)));
            return;
        };
        let under_way = self.life.begin();
        let number = self.cache.as_ref().map(|cache| cache.begin(group));
        engine.commit(group, outcomes);
        assert_eq!(
            outcomes.len(),
            group.len(),
            "an engine gives one outcome per batch"
        );
        if let (Some(cache), Some(number)) = (&self.cache, number) {
            cache.publish(number, group, outcomes);
        }
        under_way.end(outcomes, counters);
        self.engine = Some(engine);
        count(group, outcomes, counters);
    }

    fn tend(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            engine.tend();
            self.engine = Some(engine);
        }
    }

    /// Does a little of what is to be done while nobody writes; whether there is more.
    fn work_idly(&mut self) -> bool {
        let Some(mut engine) = self.engine.take() else {
            return false;
        };
        let is_wanted = engine.wants_idle_work();
        if is_wanted {
            engine.work_idly();
        }
        let is_wanted = is_wanted && engine.wants_idle_work();
        self.engine = Some(engine);
        is_wanted
    }
}

/// Runs until the store is closed or its last handle is gone; batches that were accepted before
/// are still written.
pub(crate) fn run(place: &Mutex<Place>, mut queue: mpsc::Receiver<Job>, counters: &Counters) {
    let mut jobs = Vec::with_capacity(GROUP_BATCHES);
    let mut outcomes = Vec::with_capacity(GROUP_BATCHES);
    let mut closers = Vec::new();
    let life = Arc::clone(&place.blocking_lock().life);
    let _ends = Ends(&life);
    loop {
        work_idly(place, &queue);
        if queue.blocking_recv_many(&mut jobs, GROUP_BATCHES) == 0 {
            break;
        }
        let mut place = place.blocking_lock();
        // What came while another wrote goes with the rest.
        let more = std::iter::from_fn(|| queue.try_recv().ok());
        let room = GROUP_BATCHES - jobs.len();
        jobs.extend(more.take(room));
        let group: Vec<&Batch> = jobs.iter().filter_map(Job::batch).collect();
        place.commit_all(&group, &mut outcomes, counters);
        reply(&mut jobs, &mut outcomes, &mut closers);
        if !closers.is_empty() {
            queue.close();
        }
        place.tend();
    }
    drop(place.blocking_lock().engine.take());
    for done in closers {
        let _ = done.send(());
    }
}

/// Does what is to be done while nobody writes, until somebody does. Others may use the engine between
/// two steps.
fn work_idly(place: &Mutex<Place>, queue: &mpsc::Receiver<Job>) {
    let is_idle = || queue.is_empty() && !queue.is_closed();
    while is_idle() && place.blocking_lock().work_idly() {}
}

impl Job {
    fn batch(&self) -> Option<&Batch> {
        match self {
            Self::Commit { batch, .. } => Some(batch),
            Self::Tend | Self::Close { .. } => None,
        }
    }
}

/// Notes the writer's death, if it is one.
struct Ends<'a>(&'a Life);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.die();
        }
    }
}

fn count(group: &[&Batch], outcomes: &[Outcome], counters: &Counters) {
    counters.group(group.len());
    let (mut commits, mut conflicts, mut failures) = (0, 0, 0);
    for outcome in outcomes {
        match outcome {
            Ok(_) => commits += 1,
            Err(CommitError::Conflict { .. }) => conflicts += 1,
            Err(_) => failures += 1,
        }
    }
    counters.outcomes(commits, conflicts, failures);
}

/// A caller that gave up waiting has dropped its end; its batch has taken effect all the same.
fn reply(jobs: &mut Vec<Job>, outcomes: &mut Vec<Outcome>, closers: &mut Vec<oneshot::Sender<()>>) {
    let mut outcomes = outcomes.drain(..);
    for job in jobs.drain(..) {
        match job {
            Job::Commit { reply, .. } => {
                let outcome = outcomes
                    .next()
                    .expect("one outcome per batch, asserted above");
                let _ = reply.send(outcome);
            }
            Job::Tend => {}
            Job::Close { done } => closers.push(done),
        }
    }
}
