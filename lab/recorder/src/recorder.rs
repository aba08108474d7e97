//! Records a worker's results: its own histograms and counts, no lock, no allocation per request.
//!
//! A window is filled in place and handed over as a whole, and an emptied one is returned. Time is passed in as an
//! argument.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use lab_counts::{Hist, LONGEST, Outcome, TransactionSample};

use crate::event::{MAX_RECORDED, Slowest, Window};
use crate::examples::Examples;
use crate::report::{Example, Outbox, Report};
use crate::script::{ScriptNote, ScriptNotes};
use lab_client::ErrorClass;
use lab_client::time::{Nanos, nanos};
use lab_client::{ClientCounts, FailedRequest, Phases, Sizes};
use lab_counts::StepWindow;
use lab_workload::TraceContext;

/// The figures of one message and the response to it.
#[derive(Clone, Copy)]
pub struct Attempt {
    /// When the message ended.
    pub ended: Nanos,
    /// The delay of its send.
    pub late: Nanos,
    /// The size of the response's body.
    pub sizes: Sizes,
}

/// The figures of an ended request, its redirects and earlier attempts included.
pub struct Sample {
    /// Its last message.
    pub last: Attempt,
    /// Its response time.
    pub response: Nanos,
    /// Its service time, if it has a plan.
    pub service: Option<Nanos>,
    /// Sums over its messages.
    pub phases: Phases,
    /// The events, if the request receives events.
    pub events: Option<Events>,
    /// Numbers in the response, in thousandths, each with the index of its measure.
    pub measured: Vec<(usize, u64)>,
    /// The trace that the request began.
    pub trace: Option<TraceContext>,
}

/// Received events.
pub struct Events {
    /// The time to the first event, from the start of the response time.
    pub first: Option<Nanos>,
    /// The time between each further event and the previous one.
    pub gaps: Vec<Nanos>,
}

/// Records the actions of a worker's users, window after window.
pub struct Recorder {
    current: Box<Window>,
    window: Nanos,
    /// The trial's 0 on the worker's clock, like all times here.
    zero: Nanos,
    /// End of the current window.
    window_end: Nanos,
    /// End of the trial: later ends don't count.
    end: Nanos,
    index: u64,
    users: u32,
    /// By population.
    waiting: Vec<u64>,
    /// Requests in progress.
    under_way: u64,
    /// Requests that ended after the trial's end, before a late worker noticed it: step and age.
    too_late: Vec<(usize, Nanos)>,
    /// Transactions that ended then.
    late_transactions: Vec<TransactionSample>,
    examples: Examples,
    script: ScriptNotes,
    outbox: Outbox,
    emptied: Receiver<Box<Window>>,
}

impl Recorder {
    /// Returns a recorder for windows of these numbers of populations and steps. It counts nothing before
    /// [`Recorder::begin`].
    pub fn new(
        (populations, steps): (usize, usize),
        outbox: Outbox,
        emptied: Receiver<Box<Window>>,
    ) -> Self {
        Self {
            current: Box::new(Window::empty(steps)),
            window: Nanos::MAX,
            zero: 0,
            window_end: 0,
            end: 0,
            index: 0,
            users: 0,
            waiting: vec![0; populations],
            under_way: 0,
            too_late: Vec::new(),
            late_transactions: Vec::new(),
            examples: Examples::new(steps),
            script: ScriptNotes::default(),
            outbox,
            emptied,
        }
    }

    /// Sets the trial's 0 to `zero`, its length, and the length of a window.
    pub fn begin(&mut self, zero: Nanos, window: Duration, length: Duration) {
        self.zero = zero;
        self.window = nanos(window).max(1);
        self.end = zero.saturating_add(nanos(length));
        self.window_end = zero.saturating_add(self.window).min(self.end);
    }

    /// Returns the end of the trial, or `now` if that is earlier.
    pub fn cut(&self, now: Nanos) -> Nanos {
        now.min(self.end)
    }

    /// The end of the trial.
    pub fn end(&self) -> Nanos {
        self.end
    }

    /// Returns true if the trial has ended at `now`.
    pub fn over(&self, now: Nanos) -> bool {
        now >= self.end
    }

    /// End of the current window.
    pub fn window_end(&self) -> Nanos {
        self.window_end
    }

    /// Records the start of a user's session.
    pub fn user_started(&mut self) {
        self.users += 1;
    }

    /// Records the end of an arrived session.
    pub fn user_left(&mut self) {
        self.users -= 1;
    }

