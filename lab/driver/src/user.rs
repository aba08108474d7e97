//! One virtual user: its waits, its requests, and their records. It knows no protocol, not the flow of its session (see
//! [`crate::session`]), and not what starts one: see [`crate::load`].

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use lab_workload::timing::{SessionChoice, TimingStream};
use lab_workload::{Retry, TraceContext, UserScope, Visit, Wait, time_at_speed};
use tokio::sync::Notify;

use crate::assignment::Assignment;
use crate::client::Client;
use crate::clock::Clock;
use crate::parallel_sessions::ParallelSessions;
use crate::script::{Script, ScriptStep};
use crate::scripted::Playing;
use crate::sharing::Sharing;
use crate::timers::{Timer, Timers, settable};
use crate::tokens::SharedToken;
use lab_client::ErrorClass;
use lab_client::time::{Nanos, nanos};
use lab_client::{Exchange, FailedRequest, Phase, Phases, RequestId};
use lab_counts::Transactions;
use lab_queues::{Pool, SharedPool};
use lab_recorder::recorder::{Attempt, Events, Recorder, Sample};

/// The state that all users of one population share on a worker.
pub(crate) struct Shared<C: Client> {
    pub(crate) client: C,
    pub(crate) drive: Arc<Assignment>,
    pub(crate) script: Arc<Script>,
    /// The state that its users share with others.
    pub(crate) sharing: Sharing,
    /// The program that plays its sessions.
    pub(crate) playing: Option<Playing>,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    /// For all populations of the worker.
    pub(crate) recorder: Rc<RefCell<Recorder>>,
    /// The index of its first step among those of all populations.
    pub(crate) first_step: usize,
    /// The index of the probe, counted like its own steps.
    pub(crate) probe_step: usize,
    /// Its index among the populations.
    pub(crate) population: usize,
    pub(crate) failure_pause: Nanos,
    /// Whether a step is not repeated any further after a request of it timed out.
    pub(crate) timeout_ends_step: bool,
    /// The requests in progress by index of the user on its worker, then those of parallel requests.
    pub(crate) under_way: Box<[Cell<UnderWay>]>,
    /// The sessions of parallel requests.
    pub(crate) parallel_sessions: ParallelSessions<C>,
    /// Their transactions in progress.
    pub(crate) transactions: Transactions,
    /// The token that the users share, if the workload says `per: worker`.
    pub(crate) token: SharedToken,
    /// Whether sessions arrive: then service times are recorded apart from response times.
    pub(crate) open: bool,
    /// Assigns connections to arriving sessions; unused for other loads.
    pub(crate) pool: SharedPool,
    /// The worker's number in this program.
    pub(crate) worker: usize,
    /// The trial's 0, once it is known.
    pub(crate) zero: Cell<Nanos>,
    /// The end of the trial, once it runs: requests due then or later are not sent, since no plan has them.
    pub(crate) end: Cell<Nanos>,
    /// Notified when a task of the worker ends.
    pub(crate) ended: Rc<Notify>,
    /// In a sequence: the number of users still running, and of shared sessions not yet begun.
    pub(crate) left: Cell<(u32, u32)>,
}

/// A user's request in progress.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnderWay {
    /// The intended send time, from which its response time counts; 0 if there is none.
    meant: Nanos,
    /// Its step among those of all populations.
    step: usize,
}

/// A task's reference, held until the task ends. Its drop notifies [`Shared::ended`], after a panic as well.
pub(crate) struct Member<C: Client>(Rc<Shared<C>>);

impl<C: Client> Member<C> {
    pub(crate) fn of(shared: &Rc<Shared<C>>) -> Self {
        Self(Rc::clone(shared))
    }
}

impl<C: Client> Deref for Member<C> {
    type Target = Shared<C>;

    fn deref(&self) -> &Shared<C> {
        &self.0
    }
}

impl<C: Client> Drop for Member<C> {
    fn drop(&mut self) {
        self.0.ended.notify_one();
    }
}

impl<C: Client> Shared<C> {
    /// Returns at once if `due` is within the trial; otherwise never: the end of the trial drops the task.
    pub(crate) async fn within_trial(&self, due: Nanos) {
        if due >= self.end.get() {
            std::future::pending::<()>().await;
        }
    }

