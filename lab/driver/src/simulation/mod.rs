//! Loads in simulated time: the engine as it is – workers, users, timers, recorder, merger – with a clock that stands
//! still while anything can be done, and then jumps to the next alarm. This tests the rules of *when* to the
//! nanosecond, on any machine, at full speed.
//!
//! The server is a function that returns the duration of each response. It knows no protocol and no socket.

mod arrivals;
mod closed;
mod control;
mod drive;
mod ends;
mod lateness;
mod memory;
mod mix;
mod parallel;
mod renewal;
mod sequence;
mod shared;
mod stages;
pub(crate) mod time;
mod timeline;
mod tokens;
mod transactions;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_client::time::nanos;
use lab_client::{ClientCounts, ErrorClass, Exchange, FailedRequest, Phases, RequestId, Sizes};
use lab_counts::{Hist, StepWindow};
use lab_workload::{Slot, Template, UserScope};
use tokio::task::LocalSet;

use crate::assignment::Assignment;
use crate::client::Client;
use crate::clock::Clock;
use crate::control::Control;
use crate::crew::hire;
use crate::error::DriverError;
use crate::merger::Merger;
use crate::mix::Mix;
use crate::outline::Outline;
use crate::population::populations;
use crate::scripted::Programs;
use crate::timers::{Timer, Timers};
use crate::worker::Worker;
use lab_recorder::event::{DriverEvent, DriverSummary, Window};
use lab_recorder::report::{Outbox, Report, queue};

pub(crate) use drive::{drive, ms, step, workload};
use time::{NEVER, hold_up};

/// More reports or events than any test makes without time passing.
const QUEUE: usize = 1 << 14;

/// A request as the server receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// The time since the simulation began; the trial's 0 if there is no setup.
    pub(crate) at: Duration,
    pub(crate) user: u32,
    pub(crate) request: RequestId,
}

/// The outcome of a request.
pub(crate) enum Answer {
    /// A response after this time.
    After(Duration),
    /// A response after this time, with values for variables of the user.
    Gives(Vec<(Slot, String)>, Duration),
    /// A failure after this time.
    Fails(ErrorClass, Duration),
    /// A response with this unexpected status after this time.
    Status(u16, Duration),
    /// Its list is empty: it isn't sent.
    Skipped,
    /// No response.
    Never,
}

/// A test's server. Not a type parameter: the whole engine would be compiled once more for each test.
type Server = Box<dyn FnMut(Received) -> Answer>;

/// A client of a server that is a function.
#[derive(Clone)]
struct Simulated {
    clock: Clock,
    server: Rc<RefCell<Server>>,
    sent: Rc<RefCell<Vec<Received>>>,
    forgotten: Rc<RefCell<Vec<RequestId>>>,
    /// For the requests of its population; empty if all are literals.
    targets: Rc<[Template]>,
    rendered: Rc<RefCell<Vec<String>>>,
}

impl Simulated {
    /// Returns the client for users of a population.
    fn of(&self, drive: &Assignment) -> Self {
        let targets = drive.workload.requests();
        let targets: Rc<[Template]> = targets.map(|request| request.target.clone()).collect();
        Self {
            targets: match targets.iter().all(Template::is_literal) {
                true => Rc::default(),
                false => targets,
            },
            ..self.clone()
        }
    }

    fn render(&self, request: RequestId, scope: &mut UserScope) {
        if let Some(target) = self.targets.get(request as usize) {
            let mut text = String::new();
            target.render(scope, &mut text).unwrap();
            self.rendered.borrow_mut().push(text);
        }
    }
}

impl lab_client::Client for Simulated {
    type Time = Timers;
    type Session = ();

    fn session(&self) {}

    fn sibling(&self, (): &()) {}

