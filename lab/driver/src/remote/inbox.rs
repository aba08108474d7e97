//! Validates the reports of one generator: each window of each worker once, in order, to the end of the trial. The
//! merger trusts what passes.

use std::sync::Arc;
use std::time::Duration;

use lab_client::Nanos;
use lab_workload::{LoadKind, MAX_SCRIPT_MEASURES};

use super::error::MessageError;
use crate::assignment::Assignment;
use crate::outline::Outline;
use lab_recorder::report::{Queue, Report};

/// The reports of one generator.
pub(crate) struct Inbox {
    outline: Arc<Outline>,
    /// The number of its first worker among all.
    first: usize,
    workers: Vec<WorkerReports>,
    /// The end of the last window of a whole trial; none for loads that end by themselves.
    length: Option<Nanos>,
    queue: Queue,
}

/// The state of one worker's reports so far.
#[derive(Debug, Clone, Copy, Default)]
struct WorkerReports {
    /// The number of windows.
    windows: u64,
    /// The end of the last one.
    end: Nanos,
    ended: bool,
}

impl Inbox {
    /// Returns the inbox of a generator with this number of workers, the first of which has number `first` among all.
    pub(crate) fn new(
        drive: &Assignment,
        outline: &Arc<Outline>,
        (first, workers): (usize, usize),
        queue: &Queue,
    ) -> Self {
        let sequence = matches!(drive.kind, LoadKind::Sequence { .. });
        let length = drive.ramp.saturating_add(drive.hold);
        Self {
            outline: Arc::clone(outline),
            first,
            workers: vec![WorkerReports::default(); workers],
            length: (!sequence).then(|| lab_client::time::nanos(length)),
            queue: queue.clone(),
        }
    }

    /// Returns the number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Returns true if all of them have ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.workers.iter().all(|worker| worker.ended)
    }

    /// Passes a report on, if it is possible for this generator.
    pub(crate) fn pass(&mut self, worker: usize, report: Report) -> Result<(), MessageError> {
        let nonsense = |text: String| Err(MessageError::Nonsense(text));
        let Some(heard) = self.workers.get_mut(worker).filter(|heard| !heard.ended) else {
            return nonsense("a report of what is not there".to_owned());
        };
        let recorded = self.outline.recorded_steps();
        let sound = match &report {
            Report::Window { window, .. } => {
                let measures = window.steps.iter().map(|step| step.times.measures.len());
                window.steps.len() == recorded
                    && window.transactions.len() <= self.outline.transactions.len()
                    && measures.max() <= Some(MAX_SCRIPT_MEASURES)
            }
            Report::Example(example) if example.setup => example.step < self.outline.setup.len(),
            Report::Example(example) => example.step < recorded,
            Report::Setup(_) | Report::SetupStepDone(_) => !self.outline.setup.is_empty(),
            Report::Script(_) | Report::Ended { .. } => true,
        };
        if !sound {
            return nonsense("a report of what is not there".to_owned());
        }
        if let Err(gap) = heard.check(&report, self.length) {
            return nonsense(gap);
        }
        // The merger ends early only with the load.
        let _gone = self.queue.send((self.first + worker, report));
        Ok(())
    }

    /// Marks the workers of a lost generator as ended.
    pub(crate) fn give_up(&mut self) {
        for (worker, heard) in self.workers.iter_mut().enumerate() {
            if !heard.ended {
                heard.ended = true;
                let report = Report::Ended { cut: false };
                let _gone = self.queue.send((self.first + worker, report));
            }
        }
    }
}

impl WorkerReports {
    /// Checks a report. Returns an error if a part is missing or duplicate.
    fn check(&mut self, report: &Report, length: Option<Nanos>) -> Result<(), String> {
        match report {
            Report::Window { index, window } => {
                let end = lab_client::time::nanos(window.end);
                if *index != self.windows || end < self.end {
                    let due = self.windows;
                    return Err(format!("window {index} came where {due} was due"));
                }
                (self.windows, self.end) = (self.windows + 1, end);
            }
            Report::Ended { cut } => {
                self.ended = true;
                let last = Duration::from_nanos(self.end);
                if let Some(length) = length.filter(|length| *cut && *length != self.end) {
                    let length = Duration::from_nanos(length);
                    return Err(format!(
                        "its windows end at {last:?}, and the trial at {length:?}"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
