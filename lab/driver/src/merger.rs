//! The merger: one thread that holds the barriers of setup, merges the workers' windows in order, and emits all as
//! events. It does nothing per request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use crate::clock::Clock;
use crate::control::Control;
use crate::outline::Outline;
use lab_client::Nanos;
use lab_recorder::Examples;
use lab_recorder::event::{DriverEvent, DriverSummary, Window};
use lab_recorder::report::{Example, Report, SetupCounts};

/// The merger's state.
pub(crate) struct Merger {
    pub(crate) outline: Arc<Outline>,
    pub(crate) clock: Clock,
    pub(crate) control: Arc<Control>,
    pub(crate) events: SyncSender<DriverEvent>,
    /// Returns emptied windows to each worker.
    pub(crate) emptied: Vec<SyncSender<Box<Window>>>,
    pub(crate) setup: Setup,
    pub(crate) windows: BTreeMap<u64, Pending>,
    pub(crate) next_window: u64,
    pub(crate) last_end: Nanos,
    pub(crate) ended: usize,
    pub(crate) examples: Examples,
    pub(crate) summary: DriverSummary,
}

/// The progress of setup.
#[derive(Default)]
pub(crate) struct Setup {
    step: usize,
    /// Workers that have finished the current step.
    through: usize,
    /// By worker.
    counts: Vec<SetupCounts>,
}

/// A window that not all workers have handed over.
pub(crate) struct Pending {
    merged: Box<Window>,
    parts: usize,
}

impl Merger {
    pub(crate) fn new(
        outline: Arc<Outline>,
        clock: Clock,
        control: Arc<Control>,
        events: SyncSender<DriverEvent>,
        emptied: Vec<SyncSender<Box<Window>>>,
    ) -> Self {
        let counts = vec![SetupCounts::default(); emptied.len()];
        Self {
            outline,
            clock,
            control,
            events,
            emptied,
            setup: Setup {
                counts,
                ..Setup::default()
            },
            windows: BTreeMap::new(),
            next_window: 0,
            last_end: 0,
            ended: 0,
            examples: Examples::new(0),
            summary: DriverSummary::default(),
        }
    }

    /// Runs until all workers have ended.
    pub(crate) fn run(mut self, reports: &Receiver<(usize, Report)>) -> DriverSummary {
        self.begin();
        self.follow(reports, || true);
        self.end()
    }

    /// Processes the workers' reports until all have ended, or while `goes_on` returns true.
    pub(crate) fn follow(
        &mut self,
        reports: &Receiver<(usize, Report)>,
        goes_on: impl Fn() -> bool,
    ) {
        while goes_on() && !self.all_ended() {
            let Ok((worker, report)) = reports.recv() else {
                break;
            };
            self.take(worker, report);
        }
    }

    /// Without setup there is nothing to wait for.
    pub(crate) fn begin(&mut self) {
        if self.outline.setup.is_empty() {
            self.setup_done();
        }
    }

    pub(crate) fn all_ended(&self) -> bool {
        self.ended == self.emptied.len()
    }

    /// Processes a worker's report.
    pub(crate) fn take(&mut self, worker: usize, report: Report) {
        match report {
            Report::Setup(counts) => self.setup_progress(worker, counts),
            Report::SetupStepDone(counts) => self.setup_step_done(worker, counts),
            Report::Window { index, window } => self.window(worker, index, window),
            Report::Example(example) => self.example(example),
            Report::Script(note) => {
                let note = note.map(|text| self.outline.mask(text));
                self.emit(DriverEvent::Script(note));
            }
            Report::Ended { cut } => self.worker_ended(cut),
        }
    }

    /// Emits the remaining windows. Returns the summary.
    pub(crate) fn end(mut self) -> DriverSummary {
        self.emit_windows(true);
        self.summary.elapsed = Duration::from_nanos(self.last_end);
        self.emit(DriverEvent::Done);
        self.summary
    }