    /// Records an arrived session of a population, and the number without a connection.
    pub fn arrived(&mut self, now: Nanos, waiting: (usize, usize)) {
        if let Some(window) = self.at(now) {
            window.counts.arrived += 1;
            self.waiting(waiting);
        }
    }

    /// Records a dropped arrival; `step` is the first of its population, and `transaction` its own index among the
    /// transactions if it has one.
    pub fn record_dropped(&mut self, now: Nanos, step: usize, transaction: Option<usize>) {
        if let Some(window) = self.at(now) {
            window.counts.dropped += 1;
            window.steps[step].counts.turned_away += 1;
            if let Some(place) = transaction {
                window.transaction(place).counts.turned_away += 1;
            }
        }
    }

    /// Records the start of a request.
    pub fn request_started(&mut self) {
        self.under_way += 1;
    }

    /// Records that a request is no longer in progress.
    pub fn request_ended(&mut self) {
        self.under_way -= 1;
    }

    /// Records a user's pause after consecutive failures without a response.
    pub fn paused(&mut self, now: Nanos, step: usize, lasts: Nanos) {
        if let Some(window) = self.at(now) {
            let counts = &mut window.steps[step].counts;
            counts.pauses += 1;
            counts.pause_us += to_micros(lasts);
        }
    }

    /// Records the sessions that still wait, after one received its connection.
    pub fn waiting(&mut self, (population, waiting): (usize, usize)) {
        self.waiting[population] = waiting as u64;
    }

    /// Records that an input readable since `lag` is read now.
    pub fn loop_lag(&mut self, now: Nanos, lag: Nanos) {
        if let Some(window) = self.at(now) {
            record(&mut window.loop_lag, lag);
        }
    }

    /// Records the start of a cycle.
    pub fn cycle(&mut self, now: Nanos) {
        if let Some(window) = self.at(now) {
            window.counts.cycles += 1;
        }
    }

    /// Records the end of a session of a sequence in which all requests met their `expect`.
    pub fn session(&mut self, now: Nanos, took: Nanos) {
        if let Some(window) = self.at(now) {
            record(&mut window.sessions, took);
        }
    }

    /// Records the end of a transaction.
    pub fn transaction(&mut self, now: Nanos, mut sample: TransactionSample) {
        if self.over(now) {
            let late = now - self.end;
            if late < sample.elapsed {
                sample.elapsed -= late;
                sample.time = sample.time.saturating_sub(late);
                if sample.outcome == Outcome::Completed {
                    sample.outcome = Outcome::Unfinished;
                }
                self.late_transactions.push(sample);
            }
        } else if let Some(window) = self.at(now) {
            record_transaction(window, sample);
        }
    }

    /// Records a cycle that outlasted its pace.
    pub fn overrun(&mut self, now: Nanos) {
        if let Some(window) = self.at(now) {
            window.counts.overruns += 1;
        }
    }

    /// Records the end of a wait before `step`.
    pub fn waited(&mut self, now: Nanos, step: usize, lasted: Nanos) {
        if let Some(window) = self.at(now) {
            let counts = &mut window.steps[step].counts;
            counts.waits += 1;
            counts.wait_sum_us += to_micros(lasted);
        }
    }

    /// Records a skipped step.
    pub fn skipped(&mut self, now: Nanos, step: usize) {
        if let Some(window) = self.at(now) {
            window.steps[step].counts.skipped += 1;
        }
    }

    /// Records that a step took an entry of a queue, and its wait.
    pub fn record_take(&mut self, now: Nanos, step: usize, waited: Nanos) {
        if let Some(window) = self.at(now) {
            window.steps[step].counts.takes += 1;
            record(&mut window.steps[step].times.queue_wait, waited);
        }
    }

    /// Records a step skipped because no entry was available in time.
    pub fn missed(&mut self, now: Nanos, step: usize) {
        if let Some(window) = self.at(now) {
            let counts = &mut window.steps[step].counts;
            counts.skipped += 1;
            counts.take_missed += 1;
        }
    }

    /// Records that a step put an entry into a queue, or that the queue was full.
    pub fn put(&mut self, now: Nanos, step: usize, kept: bool) {
        if let Some(window) = self.at(now) {
            let counts = &mut window.steps[step].counts;
            counts.puts += u64::from(kept);
            counts.put_dropped += u64::from(!kept);
        }
    }