    /// Records the user's request of this step as in progress since its intended send time.
    pub(crate) fn set_under_way(&self, place: usize, step: usize, meant: Nanos) {
        let step = self.first_step + step;
        let meant = meant.max(1);
        if self.under_way[place]
            .replace(UnderWay { meant, step })
            .meant
            == 0
        {
            self.recorder.borrow_mut().request_started();
        }
    }

    /// Records that the user has no request in progress.
    pub(crate) fn clear_under_way(&self, place: usize) {
        if self.under_way[place].take().meant > 0 {
            self.recorder.borrow_mut().request_ended();
        }
    }

    /// Returns the nth visit of a user, from 0. Users return too rarely to store this.
    pub(crate) fn visit(&self, index: u32, number: u32) -> Option<Visit> {
        let Visit { from, until } = *self.drive.visits(index).get(number as usize)?;
        let zero = self.zero.get();
        Some(Visit {
            from: zero.saturating_add(from),
            until: zero.saturating_add(until),
        })
    }

    /// Returns the number of sessions that wait for a connection, for this worker's windows: the first worker reports
    /// it for the whole program.
    pub(crate) fn waiting(&self, pool: &Pool) -> usize {
        match self.worker {
            0 => pool.waiting(),
            _ => 0,
        }
    }

    /// Returns the step and the age of each request without a response at the end of the trial, and of the first
    /// request of each session that waits for a connection.
    pub(crate) fn unanswered(&self, cut: Nanos) -> Vec<(usize, Nanos)> {
        let sent = self.under_way.iter().map(Cell::get);
        let sent = sent.filter(|request| request.meant > 0);
        let pool = self.pool.lock();
        let arrived = pool.arrivals(self.worker);
        let queued = self.parallel_sessions.queued().into_iter();
        let queued = queued.map(|(step, meant)| (self.first_step + step, meant));
        let meant = sent
            .map(|request| (request.step, request.meant))
            .chain(queued)
            .chain(arrived.map(|at| (self.first_step, at)));
        meant
            .filter(|(_, meant)| *meant < cut)
            .map(|(step, meant)| (step, cut - meant))
            .collect()
    }
}

/// A user between two requests.
pub(crate) struct User<C: Client> {
    pub(crate) index: u32,
    /// The index among the users of its worker, from 0.
    pub(crate) place: usize,
    pub(crate) scope: UserScope,
    pub(crate) timing: TimingStream,
    pub(crate) session: C::Session,
}

/// A user during a trial. A million users wait at the same time, each inside all its callers' futures. Their state is
/// kept here, once, and memory for a request is held only while it is in progress.
pub(crate) struct Life<C: Client> {
    pub(crate) user: Box<User<C>>,
    pub(crate) state: Progress,
    /// Of the current session.
    pub(crate) choice: SessionChoice,
    pub(crate) pause: Timer,
}

impl<C: Client> Life<C> {
    pub(crate) fn new(user: Box<User<C>>, timers: &Timers) -> Self {
        Self {
            user,
            state: Progress::from(0),
            choice: SessionChoice::default(),
            pause: timers.timer(),
        }
    }

    /// Waits until `due`; returns at once if that has passed. The user's connection is served meanwhile.
    pub(crate) fn sleep_until<'a>(&'a mut self, client: &'a C, due: Nanos) -> UserSleep<'a, C> {
        UserSleep {
            client,
            life: self,
            due: settable(due),
        }
    }
}

/// A wait of a user; written by hand, like [`crate::timers::Sleep`].
pub(crate) struct UserSleep<'a, C: Client> {
    client: &'a C,
    life: &'a mut Life<C>,
    due: Nanos,
}

impl<C: Client> Future for UserSleep<'_, C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { client, life, due } = &mut *self;
        let slept = life.pause.poll_due(due, cx);
        if slept.is_pending() {
            client.poll_idle(&mut life.user.session, cx);
        }
        slept
    }
}

/// The progress of a session, as far as the schedule needs it.
pub(crate) struct Progress {
    /// When the last request or step ended: the next wait runs from here.
    pub(crate) at: Nanos,
    /// Requests in a row that ended without a response.
    pub(crate) without_response: u8,
    /// No request may be sent before this.
    pub(crate) not_before: Nanos,
    /// No request is sent from here on: the user leaves.
    pub(crate) until: Nanos,
    /// When the session arrived, until its first request is sent: the wait of that request runs from here.
    pub(crate) arrived: Option<Nanos>,
    /// Whether anything took time; a cycle without any must not spin.
    pub(crate) moved: bool,
    /// Whether every request of the session so far met its `expect`.
    pub(crate) well: bool,
    /// Whether the session ends at a failure: its further steps are skipped.
    pub(crate) breaks_off: bool,
}