    /// The receiver of the events may be gone.
    fn emit(&self, event: DriverEvent) {
        let _gone = self.events.send(event);
    }

    fn setup_progress(&mut self, worker: usize, counts: SetupCounts) {
        self.setup.counts[worker] = counts;
        let sum = self.setup.sum();
        self.emit(DriverEvent::SetupProgress {
            step: self.setup.step,
            steps: self.outline.setup.len(),
            users_done: sum.users_done,
            transactions: sum.transactions,
            errors: sum.errors,
            unanswered: sum.unanswered,
        });
    }

    fn setup_step_done(&mut self, worker: usize, counts: SetupCounts) {
        self.setup_progress(worker, counts);
        self.setup.through += 1;
        if self.setup.through < self.emptied.len() {
            return;
        }
        self.setup.through = 0;
        self.setup.step += 1;
        for counts in &mut self.setup.counts {
            counts.users_done = 0;
        }
        if self.setup.step == self.outline.setup.len() {
            self.setup_done();
        } else {
            self.control.setup_step(self.setup.step);
        }
    }

    fn setup_done(&mut self) {
        let sum = self.setup.sum();
        self.summary.setup_transactions = sum.transactions;
        self.summary.setup_errors = sum.errors;
        self.emit(DriverEvent::SetupDone {
            transactions: sum.transactions,
            errors: sum.errors,
            skipped: sum.skipped,
            elapsed: self.clock.now(),
        });
    }

    fn example(&mut self, example: Example) {
        let takes = match example.setup {
            true => self.examples.take_of_setup(),
            false => self.examples.take(example.step, example.class),
        };
        if !takes {
            return;
        }
        let name = if example.setup {
            &self.outline.setup[example.step]
        } else {
            self.outline.recorded_name(example.step)
        };
        self.emit(DriverEvent::ErrorExample {
            t: Duration::from_nanos(example.t),
            step: name.to_owned(),
            class: example.class,
            detail: self.outline.mask(&example.detail),
            trace: example.trace.map(|trace| trace.id()),
        });
    }

    /// A worker that ends early ends the load: a partial load is invalid.
    fn worker_ended(&mut self, cut: bool) {
        self.ended += 1;
        if !cut {
            self.summary.stopped_early = true;
            self.control.stop();
        }
    }

    fn window(&mut self, worker: usize, index: u64, mut part: Box<Window>) {
        let steps = self.outline.recorded_steps();
        let pending = self.windows.entry(index).or_insert_with(|| Pending {
            merged: Box::new(Window::empty(steps)),
            parts: 0,
        });
        let merged = &mut pending.merged;
        merged.end = merged.end.max(part.end);
        merged.handed_over = merged.handed_over.max(part.handed_over);
        merged.add(&part);
        pending.parts += 1;
        part.reset();
        // A worker with enough of them, or an ended one, needs none.
        let _not_needed = self.emptied[worker].try_send(part);
        self.emit_windows(false);
    }

    /// Emits the complete windows; at the end (`all`) also those that a stop left partial.
    fn emit_windows(&mut self, all: bool) {
        while let Some(entry) = self.windows.first_entry() {
            let whole = entry.get().parts == self.emptied.len();
            let next = whole && *entry.key() == self.next_window;
            if !next && !all {
                return;
            }
            self.next_window = entry.key() + 1;
            let mut window = entry.remove().merged;
            window.start = Duration::from_nanos(self.last_end);
            window.end = window.end.max(window.start);
            self.last_end = window.end.as_nanos() as Nanos;
            self.count(&window);
            self.emit(DriverEvent::Window(window));
        }
    }

