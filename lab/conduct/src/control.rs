//! Requests of a person to a run in progress, besides ending it. It makes none itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Requests to a run, from another thread.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// While it is true, the next trial doesn't begin.
    pub pause: Arc<AtomicBool>,
    /// Skips the trial in progress, from its setup on; a resumed run runs it. A search, whose trials depend on each
    /// other, ends with it.
    pub skip: Arc<AtomicBool>,
}

impl Control {
    pub(crate) fn is_paused(&self) -> bool {
        self.pause.load(Ordering::Relaxed)
    }

    pub(crate) fn skips(&self) -> bool {
        self.skip.load(Ordering::Relaxed)
    }

    /// Clears requests that were meant for an earlier trial.
    pub(crate) fn begin_trial(&self) {
        self.skip.store(false, Ordering::Relaxed);
    }
}