    /// Records that a session that begins with `step` leased a row of a pool, and its wait.
    pub fn leased(&mut self, now: Nanos, step: usize, waited: Nanos) {
        if let Some(window) = self.at(now) {
            window.steps[step].counts.leases += 1;
            record(&mut window.steps[step].times.lease_wait, waited);
        }
    }

    /// Records requests of a step that were not sent because an earlier one failed.
    pub fn record_unreached(&mut self, now: Nanos, step: usize, requests: u32) {
        if let Some(window) = self.at(now) {
            window.steps[step].counts.not_reached += u64::from(requests);
        }
    }

    /// Records that the loop that begins with `step` ended by its bound.
    pub fn cut_off(&mut self, now: Nanos, step: usize) {
        if let Some(window) = self.at(now) {
            window.steps[step].counts.cut_off += 1;
        }
    }

    /// Records a redirect response that is followed.
    pub fn hop(&mut self, step: usize, attempt: Attempt) {
        if let Some(window) = self.attempt(step, attempt) {
            window.steps[step].counts.hops += 1;
        }
    }

    /// Records a failed message of a request that is sent again.
    pub fn retried(
        &mut self,
        step: usize,
        attempt: Attempt,
        failure: FailedRequest,
        trace: Option<TraceContext>,
    ) {
        let class = failure.class;
        if let Some(window) = self.attempt(step, attempt) {
            window.steps[step].counts.retried[class] += 1;
            self.example(attempt.ended, step, failure, trace);
        }
    }

    /// Records the wait before a request was sent again.
    pub fn waited_to_retry(&mut self, now: Nanos, step: usize, waited: Nanos) {
        if let Some(window) = self.at(now) {
            window.steps[step].counts.retry_wait_us += to_micros(waited);
        }
    }

    /// Records the figures common to all messages; `None` if it ended after the trial.
    fn attempt(&mut self, step: usize, attempt: Attempt) -> Option<&mut Window> {
        let window = self.at(attempt.ended)?;
        record(&mut window.lateness, attempt.late);
        let Sizes { wire, plain, .. } = attempt.sizes;
        window.steps[step].counts.add_body(wire, plain);
        Some(window)
    }

    /// Records the end of a request.
    pub fn request(&mut self, step: usize, sample: Sample, result: Result<(), FailedRequest>) {
        let Sample {
            last,
            response,
            service,
            phases,
            events,
            measured,
            trace,
        } = sample;
        let Some(window) = self.attempt(step, last) else {
            return self.too_late(step, last.ended.saturating_sub(response));
        };
        if let (Some(trace), Ok(())) = (trace, &result) {
            let slow = Slowest {
                step,
                response: Duration::from_nanos(response),
                trace,
            };
            window.slowest = Slowest::of(window.slowest, Some(slow));
        }
        let StepWindow { counts, times } = &mut window.steps[step];
        if let Some(Events { first, gaps }) = events {
            let [firsts, between] = &mut times.events;
            first.into_iter().for_each(|took| record(firsts, took));
            gaps.into_iter().for_each(|took| record(between, took));
        }
        match result {
            Ok(()) => {
                counts.ok += 1;
                record(&mut times.ok, response);
                for (place, number) in measured {
                    let kept = times.measure(place).record(number);
                    kept.expect("growing histograms hold any number");
                }
                if let Some(service) = service {
                    record(&mut times.service, service);
                }
                for (histogram, took) in times.phases.iter_mut().zip(phases.0) {
                    if let Some(took) = took {
                        record(histogram, took);
                    }
                }
            }
            Err(failure) => {
                counts.errors[failure.class] += 1;
                record(&mut times.error, response);
                self.example(last.ended, step, failure, trace);
            }
        }
    }

    /// Records a response after the end, before a late worker noticed it, as no response.
    fn too_late(&mut self, step: usize, meant: Nanos) {
        if !self.over(meant) {
            self.too_late.push((step, self.end - meant));
        }
    }

    /// Records a request that could not be rendered.
    pub fn unmade(&mut self, now: Nanos, step: usize, detail: Box<str>) {
        let Some(window) = self.at(now) else { return };
        let StepWindow { counts, times } = &mut window.steps[step];
        record(&mut times.error, 0);
        counts.errors[ErrorClass::Check] += 1;
        self.example(
            now,
            step,
            FailedRequest::new(ErrorClass::Check, detail),
            None,
        );
    }

    /// Records a number of a step, in thousandths, by the index of its measure.
    pub fn number(&mut self, now: Nanos, step: usize, (place, number): (usize, u64)) {
        if let Some(window) = self.at(now) {
            let kept = window.steps[step].times.measure(place).record(number);
            kept.expect("growing histograms hold any number");
        }
    }

