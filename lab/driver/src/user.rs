//! One virtual user: its waits, its requests, and what is recorded of them. It knows no protocol, not
//! what its session does next (see [`crate::session`]), and not what makes one begin: see [`crate::load`].

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use lab_workload::timing::{SessionChoice, TimingStream};
use lab_workload::{LoadKind, Retry, TraceContext, UserScope, Visit, Wait, time_at_speed};
use tokio::sync::Notify;

use crate::beside::Beside;
use crate::client::Client;
use crate::clock::Clock;
use crate::drive::Drive;
use crate::load::{Pool, SharedPool};
use crate::recorder::{Attempt, Events, Recorder, Sample};
use crate::script::{Script, ScriptStep};
use crate::sharing::Sharing;
use crate::timers::{Timer, Timers, settable};
use crate::tokens::SharedToken;
use lab_client::ErrorClass;
use lab_client::time::{Nanos, nanos};
use lab_client::{Exchange, FailedRequest, Phase, Phases, RequestId};
use lab_counts::Transactions;

/// What all users of a worker share that are of one population.
pub(crate) struct Shared<C: Client> {
    pub(crate) client: C,
    pub(crate) drive: Arc<Drive>,
    pub(crate) script: Arc<Script>,
    /// What its users share with others.
    pub(crate) sharing: Sharing,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    /// Of all populations of the worker.
    pub(crate) recorder: Rc<RefCell<Recorder>>,
    /// Place of its first step among those of all populations.
    pub(crate) first_step: usize,
    /// Place of the probe, counted as its own steps are.
    pub(crate) probe_step: usize,
    /// Its place among the populations.
    pub(crate) population: usize,
    pub(crate) failure_pause: Nanos,
    /// Whether a step of which a request timed out isn't repeated any further.
    pub(crate) timeout_ends_step: bool,
    /// The request under way by place of the user on its worker, then those that users send at the same time.
    pub(crate) under_way: Box<[Cell<UnderWay>]>,
    /// What they send at the same time.
    pub(crate) beside: Beside<C>,
    /// Their transactions under way.
    pub(crate) transactions: Transactions,
    /// The token that the users share, if the workload says `per: worker`.
    pub(crate) token: SharedToken,
    /// Whether sessions arrive: then service times are kept apart from response times.
    pub(crate) open: bool,
    /// Where sessions that arrive meet connections; without use for other loads.
    pub(crate) pool: SharedPool,
    /// The worker's number in this program.
    pub(crate) worker: usize,
    /// The trial's 0, once it is known.
    pub(crate) zero: Cell<Nanos>,
    /// The end of the trial, once it runs: what is due then, or later, is not sent, as no plan has it.
    pub(crate) end: Cell<Nanos>,
    /// Told when a task of the worker ends.
    pub(crate) ended: Rc<Notify>,
}

/// The request that a user has under way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnderWay {
    /// When it was meant to be sent, from where its response time counts; 0 if there is none.
    meant: Nanos,
    /// Its step among those of all populations.
    step: usize,
}

