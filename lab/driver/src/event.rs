//! What the driver tells while it runs: events, windows, and the summary at the end.
//!
//! Facts only; nothing here judges them.

use std::time::Duration;

use hdrhistogram::Histogram;
use lab_client::{ErrorClass, Phase};
use lab_workload::TraceContext;
use serde::{Deserialize, Serialize};

/// Error examples that a driver reports, whatever they are; after them come a few more, each the first of its step and
/// class.
pub const MAX_ERROR_EXAMPLES: usize = 20;

/// Longest time that a histogram can hold; longer ones are recorded as this.
pub const MAX_RECORDED: Duration = Duration::from_secs(3600);

/// Significant digits of times.
pub(crate) const DIGITS: u8 = 3;
/// And of the times of phases.
pub(crate) const PHASE_DIGITS: u8 = 2;

/// An empty histogram as the driver makes them: 1 µs … 1 h, three significant digits, growing as
/// needed (16 KiB while all values are below 2 ms, 180 KiB at most).
#[must_use]
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("three significant digits are within 0..=5")
}

/// An empty histogram for the time of a phase: as [`new_histogram`]'s, with two significant digits, so
/// that the many of them take little memory.
#[must_use]
pub fn new_phase_histogram() -> Histogram<u64> {
    Histogram::new(PHASE_DIGITS).expect("two significant digits are within 0..=5")
}

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

/// Counts of one window, all workers merged.
#[derive(Debug, Clone)]
pub struct Window {
    /// Start on the trial's clock.
    pub start: Duration,
    /// End on the trial's clock, as planned but for the last window of a drive that ended early.
    pub end: Duration,
    /// When the last worker really handed it over, on the trial's clock: later than `end` by what
    /// held the generator up.
    pub handed_over: Duration,
    /// Users in a session at the window's end; of arrivals, sessions under way.
    pub users: u32,
    /// Cycles begun; of arrivals, sessions that got their connection.
    pub cycles: u64,
    /// Sessions that arrived.
    pub arrived: u64,
    /// Arrived sessions that wait for a connection at the window's end.
    pub waiting: u64,
    /// Sessions turned away because [`crate::Limits::max_waiting`] others waited already. They are
    /// in no histogram.
    pub dropped: u64,
    /// Cycles that outlasted their pace.
    pub overruns: u64,
    /// Connections opened.
    pub connects: u64,
    /// Those of them that speak HTTP/2.
    pub http2_connects: u64,
    /// Requests sent a second time because the server had closed the kept connection while it was
    /// idle, or said that it did nothing with them; see [`lab_client::http`] for the rule.
    pub stale_retries: u64,
    /// In the last window: what had no answer at the end; none before.
    pub unanswered: Unanswered,
    /// How much later than meant requests were sent, µs (0 counts as 1).
    pub lateness: Histogram<u64>,
    /// How much later than it became readable something was read, µs: what the generator adds to
    /// each answer's time. Sampled by a timer of each worker, a hundred times a second.
    pub loop_lag: Histogram<u64>,
    /// Of a sequence: how long sessions took that ended here and in which no request failed, µs.
    /// Empty for other loads.
    pub sessions: Histogram<u64>,
    /// The steps of the session in order; the probe, if there is one, comes last.
    pub steps: Vec<StepWindow>,
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

/// Requests under way, and sessions that waited for a connection, when the drive was cut. They are
/// in no histogram, so that a server that hangs or can't keep up shows here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    /// How many.
    pub count: u64,
    /// How long ago the oldest was meant to be sent, or arrived.
    pub oldest: Duration,
}

/// Counts of one step in one window. A request counts in the window in which it was answered, a
/// wait in the one in which it ended.
#[derive(Debug, Clone)]
pub struct StepWindow {
    /// Response times of requests that met their `expect`, µs: from the planned send where there
    /// is a plan, else from the actual send.
    pub ok: Histogram<u64>,
    /// Service times of the same requests, µs: from the actual send. Empty for a step without a
    /// plan (users, a sequence), where both are the same.
    pub service: Histogram<u64>,
    /// Times to failure of those that did not, µs, from where their response time would count.
    pub error: Histogram<u64>,
    /// Times of the phases of the requests that met their `expect`, µs (0 counts as 1), in the order of
    /// [`Phase::ALL`].
    pub phases: [Histogram<u64>; Phase::COUNT],
    /// Of requests that listen for events, failed ones included: how long the first event took, from
    /// where their response time would count, and how long each further one after the one before, µs.
    pub events: [Histogram<u64>; 2],
    /// Numbers that answers told, in thousandths, in the order of the step's measures; those after the last of
    /// which there was one are left out.
    pub measures: Vec<Histogram<u64>>,
    /// Failed requests by [`ErrorClass::index`].
    pub errors: [u64; 5],
    /// Those of the requests that met their `expect` that were redirected: for each there was one more,
    /// which no plan knows of.
    pub redirects: u64,
    /// Those of the requests, well or failed, that were failed ones sent again: no plan knows of them.
    pub retries: u64,
    /// Sum of the waits before those, µs.
    pub retry_wait_us: u64,
    /// Loops beginning with this step that ended by their bound, not by their condition.
    pub cut_off: u64,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
    /// Waits done.
    pub waits: u64,
    /// Sum of the waits as they really lasted, µs.
    pub wait_sum_us: u64,
    /// Response bodies as they came, bytes, chunk framing taken off.
    pub bytes: u64,
    /// The same as they were meant: decoded, where they came compressed and were asked for so.
    pub plain_bytes: u64,
}

impl Unanswered {
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.oldest = self.oldest.max(other.oldest);
    }
}

impl Window {
    /// A window of so many steps in which nothing happened.
    #[must_use]
    pub fn empty(steps: usize) -> Self {
        Self {
            start: Duration::ZERO,
            end: Duration::ZERO,
            handed_over: Duration::ZERO,
            users: 0,
            cycles: 0,
            arrived: 0,
            waiting: 0,
            dropped: 0,
            overruns: 0,
            connects: 0,
            http2_connects: 0,
            stale_retries: 0,
            unanswered: Unanswered::default(),
            lateness: new_histogram(),
            loop_lag: new_histogram(),
            sessions: new_histogram(),
            steps: (0..steps).map(|_| StepWindow::empty()).collect(),
            slowest: None,
        }
    }
}

impl StepWindow {
    /// A step's window in which nothing happened.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            ok: new_histogram(),
            service: new_histogram(),
            error: new_histogram(),
            phases: Phase::ALL.map(|_| new_phase_histogram()),
            events: [(); 2].map(|()| new_histogram()),
            measures: Vec::new(),
            errors: [0; 5],
            redirects: 0,
            retries: 0,
            retry_wait_us: 0,
            cut_off: 0,
            skipped: 0,
            waits: 0,
            wait_sum_us: 0,
            bytes: 0,
            plain_bytes: 0,
        }
    }

    /// Where the numbers of the measure at this place are kept; there from the first one on.
    pub(crate) fn measure(&mut self, place: usize) -> &mut Histogram<u64> {
        while self.measures.len() <= place {
            self.measures.push(new_histogram());
        }
        &mut self.measures[place]
    }

    /// Requests that met their `expect`.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.ok.len()
    }

    /// Failed requests of all classes.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
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
    /// See [`Window::dropped`].
    pub dropped: u64,
    /// Requests of the probe that met their `expect`.
    pub probe_transactions: u64,
    /// Failed requests of the probe.
    pub probe_errors: u64,
    /// Connections opened.
    pub connects: u64,
    /// Those of them that speak HTTP/2.
    pub http2_connects: u64,
    /// See [`Window::stale_retries`].
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
