//! The writer thread: takes every waiting batch, has the engine apply them as one group, then replies. A low-priority
//! batch runs by itself when no other batch waits. While the writer is idle, other threads may use the engine. A panic
//! while using the engine ends all writing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;

use crate::cache::Cache;
use crate::clock::Clock;
use crate::engine::{Outcome, Writer};
use crate::life::Life;
use crate::stats::Counters;
use crate::{Batch, CommitError};

/// The maximum number of batches in one transaction. A group that waits longer than its own sync only adds delay.
pub const GROUP_BATCHES: usize = 1024;
/// The maximum number of groups of other batches that run before a low-priority batch.
pub(crate) const PATIENCE: u32 = 8;
/// The longest pause in idle work, …
pub(crate) const MOST_PAUSE: Duration = Duration::from_millis(50);
/// … and the interval at which the writer checks the queue meanwhile.
const LOOK: Duration = Duration::from_millis(1);

pub(crate) enum Job {
    Commit {
        batch: Batch,
        reply: oneshot::Sender<Outcome>,
        /// Other batches run first.
        is_patient: bool,
    },
    /// Housekeeping after another thread used the engine in the writer's place.
    Tend,
    Close {
        done: oneshot::Sender<()>,
    },
}

/// The number of large removals in progress. The freed space is returned to the disk afterwards. Doing it earlier would
/// delay other batches and move pages that are about to be removed.
#[derive(Debug, Default)]
pub(crate) struct Removals(AtomicUsize);