/// What a task holds of it, until it ends: then [`Shared::ended`] is told, after a panic as well.
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
    /// Goes on with what is due within the trial; what isn't waits until the trial is cut.
    pub(crate) async fn within_trial(&self, due: Nanos) {
        if due >= self.end.get() {
            std::future::pending::<()>().await;
        }
    }

    /// The user's request of this step is under way, and has been since it was meant to be sent.
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

    /// The user has no request under way.
    pub(crate) fn clear_under_way(&self, place: usize) {
        if self.under_way[place].take().meant > 0 {
            self.recorder.borrow_mut().request_ended();
        }
    }

    /// How many sessions each user has, where that is said.
    pub(crate) fn sessions(&self) -> Option<u32> {
        match self.drive.kind {
            LoadKind::Sequence { sessions } => Some(sessions),
            LoadKind::Users | LoadKind::Arrival { .. } => None,
        }
    }

    /// When a user is there for the so-manieth time, from 0. Users come back too rarely for each to keep that.
    pub(crate) fn visit(&self, index: u32, number: u32) -> Option<Visit> {
        let Visit { from, until } = *self.drive.visits(index).get(number as usize)?;
        let zero = self.zero.get();
        Some(Visit {
            from: zero.saturating_add(from),
            until: zero.saturating_add(until),
        })
    }

    /// How many sessions wait for a connection, as this worker's windows tell it: the first one's tell
    /// for all of the program.
    pub(crate) fn waiting(&self, pool: &Pool) -> usize {
        match self.worker {
            0 => pool.waiting(),
            _ => 0,
        }
    }

    /// The step and the age of each request that has no response at the cut, and of the first request of each
    /// session that waits for a connection.
    pub(crate) fn unanswered(&self, cut: Nanos) -> Vec<(usize, Nanos)> {
        let sent = self.under_way.iter().map(Cell::get);
        let sent = sent.filter(|request| request.meant > 0);
        let pool = self.pool.lock();
        let arrived = pool.arrivals(self.worker);
        let queued = self.beside.queued().into_iter();
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
    /// Among those of its worker, from 0.
    pub(crate) place: usize,
    pub(crate) scope: UserScope,
    pub(crate) timing: TimingStream,
    pub(crate) session: C::Session,
}

/// A user as it lives through a trial. A million of them wait at the same time, each within all that led to its
/// wait: that is kept here, once, and what a request needs is had while one is under way alone.
pub(crate) struct Life<C: Client> {
    pub(crate) user: Box<User<C>>,
    pub(crate) state: Progress,
    /// Of the session under way.
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

    /// Waits until `due`; at once if that has passed. The user's connection is looked after meanwhile.
    pub(crate) fn sleep_until<'a>(&'a mut self, client: &'a C, due: Nanos) -> UserSleep<'a, C> {
        UserSleep {
            client,
            life: self,
            due: settable(due),
        }
    }
}

/// A wait of a user; written out, as [`crate::timers::Sleep`] is.
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

/// How far a session is, as far as the schedule cares.
pub(crate) struct Progress {
    /// When the last request or step ended: the next wait runs from here.
    pub(crate) at: Nanos,
    /// Requests in a row that ended without a response.
    pub(crate) without_response: u8,
    /// Nothing may be sent before this.
    pub(crate) not_before: Nanos,
    /// Nothing is sent from here on: the user leaves.
    pub(crate) until: Nanos,
    /// When the session arrived, until its first request is sent: that one's wait runs from here.
    pub(crate) arrived: Option<Nanos>,
    /// Whether anything took time; a cycle in which nothing does must not spin.
    pub(crate) moved: bool,
    /// Whether every request of the session so far met its `expect`.
    pub(crate) well: bool,
    /// Whether the session ends at a failure: its further steps are left out.
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

    /// Whether the user's time is over.
    pub(crate) fn leaves(&self) -> bool {
        self.at >= self.until
    }

    /// Whether nothing more is sent in this session.
    pub(crate) fn is_over(&self) -> bool {
        self.breaks_off || self.leaves()
    }

    /// Takes in how a message went that was due then.
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
            // The plan holds for the first request that is sent.
            None => self.arrived = due.planned,
        }
    }
}

/// After so many requests in a row without a response a user pauses before each further one, lest it flood a server
/// that is down. Single failures pause nobody.
const FAILURES_BEFORE_PAUSE: u8 = 3;

/// A wait before a step, as it begins.
pub(crate) struct Waiting {
    wait: Nanos,
    /// When the plan has it end, whatever else happens.
    planned: Option<Nanos>,
    /// When it is to end.
    meant: Nanos,
}

/// When a request is to go out.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    /// When the plan has it go out, whatever else happens; `None` where there is no such plan.
    pub(crate) planned: Option<Nanos>,
    /// When it can go out at the earliest.
    pub(crate) meant: Nanos,
}