    fn count(&mut self, window: &Window) {
        let sum = &mut self.summary;
        let counts = &window.counts;
        sum.cycles += counts.cycles;
        sum.overruns += counts.overruns;
        sum.arrived += counts.arrived;
        sum.dropped += counts.dropped;
        sum.connects += counts.connects;
        sum.http2_connects += counts.http2_connects;
        sum.stale_retries += counts.stale_retries;
        for (index, step) in window.steps.iter().enumerate() {
            if index < self.outline.session.len() {
                sum.transactions += step.transactions();
                sum.errors += step.failed();
                sum.skipped += step.counts.skipped;
            } else {
                sum.probe_transactions += step.transactions();
                sum.probe_errors += step.failed();
            }
        }
    }
}

impl Setup {
    fn sum(&self) -> SetupCounts {
        self.counts
            .iter()
            .fold(SetupCounts::default(), |a, b| SetupCounts {
                users_done: a.users_done + b.users_done,
                transactions: a.transactions + b.transactions,
                errors: a.errors + b.errors,
                unanswered: a.unanswered + b.unanswered,
                skipped: a.skipped + b.skipped,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    use lab_client::ErrorClass;

    use lab_recorder::report::queue;

    fn part(value: u64) -> Box<Window> {
        let mut window = Window::empty(1);
        window.counts.cycles = 1;
        window.steps[0].times.ok.record(value).unwrap();
        window.steps[0].counts.ok = 1;
        window.steps[0].counts.errors[ErrorClass::Check] = 2;
        Box::new(window)
    }

    /// Returns the merged windows of these (worker, window) reports, as (start, end, counts).
    fn merged(order: &[(usize, u64)]) -> (Vec<(u128, u128, u64, u64)>, DriverSummary) {
        let outline = Outline {
            session: vec!["Get".to_owned()],
            ..Outline::default()
        };
        let (queue, reports) = queue(64);
        let (events, told) = sync_channel(64);
        let (emptied, returned): (Vec<_>, Vec<_>) = (0..2).map(|_| sync_channel(64)).unzip();
        let control = Arc::new(Control::new());
        let merger = Merger::new(Arc::new(outline), Clock::start(), control, events, emptied);
        for &(worker, index) in order {
            let end = (index + 1) * 1_000_000_000;
            let value = 100 * (index + 1) + worker as u64;
            let mut window = part(value);
            window.end = Duration::from_nanos(end);
            window.handed_over = Duration::from_nanos(end + 5);
            queue
                .send((worker, Report::Window { index, window }))
                .unwrap();
        }
        for worker in 0..2 {
            queue.send((worker, Report::Ended { cut: true })).unwrap();
        }
        let summary = merger.run(&reports);
        let back: Vec<_> = returned.iter().flat_map(|r| r.try_iter()).collect();
        assert_eq!(back.len(), order.len());
        assert!(
            back.iter()
                .all(|w| w.counts.cycles == 0 && w.steps[0].times.ok.is_empty())
        );
        let windows = told.try_iter().filter_map(|event| match event {
            DriverEvent::Window(w) => {
                let step = &w.steps[0];
                let (start, end) = (w.start.as_secs(), w.end.as_secs());
                Some((
                    start.into(),
                    end.into(),
                    step.times.ok.max(),
                    step.failed() + w.counts.cycles,
                ))
            }
            _ => None,
        });
        (windows.collect(), summary)
    }

    #[test]
    fn workers_may_report_in_any_order() {
        let expected = merged(&[(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(expected.0, [(0, 1, 101, 6), (1, 2, 201, 6), (2, 3, 301, 6)]);
        assert_eq!((expected.1.transactions, expected.1.errors), (6, 12));
        assert_eq!(
            expected,
            merged(&[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)])
        );
        assert_eq!(
            expected,
            merged(&[(1, 0), (1, 1), (0, 0), (1, 2), (0, 1), (0, 2)])
        );
    }

    #[test]
    fn what_a_lost_worker_left_is_told_at_the_end() {
        let (windows, _) = merged(&[(0, 0), (1, 0), (0, 1), (0, 2)]);
        assert_eq!(windows, [(0, 1, 101, 6), (1, 2, 200, 3), (2, 3, 300, 3)]);
    }
}