    /// Records an uncaught error of a script.
    pub fn threw(&mut self, now: Nanos, step: usize, detail: Box<str>) {
        let Some(window) = self.at(now) else { return };
        let StepWindow { counts, times } = &mut window.steps[step];
        record(&mut times.error, 0);
        counts.errors[ErrorClass::Script] += 1;
        let failure = FailedRequest::new(ErrorClass::Script, detail);
        self.example(now, step, failure, None);
    }

    /// Reports that a script ends the test.
    pub fn test_aborted(&mut self, reason: &str) {
        let note = self.script.aborted(reason);
        self.note(note);
    }

    /// Reports that a script fails the test.
    pub fn test_failed(&mut self, reason: &str) {
        let note = self.script.failed(reason);
        self.note(note);
    }

    /// Counts a value of a check or a metric that is in no figure of it.
    pub fn not_counted(&mut self, name: &str, is_measure: bool) {
        self.script.not_counted(name, is_measure);
    }

    fn note(&self, note: Option<ScriptNote>) {
        note.into_iter()
            .for_each(|note| self.outbox.send(Report::Script(note)));
    }

    /// Reports an example from setup, as long as half of them are left for the trial.
    pub fn setup_example(
        &mut self,
        step: usize,
        failure: FailedRequest,
        trace: Option<TraceContext>,
    ) {
        if self.examples.take_of_setup() {
            self.report_example((0, step, true), failure, trace);
        }
    }

    fn example(
        &mut self,
        now: Nanos,
        step: usize,
        failure: FailedRequest,
        trace: Option<TraceContext>,
    ) {
        if self.examples.take(step, failure.class) {
            let t = now.saturating_sub(self.zero);
            self.report_example((t, step, false), failure, trace);
        }
    }

    fn report_example(
        &self,
        (t, step, setup): (Nanos, usize, bool),
        failure: FailedRequest,
        trace: Option<TraceContext>,
    ) {
        let FailedRequest { class, detail, .. } = failure;
        self.outbox.send(Report::Example(Example {
            t,
            step,
            setup,
            class,
            detail,
            trace,
        }));
    }

    /// Hands over all windows that end by `now`; `counts` are the client's since the last call.
    pub fn roll(&mut self, now: Nanos, counts: ClientCounts) {
        self.current.counts.connects += counts.connects;
        self.current.counts.http2_connects += counts.http2_connects;
        self.current.counts.stale_retries += counts.stale_retries;
        self.current.counts.evicted_cookies += counts.evicted_cookies;
        while self.window_end <= now && self.window_end < self.end {
            self.publish_window(self.window_end, now);
        }
    }

    /// Hands over everything, the last window ending at `now` or the end of the trial. `unanswered` has the step and
    /// the age of each request without a response; `unfinished` has the transactions in progress.
    pub fn finish(
        &mut self,
        now: Nanos,
        counts: ClientCounts,
        (unanswered, unfinished): (Vec<(usize, Nanos)>, Vec<TransactionSample>),
    ) {
        self.roll(now, counts);
        for note in self.script.take_not_counted() {
            self.outbox.send(Report::Script(note));
        }
        let too_late = std::mem::take(&mut self.too_late);
        for (step, age) in unanswered.into_iter().chain(too_late) {
            let StepWindow { counts, times } = &mut self.current.steps[step];
            counts.unanswered += 1;
            record(&mut times.unanswered, age);
        }
        let late = std::mem::take(&mut self.late_transactions);
        for sample in unfinished.into_iter().chain(late) {
            record_transaction(&mut self.current, sample);
        }
        self.publish_window(self.cut(now), now);
    }

    /// Returns the window that contains `now`; none after the end of the trial.
    fn at(&mut self, now: Nanos) -> Option<&mut Window> {
        if now >= self.window_end {
            if now >= self.end {
                return None;
            }
            self.roll(now, ClientCounts::default());
        }
        Some(&mut self.current)
    }

    fn publish_window(&mut self, end: Nanos, now: Nanos) {
        let steps = self.current.steps.len();
        let next = self
            .emptied
            .try_recv()
            .unwrap_or_else(|_| Box::new(Window::empty(steps)));
        let mut full = std::mem::replace(&mut self.current, next);
        full.counts.users = self.users;
        full.counts.waiting = self.waiting.iter().sum();
        full.counts.under_way = self.under_way;
        let index = self.index;
        self.index += 1;
        self.window_end = self.window_end.saturating_add(self.window).min(self.end);
        let since = |time: Nanos| Duration::from_nanos(time.saturating_sub(self.zero));
        (full.end, full.handed_over) = (since(end), since(now));
        self.outbox.send(Report::Window {
            index,
            window: full,
        });
    }
}

