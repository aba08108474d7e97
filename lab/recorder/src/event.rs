//! The driver's output while it runs: events, windows, and the summary at the end.
//!
//! Facts only; nothing here judges them.

use std::time::Duration;

use lab_counts::{ErrorClass, Hist, StepWindow, TransactionWindow, WindowCounts};
use lab_workload::TraceContext;
use serde::{Deserialize, Serialize};

use crate::script::ScriptNote;

/// The number of error examples that a driver reports of any kind. A few more follow, each the first of its step and
/// class.
pub const MAX_ERROR_EXAMPLES: usize = 20;

/// The maximum time in a histogram; longer times are recorded as this.
pub const MAX_RECORDED: Duration = Duration::from_secs(3600);

/// The events, in order: `SetupProgress`* `SetupDone` (`Window` | `ErrorExample` | `Script`)* `Done`. Examples can occur during
/// setup too.
#[derive(Debug, Clone)]
pub enum DriverEvent {
    /// Progress of setup; a few times a second at most.
    SetupProgress {
        /// The 0-based number of the current step.
        step: usize,
        /// Number of setup steps.
        steps: usize,
        /// Users that have finished this step.
        users_done: u32,
        /// Requests so far that met their `expect`, over all steps.
        transactions: u64,
        /// Failed requests so far, over all steps.
        errors: u64,
        /// Those of the failed requests without a response.
        unanswered: u64,
    },
    /// All users have finished setup; the driver waits for `Driver::begin`.
    SetupDone {
        /// Requests that met their `expect`.
        transactions: u64,
        /// Failed requests.
        errors: u64,
        /// Steps skipped because a list was empty.
        skipped: u64,
        /// The duration of setup.
        elapsed: Duration,
    },
    /// One window, all workers merged; without gaps, in order.
    Window(Box<Window>),
    /// A failed request; of the first [`MAX_ERROR_EXAMPLES`], or the first of its kind.
    ErrorExample {
        /// The time on the trial's clock; 0 during setup.
        t: Duration,
        /// Name of the step.
        step: String,
        /// The error class.
        class: ErrorClass,
        /// Status and first bytes of the response, or the cause.
        detail: String,
        /// The id of the trace that the request began, in hex.
        trace: Option<String>,
    },
    /// A fact that a script caused; [`ScriptNote::NotCounted`] of each worker.
    Script(ScriptNote),
    /// The last event: all workers have ended.
    Done,
}

/// Counts and times of one window, of one worker or of all merged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Start on the trial's clock.
    pub start: Duration,
    /// End on the trial's clock, as planned except for the last window of a load that ended early.
    pub end: Duration,
    /// When the last worker actually handed over the window, on the trial's clock. The difference to `end` is the
    /// generator's delay.
    pub handed_over: Duration,
    /// Counts over all steps.
    pub counts: WindowCounts,
    /// The delay of sends against their planned time, µs (0 counts as 1).
    pub lateness: Hist,
    /// The delay between readable and read, µs, which the generator adds to each response time. Sampled by a timer of
    /// each worker, a hundred times a second.
    pub loop_lag: Hist,
    /// For a sequence: the durations of sessions that ended here without a failed request, µs. Empty for other loads.
    pub sessions: Hist,
    /// The steps of the session in order; the probe, if there is one, is last.
    pub steps: Vec<StepWindow>,
    /// The transactions, population after population, up to the last one with a count.
    #[serde(default)]
    pub transactions: Vec<TransactionWindow>,
    /// The slowest of the requests that began a trace and met their `expect`.
    pub slowest: Option<Slowest>,
}

/// A slow request to find in the system's traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slowest {
    /// Its index in [`Window::steps`].
    pub step: usize,
    /// Its response time.
    pub response: Duration,
    /// The trace that the request began.
    pub trace: TraceContext,
}

impl Slowest {
    /// Returns the slower of two; the first if they are equal.
    pub fn of(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) if other.response > one.response => Some(other),
            (one, other) => one.or(other),
        }
    }
}

