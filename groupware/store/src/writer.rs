//! The one thread that writes: takes every waiting batch, has the engine apply them as one
//! group, then replies.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::stats::Counters;
use crate::{Batch, CommitError, Committed};

/// Most batches in one transaction. A group that waits longer than its own sync only adds delay.
const GROUP_BATCHES: usize = 1024;

pub(crate) type Outcome = Result<Committed, CommitError>;

/// What an engine does for the writer.
pub(crate) trait Engine: Send {
    /// Applies the batches one after another, makes the result durable, and pushes one outcome
    /// per batch. A batch sees the effects of those before it; one that fails changes nothing.
    fn apply(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>);

    /// Called after the group's replies went out: housekeeping that nobody waits for.
    fn tend(&mut self) {}
}

pub(crate) enum Job {
    Commit {
        batch: Batch,
        reply: oneshot::Sender<Outcome>,
    },
    Close {
        done: oneshot::Sender<()>,
    },
}

/// Runs until the store is closed or its last handle is gone; batches that were accepted before
/// are still written.
pub(crate) fn run(
    mut engine: Box<dyn Engine>,
    mut queue: mpsc::Receiver<Job>,
    counters: &Arc<Counters>,
) {
    let mut jobs = Vec::with_capacity(GROUP_BATCHES);
    let mut outcomes = Vec::with_capacity(GROUP_BATCHES);
    let mut closers = Vec::new();
    while queue.blocking_recv_many(&mut jobs, GROUP_BATCHES) > 0 {
        commit_group(engine.as_mut(), &jobs, &mut outcomes, counters);
        reply(&mut jobs, &mut outcomes, &mut closers);
        if !closers.is_empty() {
            queue.close();
        }
        engine.tend();
    }
    drop(engine);
    for done in closers {
        let _ = done.send(());
    }
}

fn commit_group(
    engine: &mut dyn Engine,
    jobs: &[Job],
    outcomes: &mut Vec<Outcome>,
    counters: &Counters,
) {
    let group: Vec<&Batch> = jobs
        .iter()
        .filter_map(|job| match job {
            Job::Commit { batch, .. } => Some(batch),
            Job::Close { .. } => None,
        })
        .collect();
    if group.is_empty() {
        return;
    }
    engine.apply(&group, outcomes);
    assert_eq!(
        outcomes.len(),
        group.len(),
        "an engine gives one outcome per batch"
    );
    counters.group(group.len());
    let (mut commits, mut conflicts, mut failures) = (0, 0, 0);
    for outcome in outcomes.iter() {
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
            Job::Close { done } => closers.push(done),
        }
    }
}
