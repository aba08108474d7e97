//! Health of the writer: whether it lives, whether the disk accepts its writes, and how long the current commit has
//! taken. Serves health checks and logs changes of state.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::CommitError;
use crate::clock::Clock;
use crate::stats::Counters;

/// The health of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The writer has panicked: no more writes are possible until a restart.
    pub is_dead: bool,
    /// Why the disk rejected the last commit, if it did.
    pub refusal: Option<Arc<str>>,
    /// How long the commit in progress has taken, if there is one.
    pub busy_for: Option<Duration>,
}

/// The recorded state of the writer, and of threads that write in its place.
#[derive(Debug)]
pub(crate) struct Life {
    dead: watch::Sender<bool>,
    refusal: Mutex<Option<Arc<str>>>,
    /// When the commit in progress began, in microseconds of the clock plus one; 0 if there is none.
    began_us: AtomicU64,
    slow_us: AtomicU64,
    clock: Clock,
}

impl Life {
    pub(crate) fn new(slow_commit: Option<Duration>) -> Self {
        let life = Self {
            dead: watch::Sender::new(false),
            refusal: Mutex::default(),
            began_us: AtomicU64::new(0),
            slow_us: AtomicU64::new(u64::MAX),
            clock: Clock::start(),
        };
        if let Some(slow) = slow_commit {
            life.set_slow(slow);
        }
        life
    }

    pub(crate) fn set_slow(&self, slow: Duration) {
        self.slow_us.store(micros(slow), Relaxed);
    }

    pub(crate) fn condition(&self) -> Condition {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        let busy_for = self.began_us.load(Relaxed).checked_sub(1).map(|began| {
            let began = Duration::from_micros(began);
            self.clock.now().saturating_sub(began)
        });
        Condition {
            is_dead: *self.dead.borrow(),
            refusal: refusal.clone(),
            busy_for,
        }
    }

    /// Waits until the writer is dead.
    pub(crate) async fn died(&self) {
        // The sender lives as long as `self`.
        let _ = self.dead.subscribe().wait_for(|dead| *dead).await;
    }

    /// Records the start of a commit. `UnderWay::end` records its outcome; a panic in between marks the writer as dead.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        let began = self.clock.now();
        self.began_us.store(micros(began) + 1, Relaxed);
        UnderWay {
            life: self,
            began,
            is_over: false,
        }
    }

    pub(crate) fn die(&self) {
        self.dead.send_replace(true);
    }

    /// Logs when the disk starts to reject writes and when it accepts them again, not each rejection.
    fn note(&self, refusal: Option<&CommitError>) {
        let mut last = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        match (refusal, last.is_some()) {
            (Some(error), was_refused) => {
                let words: Arc<str> = groupware_text::chain(error).into();
                if !was_refused {
                    tracing::error!(cause = &*words, "the store takes no writes");
                }
                *last = Some(words);
            }
            (None, true) => {
                tracing::warn!("the store takes writes again");
                *last = None;
            }
            (None, false) => {}
        }
    }
}

/// A commit in progress.
pub(crate) struct UnderWay<'a> {
    life: &'a Life,
    began: Duration,
    is_over: bool,
}

impl UnderWay<'_> {
    /// Records the end of the commit and the outcomes of its batches.
    pub(crate) fn end(mut self, outcomes: &[Result<crate::Committed, CommitError>], to: &Counters) {
        self.is_over = true;
        let took = self.life.clock.now().saturating_sub(self.began);
        self.life.began_us.store(0, Relaxed);
        to.took(took);
        let is_fault = |error: &&CommitError| {
            use CommitError::{Full, Store, Unknown};
            matches!(error, Full | Store(_) | Unknown(_))
        };
        let mut errors = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        self.life.note(errors.find(is_fault));
        if micros(took) >= self.life.slow_us.load(Relaxed) {
            let (batches, ms) = (outcomes.len(), took.as_micros() as f64 / 1000.0);
            tracing::warn!(batches, ms, "slow commit");
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.life.die();
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX - 1)
}
