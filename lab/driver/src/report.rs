//! What workers report to whoever merges it, in this process or another, and the queue to get it there.

use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::event::{Slowest, StepWindow, Unanswered, new_histogram};
use lab_client::ClientCounts;
use lab_client::ErrorClass;
use lab_client::Nanos;
use lab_workload::TraceContext;

/// How many reports may wait for the merger, over all workers.
pub(crate) const QUEUE: usize = 256;

/// What a worker tells.
pub(crate) enum Report {
    /// Setup went on.
    Setup(SetupCounts),
    /// All of this worker's users are through with the setup step that was asked for.
    SetupStepDone(SetupCounts),
    /// A window is full, or the trial over; `end` and `handed_over` on the trial's clock.
    Window {
        index: u64,
        end: Nanos,
        handed_over: Nanos,
        window: Box<WorkerWindow>,
    },
    /// A failed request.
    Example(Example),
    /// The worker has ended; `cut` when at the end of its trial.
    Ended { cut: bool },
}

/// What a worker's setup has come to.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct SetupCounts {
    pub(crate) users_done: u32,
    pub(crate) transactions: u64,
    pub(crate) errors: u64,
    pub(crate) skipped: u64,
}

/// The end of the queue to the merger of all that tell it something.
#[derive(Clone)]
pub(crate) struct Queue {
    reports: SyncSender<(usize, Report)>,
    telling: Arc<()>,
}

/// A queue of so many reports.
pub(crate) fn queue(reports: usize) -> (Queue, Receiver<(usize, Report)>) {
    let (reports, told) = sync_channel(reports);
    let telling = Arc::new(());
    (Queue { reports, telling }, told)
}

impl Queue {
    /// Waits while the queue is full.
    pub(crate) fn send(&self, told: (usize, Report)) -> Result<(), SendError<(usize, Report)>> {
        self.reports.send(told)
    }

    /// Lives as long as somebody has this end.
    pub(crate) fn telling(&self) -> Weak<()> {
        Arc::downgrade(&self.telling)
    }
}

/// A worker's end of the queue to the merger.
#[derive(Clone)]
pub(crate) struct Outbox {
    pub(crate) worker: usize,
    pub(crate) queue: Queue,
}

impl Outbox {
    /// Blocks while the merger is a whole queue behind: late sends then show that the generator
    /// was held up, where silence would lose counts. Without a merger there is nobody to tell.
    pub(crate) fn send(&self, report: Report) {
        let _gone = self.queue.send((self.worker, report));
    }
}

/// Counts of one window of one worker.
pub(crate) struct WorkerWindow {
    pub(crate) users: u32,
    pub(crate) cycles: u64,
    pub(crate) overruns: u64,
    pub(crate) arrived: u64,
    pub(crate) waiting: u64,
    pub(crate) dropped: u64,
    pub(crate) client: ClientCounts,
    pub(crate) unanswered: Unanswered,
    pub(crate) lateness: Histogram<u64>,
    pub(crate) loop_lag: Histogram<u64>,
    pub(crate) sessions: Histogram<u64>,
    pub(crate) steps: Vec<StepWindow>,
    pub(crate) slowest: Option<Slowest>,
}

/// An error that a reader may want to see.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    /// On the trial's clock.
    pub(crate) t: Nanos,
    /// Index of the step: of a window's steps, or of setup's.
    pub(crate) step: usize,
    pub(crate) setup: bool,
    pub(crate) class: ErrorClass,
    pub(crate) detail: Box<str>,
    pub(crate) trace: Option<TraceContext>,
}

impl StepWindow {
    fn reset(&mut self) {
        reset(&mut self.ok);
        reset(&mut self.service);
        reset(&mut self.error);
        self.phases.iter_mut().for_each(reset);
        self.events.iter_mut().for_each(reset);
        self.measures.iter_mut().for_each(reset);
        self.errors = [0; 5];
        self.redirects = 0;
        self.retries = 0;
        self.retry_wait_us = 0;
        self.cut_off = 0;
        self.skipped = 0;
        self.waits = 0;
        self.wait_sum_us = 0;
        self.bytes = 0;
        self.plain_bytes = 0;
    }
}

impl WorkerWindow {
    pub(crate) fn new(steps: usize) -> Self {
        Self {
            users: 0,
            cycles: 0,
            overruns: 0,
            arrived: 0,
            waiting: 0,
            dropped: 0,
            client: ClientCounts::default(),
            unanswered: Unanswered::default(),
            lateness: new_histogram(),
            loop_lag: new_histogram(),
            sessions: new_histogram(),
            steps: (0..steps).map(|_| StepWindow::empty()).collect(),
            slowest: None,
        }
    }

    /// Empties it and keeps its memory.
    pub(crate) fn reset(&mut self) {
        self.users = 0;
        self.cycles = 0;
        self.overruns = 0;
        self.arrived = 0;
        self.waiting = 0;
        self.dropped = 0;
        self.client = ClientCounts::default();
        self.unanswered = Unanswered::default();
        reset(&mut self.lateness);
        reset(&mut self.loop_lag);
        reset(&mut self.sessions);
        self.steps.iter_mut().for_each(StepWindow::reset);
        self.slowest = None;
    }
}

/// Most histograms of a window are empty; clearing those would cost more than filling the rest.
fn reset(histogram: &mut Histogram<u64>) {
    if !histogram.is_empty() {
        histogram.reset();
    }
}
