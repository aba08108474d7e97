//! What the driver tells while it runs: events, windows, and the summary at the end.
//!
//! Facts only; nothing here judges them.

use std::time::Duration;

use lab_counts::{ErrorClass, Hist, StepWindow, TransactionWindow, WindowCounts};
use lab_workload::TraceContext;
use serde::{Deserialize, Serialize};

/// Error examples that a driver reports, whatever they are; after them come a few more, each the first of its step and
/// class.
pub const MAX_ERROR_EXAMPLES: usize = 20;

/// Longest time that a histogram can hold; longer ones are recorded as this.
pub const MAX_RECORDED: Duration = Duration::from_secs(3600);

/// What happens, in order. `SetupProgress`* `SetupDone` (`Window` | `ErrorExample`)* `Done`;
/// examples can come during setup too.
#[derive(Debug, Clone)]
pub enum DriverEvent {
    /// Setup goes on; a few times a second at most.
    SetupProgress {
        /// 0-based number of the step that is being done.
        step: usize,
        /// Number of setup steps.
        steps: usize,
        /// Users that are through with this step.
        users_done: u32,
        /// Answered requests so far, over all steps.
        transactions: u64,
        /// Failed requests so far, over all steps.
        errors: u64,
        /// Those of the failed requests that got no response.
        unanswered: u64,
    },
    /// All users are through with setup; the driver waits for [`crate::Driver::begin`].
    SetupDone {
        /// Answered requests.
        transactions: u64,
        /// Failed requests.
        errors: u64,
        /// Steps skipped because a list was empty.
        skipped: u64,
        /// How long setup took.
        elapsed: Duration,
    },
    /// One window, all workers merged; without gaps, in order.
    Window(Box<Window>),
    /// A failed request; of the first [`MAX_ERROR_EXAMPLES`], or the first of its kind.
    ErrorExample {
        /// When, on the trial's clock; 0 during setup.
        t: Duration,
        /// Name of the step.
        step: String,
        /// Why.
        class: ErrorClass,
        /// Status and first bytes of the answer, or the cause.
        detail: String,
        /// Id of the trace that it began, in hex.
        trace: Option<String>,
    },
    /// The last event: all workers have ended.
    Done,
}

/// Counts and times of one window, of one worker or of all merged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Start on the trial's clock.
    pub start: Duration,
    /// End on the trial's clock, as planned but for the last window of a drive that ended early.
    pub end: Duration,
    /// When the last worker really handed it over, on the trial's clock: later than `end` by what
    /// held the generator up.
    pub handed_over: Duration,
    /// Counts over all steps.
    pub counts: WindowCounts,
    /// How much later than meant requests were sent, µs (0 counts as 1).
    pub lateness: Hist,
    /// How much later than it became readable something was read, µs: what the generator adds to
    /// each answer's time. Sampled by a timer of each worker, a hundred times a second.
    pub loop_lag: Hist,
    /// Of a sequence: how long sessions took that ended here and in which no request failed, µs.
    /// Empty for other loads.
    pub sessions: Hist,
    /// The steps of the session in order; the probe, if there is one, comes last.
    pub steps: Vec<StepWindow>,
    /// The transactions, population after population, up to the last one that has something to count.
    #[serde(default)]
    pub transactions: Vec<TransactionWindow>,
    /// The slowest of the requests that began a trace and met their `expect`.
    pub slowest: Option<Slowest>,
}

/// A slow request that is to be found in the system's traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slowest {
    /// Its place in [`Window::steps`].
    pub step: usize,
    /// Its response time.
    pub response: Duration,
    /// The trace that it began.
    pub trace: TraceContext,
}

impl Slowest {
    /// The slower of two; of equals the first.
    pub(crate) fn of(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) if other.response > one.response => Some(other),
            (one, other) => one.or(other),
        }
    }
}

impl Window {
    /// A window of `steps` steps in which nothing happened.
    #[must_use]
    pub fn empty(steps: usize) -> Self {
        Self {
            steps: vec![StepWindow::default(); steps],
            ..Self::default()
        }
    }

    /// The number of requests without a response when the drive ended, and the age of the oldest one. Only the last
    /// window has any.
    #[must_use]
    pub fn unanswered(&self) -> (u64, Duration) {
        let steps = self.steps.iter();
        let ages = steps.map(|step| &step.times.unanswered);
        let count = ages.clone().map(|ages| ages.len()).sum();
        let oldest_us = ages.map(|ages| ages.max()).max().unwrap_or_default();
        (count, Duration::from_micros(oldest_us))
    }

    /// Removes all counts and values, and keeps the memory.
    pub(crate) fn reset(&mut self) {
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

    /// The transaction at this place; it exists from its first count on.
    pub(crate) fn transaction(&mut self, place: usize) -> &mut TransactionWindow {
        while self.transactions.len() <= place {
            self.transactions.push(TransactionWindow::default());
        }
        &mut self.transactions[place]
    }

    /// Adds what another worker counted in the same window.
    pub(crate) fn add(&mut self, part: &Self) {
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

/// The sums of a whole drive, setup apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriveSummary {
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
    /// Answered requests of the setup.
    pub setup_transactions: u64,
    /// Failed requests of the setup.
    pub setup_errors: u64,
    /// End of the last window on the trial's clock.
    pub elapsed: Duration,
    /// Whether [`crate::Driver::stop`] or a failure ended it before the end of the hold.
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