impl Progress {
    pub(crate) fn from(start: Nanos) -> Self {
        Self {
            at: start,
            without_response: 0,
            not_before: 0,
            until: Nanos::MAX,
            arrived: None,
            moved: true,
            well: true,
            breaks_off: false,
        }
    }

    /// Returns true if the user's time has ended.
    pub(crate) fn leaves(&self) -> bool {
        self.at >= self.until
    }

    /// Returns true if nothing more is sent in this session.
    pub(crate) fn is_over(&self) -> bool {
        self.breaks_off || self.leaves()
    }

    /// Updates the progress with the outcome of a message that was due then.
    pub(crate) fn take(&mut self, ended: &Ended, due: Due, failure_pause: Nanos) {
        self.well &= ended.well || ended.next == Next::Retry;
        match ended.at {
            Some(at) => {
                self.at = at;
                self.moved = true;
                self.without_response = match ended.is_without_response() {
                    true => self.without_response.saturating_add(1),
                    false => 0,
                };
                if self.without_response >= FAILURES_BEFORE_PAUSE {
                    self.not_before = at.saturating_add(failure_pause);
                }
            }
            // The plan applies to the first request that is sent.
            None => self.arrived = due.planned,
        }
    }
}

/// After this number of consecutive requests without a response, a user pauses before each further one, to avoid
/// flooding a server that is down. Single failures cause no pause.
const FAILURES_BEFORE_PAUSE: u8 = 3;

/// A wait before a step, at its start.
pub(crate) struct Waiting {
    wait: Nanos,
    /// The planned end, whatever else happens.
    planned: Option<Nanos>,
    /// The intended end.
    meant: Nanos,
}

/// When a request is due.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    /// The planned send time, whatever else happens; `None` without such a plan.
    pub(crate) planned: Option<Nanos>,
    /// The earliest time at which it can be sent.
    pub(crate) meant: Nanos,
}

/// A request from its first message to its last, with redirects and failed attempts.
pub(crate) struct Sending {
    /// Its step, counted as in its population.
    pub(crate) step: usize,
    /// The planned send time of its first message, if there is such a plan.
    planned: Option<Nanos>,
    /// The start of its response time: its planned send, or else when it was due, if it had to wait for a slot.
    from: Option<Nanos>,
    /// When its first message was due.
    meant: Nanos,
    /// When its first message was sent.
    began: Option<Nanos>,
    /// Sums over its messages so far.
    pub(crate) phases: Phases,
    /// Until when a failed attempt may be sent again; `None` if none may.
    pub(crate) retry_until: Option<Nanos>,
    /// A failed attempt, until the request is sent again.
    failed: Option<Box<(Attempt, FailedRequest, Option<TraceContext>)>>,
}

impl Sending {
    /// Returns a request of this step after this wait for a slot.
    pub(crate) fn new(step: usize, due: Due, blocked: Nanos) -> Self {
        let mut phases = Phases::default();
        let due_at = due.meant.saturating_sub(blocked);
        if blocked > 0 {
            phases.set(Phase::Blocked, blocked);
        }
        Self {
            step,
            planned: due.planned,
            from: due.planned.or((blocked > 0).then_some(due_at)),
            meant: due_at,
            began: None,
            phases,
            retry_until: None,
            failed: None,
        }
    }

    /// Returns the start of its response time, if its first message is sent at `meant`.
    pub(crate) fn meant(&self) -> Nanos {
        self.planned.unwrap_or(self.meant)
    }

    /// Returns the delay in seconds that its failed attempt requests before a retry, if any.
    fn retry_after(&self) -> Option<u32> {
        let (_, failure, _) = self.failed.as_deref()?;
        failure.retry_after
    }

    /// Returns the start of its response time; `None` before its first message was sent.
    pub(crate) fn counts_from(&self) -> Option<Nanos> {
        let began = self.began?;
        Some(self.from.unwrap_or(began))
    }
}

/// The step after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the request has ended.
    Over,
    /// The message of the redirect.
    Redirect,
    /// The same message again.
    Retry,
}

/// The outcome of a request, as far as the schedule needs it.
pub(crate) struct Ended {
    /// The end time; `None` if it wasn't sent.
    pub(crate) at: Option<Nanos>,
    /// Whether it met its `expect`.
    pub(crate) well: bool,
    /// The error class; `None` also for a skipped request.
    pub(crate) class: Option<ErrorClass>,
    /// The next step.
    pub(crate) next: Next,
}

