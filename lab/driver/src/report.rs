//! What workers report to whoever merges it, in this process or another, and the queue to get it there.

use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};

use crate::event::Window;
use lab_client::ErrorClass;
use lab_client::Nanos;
use lab_workload::TraceContext;

/// How many reports may wait for the merger, over all workers.
pub(crate) const QUEUE: usize = 256;

/// What a worker reports, also over a wire.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// Setup went on.
    Setup(SetupCounts),
    /// All of this worker's users are through with the setup step that was asked for.
    SetupStepDone(SetupCounts),
    /// A window is full, or the trial over. Its start is not set: windows follow each other without gaps.
    Window { index: u64, window: Box<Window> },
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
    /// Those of the errors without a response.
    #[serde(default)]
    pub(crate) unanswered: u64,
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

/// An error that a reader may want to see.
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