impl Removals {
    pub(crate) fn begin(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn end(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    fn are_under_way(&self) -> bool {
        self.0.load(Relaxed) > 0
    }
}

/// The slot of the engine; the lock holder may write.
pub(crate) struct WriterSlot {
    /// `None` once the store is closed, and during a transaction: no thread continues after one that panicked.
    engine: Option<Box<dyn Writer>>,
    life: Arc<Life>,
    /// Receives every group.
    cache: Option<Arc<Cache>>,
    removals: Arc<Removals>,
}

impl WriterSlot {
    pub(crate) fn new(
        engine: Box<dyn Writer>,
        life: Arc<Life>,
        cache: Option<Arc<Cache>>,
        removals: Arc<Removals>,
    ) -> Self {
        let engine = Some(engine);
        Self {
            engine,
            life,
            cache,
            removals,
        }
    }

    /// Returns true if another thread may write in the writer's place.
    pub(crate) fn can_be_lent(&self) -> bool {
        let engine = self.engine.as_ref();
        engine.is_some_and(|engine| engine.can_be_lent())
    }

    /// Commits one batch; also returns whether there is housekeeping to do.
    pub(crate) fn commit(&mut self, batch: &Batch, counters: &Counters) -> (Outcome, bool) {
        let mut outcomes = Vec::with_capacity(1);
        self.commit_all(&[batch], &mut outcomes, counters);
        let outcome = outcomes.pop().unwrap_or(Err(CommitError::Closed));
        let may_idle = !self.removals.are_under_way();
        let engine = self.engine.as_ref();
        let wants_work = engine
            .is_some_and(|engine| engine.wants_tending() || may_idle && engine.wants_idle_work());
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

    /// Does one step of idle work. If the engine wants a pause before it, `rested` must be true.
    fn work_idly(&mut self, rested: bool) -> Idle {
        if self.removals.are_under_way() {
            return Idle::Nothing;
        }
        let Some(mut engine) = self.engine.take() else {
            return Idle::Nothing;
        };
        let rest = engine.rest();
        let idle = match engine.wants_idle_work() {
            false => Idle::Nothing,
            true if !rested && !rest.is_zero() => Idle::After(rest),
            true => {
                engine.work_idly();
                Idle::More
            }
        };
        self.engine = Some(engine);
        idle
    }
}

/// The idle work that remains.
enum Idle {
    Nothing,
    /// Some, after this long without a new batch.
    After(Duration),
    /// There may be more.
    More,
}

/// Runs until the store is closed or its last handle is dropped. Batches accepted before that are still written.
pub(crate) fn run(place: &Mutex<WriterSlot>, mut queue: mpsc::Receiver<Job>, counters: &Counters) {
    let mut jobs = Vec::with_capacity(GROUP_BATCHES);
    let mut outcomes = Vec::with_capacity(GROUP_BATCHES);
    let mut closers = Vec::new();
    let mut patient = LowPriorityBatch::default();
    let mut last_batches = 0;
    let life = Arc::clone(&place.blocking_lock().life);
    let _ends = Ends(&life);
    let (mut rested, mut timer) = (false, None);
    loop {
        if !patient.waits() {
            let rest = work_idly((place, rested), &queue, counters);
            let came = receive(&mut queue, &mut jobs, rest, &mut timer);
            rested = came.is_none();
            match came {
                Some(0) => break,
                Some(_) => {}
                None => continue,
            }
            if jobs.len() < last_batches {
                // As many batches are likely to follow, from threads that wait for this core. A transaction and its
                // sync cost the same for any number of batches. If no thread waits, this returns at once.
                std::thread::yield_now();
            }
        }
        let mut place = place.blocking_lock();
        // Add the batches that arrived while another thread wrote.
        let more = std::iter::from_fn(|| queue.try_recv().ok());
        let room = GROUP_BATCHES - jobs.len() - usize::from(patient.waits());
        jobs.extend(more.take(room));
        patient.choose(&mut jobs);
        let group: Vec<&Batch> = jobs.iter().filter_map(Job::batch).collect();
        last_batches = group.len();
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

/// Waits for jobs, for at most `rest` if given. `None` on timeout, 0 if the queue is closed.
fn receive(
    queue: &mut mpsc::Receiver<Job>,
    jobs: &mut Vec<Job>,
    rest: Option<Duration>,
    timer: &mut Option<Runtime>,
) -> Option<usize> {
    let Some(rest) = rest else {
        return Some(queue.blocking_recv_many(jobs, GROUP_BATCHES));
    };
    if timer.is_none() {
        *timer = Builder::new_current_thread().enable_time().build().ok();
    }
    let Some(timer) = timer else {
        return Some(queue.blocking_recv_many(jobs, GROUP_BATCHES));
    };
    let came = async { timeout(rest, queue.recv_many(jobs, GROUP_BATCHES)).await };
    timer.block_on(came).ok()
}

/// Does idle work until a batch arrives; returns how long to wait for a batch before the next step. Other threads may
/// use the engine between two steps. While they do, it is theirs for as long as a step took.
fn work_idly(
    (place, mut rested): (&Mutex<WriterSlot>, bool),
    queue: &mpsc::Receiver<Job>,
    counters: &Counters,
) -> Option<Duration> {
    let is_idle = || queue.is_empty() && !queue.is_closed();
    let (clock, mut commits) = (Clock::start(), counters.read(0).commits);
    while is_idle() {
        let began = clock.now();
        match place.blocking_lock().work_idly(std::mem::take(&mut rested)) {
            Idle::Nothing => return None,
            Idle::After(rest) => return Some(rest),
            Idle::More => {}
        }
        let before = std::mem::replace(&mut commits, counters.read(0).commits);
        if commits > before {
            let now = clock.now();
            let until = now + now.saturating_sub(began).min(MOST_PAUSE);
            while is_idle() && clock.now() < until {
                std::thread::park_timeout(LOOK);
            }
        }
    }
    None
}

/// The low-priority batch that waits, at most one.
#[derive(Default)]
struct LowPriorityBatch {
    job: Option<Job>,
    /// The number of groups that ran before it.
    passed: u32,
}

impl LowPriorityBatch {
    fn waits(&self) -> bool {
        self.job.is_some()
    }

    /// Takes it out of the received jobs, and adds it once no other job waits or it has waited long enough.
    fn choose(&mut self, jobs: &mut Vec<Job>) {
        if self.job.is_none() {
            self.passed = 0;
            let at = jobs.iter().position(Job::is_patient);
            self.job = at.map(|at| jobs.remove(at));
        }
        let is_alone = jobs.iter().all(|job| job.batch().is_none());
        if is_alone || self.passed >= PATIENCE {
            jobs.extend(self.job.take());
        } else {
            self.passed += 1;
        }
    }
}

impl Job {
    fn is_patient(&self) -> bool {
        matches!(self, Self::Commit { is_patient, .. } if *is_patient)
    }

    fn batch(&self) -> Option<&Batch> {
        match self {
            Self::Commit { batch, .. } => Some(batch),
            Self::Tend | Self::Close { .. } => None,
        }
    }
}

/// Marks the writer as dead if it ends by a panic.
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

/// Sends the outcomes. A caller that stopped waiting has dropped its receiver; its batch has taken effect anyway.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn job(is_patient: bool) -> Job {
        let (reply, _) = oneshot::channel();
        Job::Commit {
            batch: Batch::new(),
            reply,
            is_patient,
        }
    }

    /// The next jobs, given the received ones: `p` is the low-priority batch, `o` any other batch.
    fn next(patient: &mut LowPriorityBatch, came: &str) -> String {
        let mut jobs: Vec<Job> = came
            .chars()
            .map(|kind| match kind {
                't' => Job::Tend,
                kind => job(kind == 'p'),
            })
            .collect();
        patient.choose(&mut jobs);
        let batches = jobs.iter().filter(|job| job.batch().is_some());
        batches
            .map(|job| if job.is_patient() { 'p' } else { 'o' })
            .collect()
    }

    #[test]
    fn a_patient_batch_goes_by_itself_or_when_many_have_passed() {
        let mut patient = LowPriorityBatch::default();
        assert_eq!(next(&mut patient, "p"), "p");
        assert_eq!(next(&mut patient, "oo"), "oo");
        assert_eq!(next(&mut patient, "opo"), "oo");
        assert!(patient.waits());
        assert_eq!(next(&mut patient, "t"), "p");
        assert!(!patient.waits());
        assert_eq!(next(&mut patient, "po"), "o");
        for _ in 1..PATIENCE {
            assert_eq!(next(&mut patient, "o"), "o");
        }
        assert_eq!(next(&mut patient, "oo"), "oop");
        assert!(!patient.waits());
    }
}