    async fn exchange(
        &self,
        (): &mut (),
        request: RequestId,
        scope: &mut UserScope,
        deadline: &Timer,
    ) -> Exchange {
        let sent = self.clock.nanos();
        let asked = Received {
            at: Duration::from_nanos(sent),
            user: scope.index(),
            request,
        };
        let answer = (self.server.borrow_mut())(asked);
        let mut status = None;
        let (takes, result) = match answer {
            Answer::After(takes) => (nanos(takes), Ok(())),
            Answer::Gives(values, takes) => {
                for (slot, text) in &values {
                    scope.set_text(*slot, text);
                }
                (nanos(takes), Ok(()))
            }
            Answer::Fails(class, takes) => (nanos(takes), Err(class)),
            Answer::Status(observed, takes) => {
                status = Some(observed);
                (nanos(takes), Err(ErrorClass::Status))
            }
            Answer::Skipped => return Exchange::Skipped,
            Answer::Never => (NEVER, Ok(())),
        };
        self.sent.borrow_mut().push(asked);
        self.render(request, scope);
        deadline.sleep_until(sent.saturating_add(takes)).await;
        Exchange::Done {
            sent,
            ended: self.clock.nanos(),
            sizes: Sizes::default(),
            phases: Phases::default(),
            result: result.map_err(|class| FailedRequest {
                status,
                ..FailedRequest::new(class, "")
            }),
            events: None,
            redirected: false,
            trace: None,
        }
    }

    fn forget(&self, request: RequestId, _: &mut UserScope) {
        self.forgotten.borrow_mut().push(request);
    }

    fn take_counts(&self) -> ClientCounts {
        ClientCounts::default()
    }
}

/// The events of a simulated load, and the requests to its server.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) windows: Vec<Window>,
    /// Succeeded, failed, and skipped in setup.
    pub(crate) setup: Option<(u64, u64, u64)>,
    /// Users done, succeeded, failed, and failed without a response, at each report of the setup.
    pub(crate) progress: Vec<(u32, u64, u64, u64)>,
    pub(crate) summary: DriverSummary,
    /// In the order of their sends.
    pub(crate) sent: Vec<Received>,
    /// The requests whose captures were cleared.
    pub(crate) forgotten: Vec<RequestId>,
    /// Their targets in the order of their sends, if any is more than a literal.
    pub(crate) rendered: Vec<String>,
}

impl Observed {
    fn receive(&mut self, event: DriverEvent, control: &Control, clock: Clock) {
        match event {
            DriverEvent::SetupDone {
                transactions,
                errors,
                skipped,
                ..
            } => {
                self.setup = Some((transactions, errors, skipped));
                control.begin(clock.nanos());
            }
            DriverEvent::SetupProgress {
                users_done,
                transactions,
                errors,
                unanswered,
                ..
            } => {
                let counts = (users_done, transactions, errors, unanswered);
                self.progress.push(counts);
            }
            DriverEvent::Window(window) => self.windows.push(*window),
            _ => {}
        }
    }

    /// Returns the sum of a step's histogram over all windows.
    pub(crate) fn sum(&self, step: usize, of: fn(&StepWindow) -> &Histogram<u64>) -> Hist {
        let mut sum = Hist::default();
        for window in &self.windows {
            sum.add(of(&window.steps[step])).unwrap();
        }
        sum
    }

    /// Returns the response times of a step's transactions.
    pub(crate) fn times(&self, step: usize) -> Hist {
        self.sum(step, |step| &step.times.ok)
    }

    pub(crate) fn lateness(&self) -> Hist {
        let mut sum = Hist::default();
        for window in &self.windows {
            sum.add(&window.lateness).unwrap();
        }
        sum
    }

    pub(crate) fn count(&self, of: fn(&StepWindow) -> u64) -> u64 {
        let steps = self.windows.iter().flat_map(|window| &window.steps);
        steps.map(of).sum()
    }

    /// Returns the send times of one user.
    pub(crate) fn sends_of(&self, user: u32) -> Vec<Duration> {
        let its = self.sent.iter().filter(|asked| asked.user == user);
        its.map(|asked| asked.at).collect()
    }

    /// Returns the ages of a step's requests without a response.
    pub(crate) fn unanswered(&self, step: usize) -> &Hist {
        &self.last().steps[step].times.unanswered
    }

    pub(crate) fn last(&self) -> &Window {
        self.windows.last().unwrap()
    }
}

