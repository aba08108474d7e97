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

/// The longest time of the modules of a script, and of the initialisers of a user.
const LOADING: Duration = Duration::from_secs(10);

/// The time budget of the turn that runs.
pub(crate) struct Budget {
    /// The limit of turns.
    turn: Duration,
    limit: Cell<Duration>,
    /// When the interrupt handler was first called in this turn. Turns so short that it isn't called read no clock.
    started: Cell<Option<Duration>>,
    over: Cell<bool>,
    /// Whether the cycle collector has run since [`Budget::take_collected`].
    collected: Cell<bool>,
}

impl Budget {
    pub(crate) fn new(turn: Duration) -> Budget {
        Budget {
            turn,
            limit: Cell::new(turn),
            started: Cell::new(None),
            over: Cell::new(false),
            collected: Cell::new(false),
        }
    }

    /// Begins a turn.
    pub(crate) fn begin(&self) {
        self.limit.set(self.turn);
        self.started.set(None);
        self.over.set(false);
    }

    /// Begins or ends code that runs once: modules, and the initialisers of a user.
    pub(crate) fn load(&self, begins: bool) {
        self.limit.set(if begins { LOADING } else { self.turn });
        self.started.set(None);
    }

    /// Notes that the cycle collector ran. Its time is not the script's: the first one of a turn restarts the clock.
    pub(crate) fn note_collection(&self) {
        if !self.collected.replace(true) {
            self.started.set(None);
        }
    }

    /// Returns true if the cycle collector has run since the last call.
    pub(crate) fn take_collected(&self) -> bool {
        self.collected.take()
    }

    /// Returns true if the turn must end.
    pub(crate) fn must_end(&self) -> bool {
        let now = clock();
        let Some(started) = self.started.get() else {
            self.started.set(Some(now));
            return false;
        };
        let over = now.saturating_sub(started) >= self.limit.get();
        if over {
            self.over.set(true);
        }
        over
    }

    /// Whether this turn was ended.
    pub(crate) fn was_over(&self) -> bool {
        self.over.get()
    }

    /// The message of what was ended.
    pub(crate) fn message(&self) -> String {
        let limit = self.limit.get();
        if limit == self.turn {
            return format!(
                "the script ran for {} ms without a request or a wait: a turn may take {0} ms at most",
                limit.as_millis()
            );
        }
        format!(
            "the code at module level ran for {} s, the limit: prepare the data before the run",
            limit.as_secs()
        )
    }
}

/// The CPU time of this thread. A turn isn't blamed for the time in which the machine ran something else.
fn clock() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
