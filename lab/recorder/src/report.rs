//! The reports of workers to the merger, in this process or another, and their queue.

use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};

use crate::event::Window;
use crate::script::ScriptNote;
use lab_client::ErrorClass;
use lab_client::Nanos;
use lab_workload::TraceContext;

/// The maximum number of reports that wait for the merger, over all workers.
pub const QUEUE: usize = 256;

/// A worker's report, also on the wire.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// Progress of setup.
    Setup(SetupCounts),
    /// All of this worker's users have finished the requested setup step.
    SetupStepDone(SetupCounts),
    /// A window is full, or the trial has ended. Its start is not set: windows follow each other without gaps.
    Window {
        /// The 0-based number of the window.
        index: u64,
        /// Its counts and times.
        window: Box<Window>,
    },
    /// A failed request.
    Example(Example),
    /// A fact that a script caused.
    Script(ScriptNote),
    /// The worker has ended.
    Ended {
        /// Whether the worker ended at the end of its trial.
        cut: bool,
    },
}

/// The counts of a worker's setup.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct SetupCounts {
    /// Users that have finished the requested step.
    pub users_done: u32,
    /// Requests that met their `expect`.
    pub transactions: u64,
    /// Failed requests.
    pub errors: u64,
    /// Those of the errors without a response.
    #[serde(default)]
    pub unanswered: u64,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
}

/// The sending end of the queue to the merger.
#[derive(Clone)]
pub struct Queue {
    reports: SyncSender<(usize, Report)>,
    alive: Arc<()>,
}

/// Returns a queue of this capacity.
pub fn queue(reports: usize) -> (Queue, Receiver<(usize, Report)>) {
    let (reports, received) = sync_channel(reports);
    let alive = Arc::new(());
    (Queue { reports, alive }, received)
}

impl Queue {
    /// Sends a report; blocks while the queue is full.
    ///
    /// # Errors
    /// If there is no merger any more.
    pub fn send(&self, report: (usize, Report)) -> Result<(), SendError<(usize, Report)>> {
        self.reports.send(report)
    }

    /// Returns a reference that is alive while any sender exists.
    pub fn senders(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
}

/// A worker's end of the queue to the merger.
#[derive(Clone)]
pub struct Outbox {
    /// The number of the worker.
    pub worker: usize,
    /// The queue that all workers share.
    pub queue: Queue,
}

impl Outbox {
    /// Blocks while the merger is a whole queue behind: late sends then show the generator's delay, and no counts are
    /// lost. Reports without a merger are dropped.
    pub fn send(&self, report: Report) {
        let _gone = self.queue.send((self.worker, report));
    }
}

/// A failed request for the report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Example {
    /// On the trial's clock.
    pub t: Nanos,
    /// Index of the step: of a window's steps, or of setup's.
    pub step: usize,
    /// Whether the request was one of setup.
    pub setup: bool,
    /// The class of its error.
    pub class: ErrorClass,
    /// What was wrong, in words.
    pub detail: Box<str>,
    /// The trace that the request began.
    pub trace: Option<TraceContext>,
}
