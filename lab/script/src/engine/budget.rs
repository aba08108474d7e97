//! The budget of a turn, in CPU time. The engine asks every few thousand steps whether to go on.

use std::cell::Cell;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The limits of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest time of one turn.
    pub turn: Duration,
    /// The memory of all users together, in bytes.
    pub memory: u64,
    /// The stack of the script's functions, in bytes.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            turn: Duration::from_millis(50),
            memory: 1 << 30,
            stack: 256 << 10,
        }
    }
}

/// The time budget of the turn that runs.
pub(super) struct Budget {
    limit: Duration,
    /// When the turn was first asked about. The clock isn't read in turns so short that the engine never asks.
    started: Cell<Option<Duration>>,
    over: Cell<bool>,
}

impl Budget {
    pub(super) fn new(limit: Duration) -> Budget {
        Budget {
            limit,
            started: Cell::new(None),
            over: Cell::new(false),
        }
    }

    /// A turn begins.
    pub(super) fn begin(&self) {
        self.started.set(None);
        self.over.set(false);
    }

    /// Whether the turn must end.
    pub(super) fn ask(&self) -> bool {
        let now = clock();
        let Some(started) = self.started.get() else {
            self.started.set(Some(now));
            return false;
        };
        let over = now.saturating_sub(started) >= self.limit;
        if over {
            self.over.set(true);
        }
        over
    }

    /// Whether this turn was ended.
    pub(super) fn was_over(&self) -> bool {
        self.over.get()
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }
}

/// The CPU time of this thread. A turn isn't blamed for the time in which the machine ran something else.
fn clock() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