impl Ended {
    /// Returns true if there was no response at all.
    fn is_without_response(&self) -> bool {
        self.class.is_some_and(ErrorClass::is_without_response)
    }

    /// Returns the outcome of a request that wasn't sent.
    fn unsent(class: Option<ErrorClass>) -> Self {
        Self {
            at: None,
            well: false,
            class,
            next: Next::Over,
        }
    }
}

impl<C: Client> Shared<C> {
    /// Sends a request, and renders it now unless it was rendered before.
    pub(crate) async fn send(
        &self,
        user: &mut User<C>,
        request: RequestId,
        is_made: bool,
    ) -> Exchange {
        let deadline = self.timers.timer();
        let (session, scope) = (&mut user.session, &mut user.scope);
        if !is_made {
            scope.begin_request();
        }
        let exchange = self.client.exchange(session, request, scope, &deadline);
        exchange.await
    }

    /// Returns the end of the pause after a session in which nothing was sent.
    pub(crate) fn idle_until(&self) -> Nanos {
        self.clock.nanos() + self.failure_pause.max(1_000_000)
    }

    /// Begins the wait before a step.
    pub(crate) fn begin_wait(
        &self,
        life: &mut Life<C>,
        (index, planned): (usize, bool),
    ) -> Waiting {
        let step = &self.script.session[index];
        let timing = &mut life.user.timing;
        let drawn = match planned {
            true => timing.next_wait(&step.wait),
            false => timing.next_unplanned(&step.wait),
        };
        let wait = nanos(match step.wait {
            Wait::Seconds(slot, speed) => time_at_speed(life.user.scope.seconds(slot), speed),
            _ => drawn,
        });
        self.begin_wait_of(life, index, wait)
    }

    /// Begins a wait of this length before a step.
    pub(crate) fn begin_wait_of(&self, life: &mut Life<C>, index: usize, wait: Nanos) -> Waiting {
        let state = &mut life.state;
        let planned = state.arrived.take().map(|at| at.saturating_add(wait));
        // A user that waited for a connection has thought meanwhile.
        let ready = planned.map_or(state.at.saturating_add(wait), |at| at.max(state.at));
        let meant = ready.max(state.not_before);
        if meant > ready {
            let step = self.first_step + index;
            let mut recorder = self.recorder.borrow_mut();
            recorder.paused(state.at, step, meant - ready);
        }
        if wait > 0 {
            self.transactions.thinks(life.user.place, state.at);
        }
        if let Some(planned) = planned.filter(|planned| *planned < meant) {
            self.set_under_way(life.user.place, index, planned);
        }
        Waiting {
            wait,
            planned,
            meant,
        }
    }

    /// Returns the end of its sleep; `None` if there is no wait.
    pub(crate) fn sleeps_until(life: &Life<C>, waiting: &Waiting) -> Option<Nanos> {
        let state = &life.state;
        let leaves = waiting.meant >= state.until;
        let until = waiting.meant.min(state.until);
        (leaves || until > state.at).then_some(until)
    }

    /// Returns the end of the wait; `None` if the user left before that.
    pub(crate) fn end_wait(
        &self,
        life: &mut Life<C>,
        index: usize,
        waiting: &Waiting,
    ) -> Option<Due> {
        let is_counted = self.script.session[index].wait != Wait::None;
        self.end_wait_of(life, (index, is_counted), waiting)
    }

    /// Ends a wait before a step, and records it if it `is_counted`.
    pub(crate) fn end_wait_of(
        &self,
        life: &mut Life<C>,
        (index, is_counted): (usize, bool),
        waiting: &Waiting,
    ) -> Option<Due> {
        let state = &mut life.state;
        let Waiting {
            wait,
            planned,
            meant,
        } = *waiting;
        if meant >= state.until {
            state.at = state.at.max(state.until);
            return None;
        }
        state.moved |= meant > state.at;
        if wait > 0 {
            let over = state.at.saturating_add(wait);
            self.transactions.goes_on(life.user.place, over);
        }
        if is_counted {
            let now = self.clock.nanos();
            // A pause after a failure, or a wait for a connection, is not think time.
            let lasted = now.saturating_sub(meant).saturating_add(wait);
            let step = self.first_step + index;
            self.recorder.borrow_mut().waited(now, step, lasted);
            state.at = now;
        }
        Some(Due { planned, meant })
    }