impl Window {
    /// Returns a window of `steps` steps without any counts.
    #[must_use]
    pub fn empty(steps: usize) -> Self {
        Self {
            steps: vec![StepWindow::default(); steps],
            ..Self::default()
        }
    }

    /// Returns the number of requests without a response at the end of the load, and the age of the oldest one. Only
    /// the last window has any.
    #[must_use]
    pub fn unanswered(&self) -> (u64, Duration) {
        let steps = self.steps.iter();
        let ages = steps.map(|step| &step.times.unanswered);
        let count = ages.clone().map(|ages| ages.len()).sum();
        let oldest_us = ages.map(|ages| ages.max()).max().unwrap_or_default();
        (count, Duration::from_micros(oldest_us))
    }

    /// Removes all counts and values, and keeps the memory.
    pub fn reset(&mut self) {
        self.counts = WindowCounts::default();
        self.lateness.reset();
        self.loop_lag.reset();
        self.sessions.reset();
        self.steps.iter_mut().for_each(StepWindow::reset);
        self.transactions
            .iter_mut()
            .for_each(TransactionWindow::reset);
        self.slowest = None;
    }

    /// Returns the transaction at this index; it is created at its first count.
    pub fn transaction(&mut self, place: usize) -> &mut TransactionWindow {
        while self.transactions.len() <= place {
            self.transactions.push(TransactionWindow::default());
        }
        &mut self.transactions[place]
    }

    /// Adds another worker's counts of the same window.
    pub fn add(&mut self, part: &Self) {
        self.counts += part.counts;
        for (sum, one) in [
            (&mut self.lateness, &part.lateness),
            (&mut self.loop_lag, &part.loop_lag),
            (&mut self.sessions, &part.sessions),
        ] {
            sum.add(one).expect("growing histograms hold any value");
        }
        for (sum, one) in self.steps.iter_mut().zip(&part.steps) {
            *sum += one;
        }
        for (place, one) in part.transactions.iter().enumerate() {
            *self.transaction(place) += one;
        }
        self.slowest = Slowest::of(self.slowest, part.slowest);
    }
}

/// The sums of a whole load, without setup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverSummary {
    /// Requests that met their `expect`; those of the probe are not among them.
    pub transactions: u64,
    /// Failed requests; those of the probe are not among them.
    pub errors: u64,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
    /// Cycles begun.
    pub cycles: u64,
    /// Cycles that outlasted their pace.
    pub overruns: u64,
    /// Sessions that arrived.
    pub arrived: u64,
    /// See [`WindowCounts::dropped`].
    pub dropped: u64,
    /// Requests of the probe that met their `expect`.
    pub probe_transactions: u64,
    /// Failed requests of the probe.
    pub probe_errors: u64,
    /// Connections opened.
    pub connects: u64,
    /// Those of them that speak HTTP/2.
    pub http2_connects: u64,
    /// See [`WindowCounts::stale_retries`].
    pub stale_retries: u64,
    /// Requests of the setup that met their `expect`.
    pub setup_transactions: u64,
    /// Failed requests of the setup.
    pub setup_errors: u64,
    /// End of the last window on the trial's clock.
    pub elapsed: Duration,
    /// Whether `Driver::stop` or a failure ended the load before the end of the hold.
    pub stopped_early: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_travel_and_add_up() {
        let mut window = Window::empty(2);
        window.end = Duration::from_millis(7);
        window.counts.users = 3;
        window.lateness.record(4).unwrap();
        window.steps[1].times.ok.record(1500).unwrap();
        window.steps[1].counts.ok = 1;
        let json = serde_json::to_string(&window).unwrap();
        let back: Window = serde_json::from_str(&json).unwrap();
        assert_eq!(back, window);
        let mut sum = Window::empty(2);
        sum.add(&window);
        sum.add(&back);
        assert_eq!((sum.counts.users, sum.lateness.len()), (6, 2));
        assert_eq!(sum.steps[1].transactions(), 2);
        sum.reset();
        assert_eq!(sum, Window::empty(2));
    }
}