/// Returns the histogram of these times.
pub(crate) fn histogram(times: impl IntoIterator<Item = Duration>) -> Hist {
    let mut histogram = Hist::default();
    for time in times {
        let us = (nanos(time) + 500) / 1000;
        histogram.record(us.max(1)).unwrap();
    }
    histogram
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Builds the client of a worker, by its number; unlike [`Make`](crate::crew::Make) it stays on this thread.
trait Makes<C>:
    Fn(&Arc<Assignment>, usize, &Timers) -> Result<C, DriverError> + Clone + 'static
{
}

impl<C, F> Makes<C> for F where
    F: Fn(&Arc<Assignment>, usize, &Timers) -> Result<C, DriverError> + Clone + 'static
{
}

/// A running worker, on this thread.
struct Running {
    /// True if it ended at the trial's end.
    life: Pin<Box<dyn Future<Output = bool>>>,
    woken: Arc<Flag>,
    outbox: Outbox,
    ended: bool,
}

impl Running {
    fn new<C: Client>(worker: Worker, make: impl Makes<C>) -> Self {
        let (outbox, number) = (worker.outbox.clone(), worker.number);
        let life = async move {
            let (ready, _started) = sync_channel(1);
            let make = |drive: &Arc<Assignment>, timers: &Timers| make(drive, number, timers);
            let work = worker.work(make, &ready);
            LocalSet::new().run_until(work).await
        };
        Self {
            life: Box::pin(life),
            woken: Arc::new(Flag(AtomicBool::new(true))),
            outbox,
            ended: false,
        }
    }

    /// Runs the worker as far as possible now. Returns false if there was nothing to do.
    fn go_on(&mut self) -> bool {
        if self.ended || !self.woken.0.swap(false, Ordering::SeqCst) {
            return false;
        }
        let waker = Waker::from(Arc::clone(&self.woken));
        if let Poll::Ready(cut) = self.life.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.ended = true;
            self.outbox.send(Report::Ended { cut });
        }
        true
    }
}

/// Ends the simulation also if a test fails.
struct Over;

impl Drop for Over {
    fn drop(&mut self) {
        time::end();
    }
}

fn begin() -> Over {
    time::begin(Clock::start().instant0());
    Over
}

/// Runs a load to the end of the hold.
pub(crate) fn simulate(
    mix: impl Into<Mix>,
    server: impl FnMut(Received) -> Answer + 'static,
) -> Observed {
    play(&mix.into(), Box::new(server))
}

fn play(mix: &Mix, server: Server) -> Observed {
    let _over = begin();
    let clock = Clock::start();
    let client = Simulated {
        clock,
        server: Rc::new(RefCell::new(server)),
        sent: Rc::default(),
        forgotten: Rc::default(),
        targets: Rc::default(),
        rendered: Rc::default(),
    };
    let make = {
        let client = client.clone();
        move |drive: &Arc<Assignment>, _: usize, _: &Timers| Ok(client.of(drive))
    };
    let mut story = live(mix, clock, make);
    (story.sent, story.forgotten) = (client.sent.take(), client.forgotten.take());
    story.rendered = client.rendered.take();
    story
}

/// Runs the workers of a load with these clients.
fn live<C: Client>(mix: &Mix, clock: Clock, make: impl Makes<C>) -> Observed {
    let (queue, reports) = queue(QUEUE);
    let (events, observed) = sync_channel(QUEUE);
    let outline = Arc::new(Outline::of(mix));
    let control = Arc::new(Control::new());
    let populations = populations(mix);
    let hired = (0..mix.first().workers()).map(|number| {
        hire(
            number,
            (&populations, &Programs::default()),
            clock,
            &control,
            &queue,
        )
    });
    let (workers, emptied): (Vec<Worker>, Vec<_>) = hired.unzip();
    let workers = workers.into_iter();
    let mut workers: Vec<Running> = workers.map(|one| Running::new(one, make.clone())).collect();
    let mut merger = Merger::new(outline, clock, Arc::clone(&control), events, emptied);
    let mut story = Observed::default();
    merger.begin();
    while !merger.all_ended() {
        let mut idle = true;
        for worker in &mut workers {
            idle &= !worker.go_on();
        }
        for (worker, report) in reports.try_iter() {
            merger.take(worker, report);
            idle = false;
        }
        observed
            .try_iter()
            .for_each(|event| story.receive(event, &control, clock));
        if idle {
            time::jump();
        }
    }
    story.summary = merger.end();
    observed
        .try_iter()
        .for_each(|event| story.receive(event, &control, clock));
    story
}