    /// Waits before a failed request of a step is sent again.
    pub(crate) async fn wait_to_retry(
        &self,
        life: &mut Life<C>,
        (step, retry, retries): (usize, &Retry, u32),
        sending: &Sending,
    ) -> Due {
        let drawn = life.user.timing.next_unplanned(&retry.wait);
        let wait = nanos(retry.waits(drawn, retries, sending.retry_after()));
        let failed = life.state.at;
        let meant = failed.saturating_add(wait).max(life.state.not_before);
        if meant > failed {
            let until = meant.min(life.state.until);
            life.sleep_until(&self.client, until).await;
            life.state.at = self.clock.nanos();
        }
        let (now, waited) = (life.state.at, life.state.at.saturating_sub(failed));
        let step = self.first_step + step;
        self.recorder
            .borrow_mut()
            .waited_to_retry(now, step, waited);
        Due {
            planned: None,
            meant,
        }
    }

    /// Records the outcome of a message of a request that was due then.
    pub(crate) fn record(
        &self,
        (exchange, measured): (Exchange, Vec<(usize, u64)>),
        sending: &mut Sending,
        due: Due,
    ) -> Ended {
        let mut recorder = self.recorder.borrow_mut();
        let step = self.first_step + sending.step;
        match exchange {
            Exchange::Done {
                sent,
                ended,
                sizes,
                phases,
                result,
                events,
                redirected,
                trace,
            } => {
                let attempt = Attempt {
                    ended,
                    late: sent.saturating_sub(due.meant),
                    sizes,
                };
                sending.began.get_or_insert(sent);
                sending.phases = sending.phases.and(phases);
                let class = result.as_ref().err().map(|failure| failure.class);
                let retries = sending.retry_until.is_some_and(|until| ended < until);
                let next = match result {
                    Ok(()) if redirected => {
                        recorder.hop(step, attempt);
                        Next::Redirect
                    }
                    Err(failure) if retries => {
                        sending.failed = Some(Box::new((attempt, failure, trace)));
                        Next::Retry
                    }
                    result => {
                        let events = events.map(|times| (times.first, times.gaps));
                        let mut sample = self.sample(sending, attempt, events);
                        (sample.measured, sample.trace) = (measured, trace);
                        recorder.request(step, sample, result);
                        Next::Over
                    }
                };
                Ended {
                    at: Some(ended),
                    well: class.is_none(),
                    class,
                    next,
                }
            }
            Exchange::Skipped => {
                recorder.skipped(self.clock.nanos(), step);
                Ended::unsent(None)
            }
            Exchange::Unmade { detail } => {
                recorder.unmade(self.clock.nanos(), step, detail);
                Ended::unsent(Some(ErrorClass::Check))
            }
        }
    }

    /// Returns the figures of a request whose last message is this one.
    fn sample(
        &self,
        sending: &Sending,
        last: Attempt,
        events: Option<(Option<Nanos>, Vec<Nanos>)>,
    ) -> Sample {
        let began = sending.began.unwrap_or(last.ended);
        let counts_from = sending.from.unwrap_or(began);
        let service = last.ended.saturating_sub(began);
        Sample {
            last,
            response: last.ended.saturating_sub(counts_from),
            service: (self.open || sending.planned.is_some()).then_some(service),
            phases: sending.phases,
            events: events.map(|(first, gaps)| Events {
                first: first.map(|at| at.saturating_sub(counts_from)),
                gaps,
            }),
            measured: Vec::new(),
            trace: None,
        }
    }

    /// Records a failed attempt: the request is sent again now, or its user has left and this was its outcome.
    pub(crate) fn record_failed(&self, sending: &mut Sending, is_sent_again: bool) {
        let Some((attempt, failure, trace)) = sending.failed.take().map(|failed| *failed) else {
            return;
        };
        let step = self.first_step + sending.step;
        let mut recorder = self.recorder.borrow_mut();
        if is_sent_again {
            return recorder.retried(step, attempt, failure, trace);
        }
        let mut sample = self.sample(sending, attempt, None);
        sample.trace = trace;
        recorder.request(step, sample, Err(failure));
    }

    pub(crate) fn forget_rest(&self, step: &ScriptStep, from: RequestId, scope: &mut UserScope) {
        for request in from..step.requests.end {
            self.client.forget(request, scope);
        }
    }
}