/// A request from its first message to its last: redirects and failed attempts belong to it.
pub(crate) struct Sending {
    /// Its step, counted as its population's are.
    pub(crate) step: usize,
    /// When the plan has its first message go out, where there is such a plan.
    planned: Option<Nanos>,
    /// From when its response time counts: its planned send, or else when it was due, if it had to wait for its turn.
    from: Option<Nanos>,
    /// When its first message was due.
    meant: Nanos,
    /// When its first message was sent.
    began: Option<Nanos>,
    /// Sums over its messages so far.
    phases: Phases,
    /// Until when a failed attempt may be sent again; `None` if none may.
    pub(crate) retry_until: Option<Nanos>,
    /// A failed attempt, until the request is sent again.
    failed: Option<Box<(Attempt, FailedRequest, Option<TraceContext>)>>,
}

impl Sending {
    /// A request of this step that has waited so long for its turn.
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

    /// From when its response time counts, if its first message goes out at `meant`.
    pub(crate) fn meant(&self) -> Nanos {
        self.planned.unwrap_or(self.meant)
    }

    /// How many seconds later its failed attempt asks to be sent again, where it does.
    fn retry_after(&self) -> Option<u32> {
        let (_, failure, _) = self.failed.as_deref()?;
        failure.retry_after
    }

    /// From when its response time counts; `None` before its first message was sent.
    pub(crate) fn counts_from(&self) -> Option<Nanos> {
        let began = self.began?;
        Some(self.from.unwrap_or(began))
    }
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the request is over.
    Over,
    /// The message to which it is redirected.
    Redirect,
    /// The same message once more.
    Retry,
}

/// How a request went, as far as the schedule cares.
pub(crate) struct Ended {
    /// When; `None` when it wasn't sent.
    pub(crate) at: Option<Nanos>,
    /// Whether it met its `expect`.
    pub(crate) well: bool,
    /// Why it failed; `None` also of a request that was skipped.
    pub(crate) class: Option<ErrorClass>,
    /// What follows.
    pub(crate) next: Next,
}

impl Ended {
    /// Whether it had no response at all.
    fn is_without_response(&self) -> bool {
        self.class.is_some_and(ErrorClass::is_without_response)
    }

    /// Of a request that wasn't sent.
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
    /// Sends a request, which is made now unless it was made before.
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

    /// When the pause after a session in which nothing was sent ends.
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
        let (timing, state) = (&mut life.user.timing, &mut life.state);
        let drawn = match planned {
            true => timing.next_wait(&step.wait),
            false => timing.next_unplanned(&step.wait),
        };
        let wait = nanos(match step.wait {
            Wait::Seconds(slot, speed) => time_at_speed(life.user.scope.seconds(slot), speed),
            _ => drawn,
        });
        let planned = state.arrived.take().map(|at| at.saturating_add(wait));
        // Whoever waited for a connection has thought meanwhile.
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

    /// Until when it is slept in it; `None` where there is no wait.
    pub(crate) fn sleeps_until(life: &Life<C>, waiting: &Waiting) -> Option<Nanos> {
        let state = &life.state;
        let leaves = waiting.meant >= state.until;
        let until = waiting.meant.min(state.until);
        (leaves || until > state.at).then_some(until)
    }

    /// The end of the wait; `None` where the user left before that.
    pub(crate) fn end_wait(
        &self,
        life: &mut Life<C>,
        index: usize,
        waiting: &Waiting,
    ) -> Option<Due> {
        let (step, state) = (&self.script.session[index], &mut life.state);
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
        if step.wait != Wait::None {
            let now = self.clock.nanos();
            // A pause after a failure, or a wait for a connection, is no think time.
            let lasted = now.saturating_sub(meant).saturating_add(wait);
            let step = self.first_step + index;
            self.recorder.borrow_mut().waited(now, step, lasted);
            state.at = now;
        }
        Some(Due { planned, meant })
    }

    /// The wait before a failed request of a step is sent again.
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

    /// Records how a message of a request went that was due then.
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

    /// The figures of a request whose last message is this one.
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
