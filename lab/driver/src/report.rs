//! The reports of workers to the merger, in this process or another, and their queue.

use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};

use crate::event::Window;
use lab_client::ErrorClass;
use lab_client::Nanos;
use lab_workload::TraceContext;

/// The maximum number of reports that wait for the merger, over all workers.
pub(crate) const QUEUE: usize = 256;

/// A worker's report, also on the wire.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// Progress of setup.
    Setup(SetupCounts),
    /// All of this worker's users have finished the requested setup step.
    SetupStepDone(SetupCounts),
    /// A window is full, or the trial has ended. Its start is not set: windows follow each other without gaps.
    Window { index: u64, window: Box<Window> },
    /// A failed request.
    Example(Example),
    /// The worker has ended; `cut` if it ended at the end of its trial.
    Ended { cut: bool },
}

/// The counts of a worker's setup.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct SetupCounts {
    pub(crate) users_done: u32,
    pub(crate) transactions: u64,
    pub(crate) errors: u64,
    /// Those of the errors without a response.
    #[serde(default)]
    pub(crate) unanswered: u64,
    pub(crate) skipped: u64,
}

/// The sending end of the queue to the merger.
#[derive(Clone)]
pub(crate) struct Queue {
    reports: SyncSender<(usize, Report)>,
    alive: Arc<()>,
}

/// Returns a queue of this capacity.
pub(crate) fn queue(reports: usize) -> (Queue, Receiver<(usize, Report)>) {
    let (reports, told) = sync_channel(reports);
    let telling = Arc::new(());
    (
        Queue {
            reports,
            alive: telling,
        },
        told,
    )
}

impl Queue {
    /// Sends a report; blocks while the queue is full.
    pub(crate) fn send(&self, told: (usize, Report)) -> Result<(), SendError<(usize, Report)>> {
        self.reports.send(told)
    }

    /// Returns a reference that is alive while any sender exists.
    pub(crate) fn senders(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
}

/// A worker's end of the queue to the merger.
#[derive(Clone)]
pub(crate) struct Outbox {
    pub(crate) worker: usize,
    pub(crate) queue: Queue,
}

impl Outbox {
    /// Blocks while the merger is a whole queue behind: late sends then show the generator's delay, and no counts are
    /// lost. Reports without a merger are dropped.
    pub(crate) fn send(&self, report: Report) {
        let _gone = self.queue.send((self.worker, report));
    }
}

/// A failed request for the report.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
