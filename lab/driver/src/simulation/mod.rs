//! Drives in simulated time: the engine as it is – workers, users, timers, recorder, merger – with a
//! clock that stands still while anything can be done, and then jumps to the next alarm. So the rules
//! of *when* are tested to the nanosecond, on any machine, as fast as it can.
//!
//! The server is a function that says how long each answer takes. It knows no protocol and no socket.

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

use crate::client::Client;
use crate::clock::Clock;
use crate::control::Control;
use crate::crew::hire;
use crate::crowd::crowds;
use crate::drive::Drive;
use crate::error::DriverError;
use crate::event::{DriveSummary, DriverEvent, Window};
use crate::merger::Merger;
use crate::mix::Mix;
use crate::outline::Outline;
use crate::report::{Outbox, Report, queue};
use crate::timers::{Timer, Timers};
use crate::worker::Worker;

pub(crate) use drive::{drive, ms, step, workload};
use time::{NEVER, hold_up};

/// More reports or events than any test makes without time passing.
const QUEUE: usize = 1 << 14;

/// A request as the server gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// Since the simulation began; the trial's 0 where there is no setup.
    pub(crate) at: Duration,
    pub(crate) user: u32,
    pub(crate) request: RequestId,
}

/// What becomes of a request.
pub(crate) enum Answer {
    /// It is answered so much later.
    After(Duration),
    /// It is answered so much later, with values for variables of the user.
    Gives(Vec<(Slot, String)>, Duration),
    /// It fails so much later.
    Fails(ErrorClass, Duration),
    /// It is answered with this unexpected status so much later.
    Status(u16, Duration),
    /// Its list is empty: it isn't sent.
    Skipped,
    /// Nothing comes.
    Never,
}

/// A test's server. Not a type parameter: the whole engine would be compiled once more for each test.
type Server = Box<dyn FnMut(Received) -> Answer>;

/// Speaks with a server that is a function.
#[derive(Clone)]
struct Simulated {
    clock: Clock,
    server: Rc<RefCell<Server>>,
    sent: Rc<RefCell<Vec<Received>>>,
    forgotten: Rc<RefCell<Vec<RequestId>>>,
    /// Of the requests of its population; empty where none has more than a literal.
    targets: Rc<[Template]>,
    rendered: Rc<RefCell<Vec<String>>>,
}

impl Simulated {
    /// For users of a population.
    fn of(&self, drive: &Drive) -> Self {
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
            Answer::Status(told, takes) => {
                status = Some(told);
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

/// What a simulated drive told, and what its server was asked.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) windows: Vec<Window>,
    /// Answered, failed, and skipped in setup.
    pub(crate) setup: Option<(u64, u64, u64)>,
    /// Users done, answered, failed, and those of them without a response, at each report of the setup.
    pub(crate) progress: Vec<(u32, u64, u64, u64)>,
    pub(crate) summary: DriveSummary,
    /// In the order of their sends.
    pub(crate) sent: Vec<Received>,
    /// The requests whose captures were forgotten.
    pub(crate) forgotten: Vec<RequestId>,
    /// Their targets in the order of their sends, where any is more than a literal.
    pub(crate) rendered: Vec<String>,
}

impl Told {
    fn hear(&mut self, event: DriverEvent, control: &Control, clock: Clock) {
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

    /// One histogram of a step, over all windows.
    pub(crate) fn sum(&self, step: usize, of: fn(&StepWindow) -> &Histogram<u64>) -> Hist {
        let mut sum = Hist::default();
        for window in &self.windows {
            sum.add(of(&window.steps[step])).unwrap();
        }
        sum
    }

    /// Response times of a step's transactions.
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

    /// When each request of one user went out.
    pub(crate) fn sends_of(&self, user: u32) -> Vec<Duration> {
        let its = self.sent.iter().filter(|asked| asked.user == user);
        its.map(|asked| asked.at).collect()
    }

    /// The ages of a step's requests without a response.
    pub(crate) fn unanswered(&self, step: usize) -> &Hist {
        &self.last().steps[step].times.unanswered
    }

    pub(crate) fn last(&self) -> &Window {
        self.windows.last().unwrap()
    }
}

/// The histogram of these times.
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

/// Makes the client of a worker, by its number; unlike [`Make`](crate::crew::Make) it stays on this thread.
trait Makes<C>: Fn(&Arc<Drive>, usize, &Timers) -> Result<C, DriverError> + Clone + 'static {}

impl<C, F> Makes<C> for F where
    F: Fn(&Arc<Drive>, usize, &Timers) -> Result<C, DriverError> + Clone + 'static
{
}

/// A worker under way, on this thread.
struct Running {
    /// True when cut at the trial's end.
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
            let make = |drive: &Arc<Drive>, timers: &Timers| make(drive, number, timers);
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

    /// Does what the worker can do now. False when there was nothing.
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

/// Ends the simulation also where a test fails.
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

/// Drives to the end of the hold.
pub(crate) fn simulate(
    mix: impl Into<Mix>,
    server: impl FnMut(Received) -> Answer + 'static,
) -> Told {
    play(&mix.into(), Box::new(server))
}

fn play(mix: &Mix, server: Server) -> Told {
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
        move |drive: &Arc<Drive>, _: usize, _: &Timers| Ok(client.of(drive))
    };
    let mut story = live(mix, clock, make);
    (story.sent, story.forgotten) = (client.sent.take(), client.forgotten.take());
    story.rendered = client.rendered.take();
    story
}

/// Lets the workers live through a drive by these clients.
fn live<C: Client>(mix: &Mix, clock: Clock, make: impl Makes<C>) -> Told {
    let (queue, reports) = queue(QUEUE);
    let (events, told) = sync_channel(QUEUE);
    let outline = Arc::new(Outline::of(mix));
    let control = Arc::new(Control::new());
    let crowds = crowds(mix);
    let hired =
        (0..mix.first().workers()).map(|number| hire(number, &crowds, clock, &control, &queue));
    let (workers, emptied): (Vec<Worker>, Vec<_>) = hired.unzip();
    let workers = workers.into_iter();
    let mut workers: Vec<Running> = workers.map(|one| Running::new(one, make.clone())).collect();
    let mut merger = Merger::new(outline, clock, Arc::clone(&control), events, emptied);
    let mut story = Told::default();
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
        told.try_iter()
            .for_each(|event| story.hear(event, &control, clock));
        if idle {
            time::jump();
        }
    }
    story.summary = merger.end();
    told.try_iter()
        .for_each(|event| story.hear(event, &control, clock));
    story
}
