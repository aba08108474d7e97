//! What a person may ask of a run that goes on, besides ending it. It asks nothing itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a person may ask of a run, from another thread.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// While it is true, the next trial doesn't begin.
    pub pause: Arc<AtomicBool>,
    /// Gives the trial under way up, from its setup on; a resumed run runs it. A search, whose trials
    /// depend on each other, ends with it.
    pub skip: Arc<AtomicBool>,
}

impl Control {
    pub(crate) fn is_paused(&self) -> bool {
        self.pause.load(Ordering::Relaxed)
    }

    pub(crate) fn skips(&self) -> bool {
        self.skip.load(Ordering::Relaxed)
    }

    /// What was asked of an earlier trial isn't asked of this one.
    pub(crate) fn begin_trial(&self) {
        self.skip.store(false, Ordering::Relaxed);
    }
}