fn record_transaction(window: &mut Window, sample: TransactionSample) {
    let TransactionSample {
        place,
        outcome,
        time,
        elapsed,
    } = sample;
    let of = window.transaction(place);
    match outcome {
        Outcome::Completed => {
            of.counts.ok += 1;
            record_within(&mut of.time, time, LONGEST);
            record_within(&mut of.elapsed, elapsed, LONGEST);
        }
        Outcome::Skipped => of.counts.skipped += 1,
        Outcome::Failed(class) => of.counts.errors[class] += 1,
        Outcome::Unfinished => {
            of.counts.unanswered += 1;
            record_within(&mut of.unfinished_time, time, LONGEST);
            record_within(&mut of.unfinished_elapsed, elapsed, LONGEST);
        }
    }
}

/// Records nanoseconds as whole microseconds, 1 µs … 1 h.
#[inline]
fn record<const DIGITS: u8>(histogram: &mut Hist<DIGITS>, value: Nanos) {
    record_within(histogram, value, MAX_RECORDED);
}

fn record_within<const DIGITS: u8>(histogram: &mut Hist<DIGITS>, value: Nanos, limit: Duration) {
    let limit = limit.as_micros() as u64;
    let micros = to_micros(value).clamp(1, limit);
    histogram
        .record(micros)
        .expect("growing histograms hold a day");
}

/// Rounds to the nearest, so that the mean of many short times isn't half a microsecond low.
fn to_micros(time: Nanos) -> u64 {
    (time + 500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    use crate::report::queue;

    const MS: Nanos = 1_000_000;

    fn sample(ended: Nanos) -> Sample {
        Sample {
            last: Attempt {
                ended,
                late: 0,
                sizes: Sizes::of(10),
            },
            response: 2 * MS,
            service: None,
            phases: Phases::default(),
            events: None,
            measured: Vec::new(),
            trace: None,
        }
    }

    /// Returns the number of transactions by window: (index, end in ms, count).
    fn windows(reports: &Receiver<(usize, Report)>) -> Vec<(u64, u64, u64)> {
        let counts = reports.try_iter().filter_map(|(_, report)| match report {
            Report::Window { index, window } => {
                let end_ms = window.end.as_millis() as u64;
                Some((index, end_ms, window.steps[0].transactions()))
            }
            _ => None,
        });
        counts.collect()
    }

    #[test]
    fn each_request_counts_in_the_window_of_its_end() {
        let (queue, reports) = queue(16);
        let (_give_back, emptied) = sync_channel(1);
        let mut recorder = Recorder::new((1, 1), Outbox { worker: 0, queue }, emptied);
        recorder.request(0, sample(5 * MS), Ok(()));
        let zero = 1000 * MS;
        recorder.begin(zero, Duration::from_millis(10), Duration::from_millis(35));
        for end in [1, 9, 10, 31, 34, 35, 99] {
            recorder.request(0, sample(zero + end * MS), Ok(()));
        }
        recorder.finish(zero + 99 * MS, ClientCounts::default(), Default::default());
        assert_eq!(
            windows(&reports),
            [(0, 10, 2), (1, 20, 1), (2, 30, 0), (3, 35, 2)]
        );
    }

    #[test]
    fn a_stop_closes_the_window_under_way() {
        let (queue, reports) = queue(16);
        let (_give_back, emptied) = sync_channel(1);
        let mut recorder = Recorder::new((1, 1), Outbox { worker: 0, queue }, emptied);
        recorder.begin(0, Duration::from_millis(10), Duration::from_millis(100));
        recorder.request(0, sample(12 * MS), Ok(()));
        recorder.finish(17 * MS, ClientCounts::default(), Default::default());
        assert_eq!(windows(&reports), [(0, 10, 0), (1, 17, 1)]);
    }

    #[test]
    fn values_outside_the_range_are_kept_at_its_ends() {
        let mut histogram = Hist::<3>::default();
        for value in [0, 400, Nanos::MAX / 2] {
            record(&mut histogram, value);
        }
        assert_eq!((histogram.min(), histogram.len()), (1, 3));
        assert!(histogram.equivalent(histogram.max(), 3_600_000_000));
    }
}
