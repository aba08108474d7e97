//! One virtual user: its waits, its requests, and what is recorded of them. It knows no protocol, not
//! what its session does next (see [`crate::session`]), and not what makes one begin: see [`crate::load`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lab_workload::UserScope;
use lab_workload::Wait;
use lab_workload::timing::TimingStream;

use crate::client::Client;
use crate::clock::Clock;
use crate::event::Unanswered;
use crate::load::{Pool, SharedPool};
use crate::recorder::{Events, Recorder, Sample};
use crate::script::{Script, ScriptStep};
use crate::timers::{Timer, Timers};
use lab_client::ErrorClass;
use lab_client::time::{Nanos, nanos};
use lab_client::{Exchange, RequestId};

/// What all users of a worker share that are of one population.
pub(crate) struct Shared<C> {
    pub(crate) client: C,
    pub(crate) script: Arc<Script>,
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
    /// By place of the user on its worker: when the request under way was meant to be sent; 0
    /// where none is.
    pub(crate) under_way: Box<[Cell<Nanos>]>,
    /// Whether sessions arrive: then service times are kept apart from response times.
    pub(crate) open: bool,
    /// Where sessions that arrive meet connections; without use for other loads.
    pub(crate) pool: SharedPool,
    /// The worker's number in this program.
    pub(crate) worker: usize,
    /// The end of the trial, once it runs: what is due then, or later, is not sent, as no plan has it.
    pub(crate) end: Cell<Nanos>,
}

impl<C> Shared<C> {
    /// Goes on with what is due within the trial; what isn't waits until the trial is cut.
    pub(crate) async fn within_trial(&self, due: Nanos) {
        if due >= self.end.get() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn under_way(&self, place: usize) -> &Cell<Nanos> {
        &self.under_way[place]
    }

    /// How many sessions wait for a connection, as this worker's windows tell it: the first one's tell
    /// for all of the program.
    pub(crate) fn waiting(&self, pool: &Pool) -> usize {
        match self.worker {
            0 => pool.waiting(),
            _ => 0,
        }
    }

    /// The requests that had no answer at the cut, and the sessions that waited for a connection.
    pub(crate) fn unanswered(&self, cut: Nanos) -> Unanswered {
        let sent = self.under_way.iter().map(Cell::get);
        let pool = self.pool.lock();
        let arrived = pool.arrivals(self.worker);
        let meant = sent.filter(|meant| *meant > 0).chain(arrived);
        let before = meant.filter(|meant| *meant < cut);
        before.fold(Unanswered::default(), |mut sum, meant| {
            sum.add(Unanswered {
                count: 1,
                oldest: Duration::from_nanos(cut - meant),
            });
            sum
        })
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

/// A user's two timers.
pub(crate) struct Clocks {
    pub(crate) pause: Timer,
    deadline: Timer,
}

impl Clocks {
    pub(crate) fn new(timers: &Timers) -> Self {
        Self {
            pause: timers.timer(),
            deadline: timers.timer(),
        }
    }
}

/// How far a session is, as far as the schedule cares.
pub(crate) struct Progress {
    /// When the last request or step ended: the next wait runs from here.
    pub(crate) at: Nanos,
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
}

impl Progress {
    pub(crate) fn from(start: Nanos) -> Self {
        Self {
            at: start,
            not_before: 0,
            until: Nanos::MAX,
            arrived: None,
            moved: true,
            well: true,
        }
    }

    /// Whether the user's time is over.
    pub(crate) fn leaves(&self) -> bool {
        self.at >= self.until
    }

    /// Takes in how a request went that was due then.
    pub(crate) fn take(&mut self, ended: &Ended, due: Due) {
        self.not_before = self.not_before.max(ended.not_before);
        self.well &= ended.well;
        match ended.at {
            Some(at) => {
                self.at = at;
                self.moved = true;
            }
            // The plan holds for the first request that is sent.
            None => self.arrived = due.planned,
        }
    }
}

/// When a request is to go out.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    /// When the plan has it go out, whatever else happens; `None` where there is no such plan.
    pub(crate) planned: Option<Nanos>,
    /// When it can go out at the earliest.
    pub(crate) meant: Nanos,
    /// Of a failed request that is sent again: how long that was waited for.
    pub(crate) retry: Option<Nanos>,
}

/// How a request went, as far as the schedule cares.
pub(crate) struct Ended {
    /// When; `None` when it wasn't sent.
    pub(crate) at: Option<Nanos>,
    /// Nothing may be sent before this.
    pub(crate) not_before: Nanos,
    /// Whether it met its `expect`.
    pub(crate) well: bool,
    /// Whether it had no whole answer in time.
    pub(crate) timed_out: bool,
}

impl<C: Client> Shared<C> {
    pub(crate) async fn send(
        &self,
        user: &mut User<C>,
        request: RequestId,
        clocks: &Clocks,
    ) -> Exchange {
        let (session, scope) = (&mut user.session, &mut user.scope);
        let exchange = self
            .client
            .exchange(session, request, scope, &clocks.deadline);
        exchange.await
    }

    /// The pause after a session in which nothing was sent; gives its end.
    pub(crate) async fn idle(&self, pause: &Timer) -> Nanos {
        let until = self.clock.nanos() + self.failure_pause.max(1_000_000);
        pause.sleep_until(until).await;
        until
    }

    /// The wait before a step; `None` where the user leaves before its end.
    pub(crate) async fn wait(
        &self,
        user: &mut User<C>,
        (index, planned): (usize, bool),
        state: &mut Progress,
        pause: &Timer,
    ) -> Option<Due> {
        let step = &self.script.session[index];
        let wait = nanos(match planned {
            true => user.timing.next_wait(&step.wait),
            false => user.timing.next_unplanned(&step.wait),
        });
        let planned = state.arrived.take().map(|at| at.saturating_add(wait));
        // Whoever waited for a connection has thought meanwhile.
        let ready = planned.map_or(state.at.saturating_add(wait), |at| at.max(state.at));
        let meant = ready.max(state.not_before);
        if let Some(planned) = planned.filter(|planned| *planned < meant) {
            self.under_way(user.place).set(planned.max(1));
        }
        if meant >= state.until {
            pause.sleep_until(state.until).await;
            state.at = state.at.max(state.until);
            return None;
        }
        if meant > state.at {
            pause.sleep_until(meant).await;
            state.moved = true;
        }
        if step.wait != Wait::None {
            let now = self.clock.nanos();
            // A pause after a failure, or a wait for a connection, is no think time.
            let lasted = now.saturating_sub(meant).saturating_add(wait);
            let step = self.first_step + index;
            self.recorder.borrow_mut().waited(now, step, lasted);
            state.at = now;
        }
        Some(Due {
            planned,
            meant,
            retry: None,
        })
    }

    /// The wait before a failed request is sent again.
    pub(crate) async fn wait_to_retry(
        &self,
        user: &mut User<C>,
        wait: &Wait,
        state: &mut Progress,
        pause: &Timer,
    ) -> Due {
        let failed = state.at;
        let wait = nanos(user.timing.next_unplanned(wait));
        let meant = failed.saturating_add(wait).max(state.not_before);
        if meant > failed {
            pause.sleep_until(meant.min(state.until)).await;
            state.at = self.clock.nanos();
        }
        Due {
            planned: None,
            meant,
            retry: Some(state.at.saturating_sub(failed)),
        }
    }

    /// Records how a request of a step (or of the probe) went.
    pub(crate) fn record(
        &self,
        (exchange, measured): (Exchange, Vec<(usize, u64)>),
        step: usize,
        due: Due,
    ) -> Ended {
        let mut recorder = self.recorder.borrow_mut();
        let step = self.first_step + step;
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
                let class = result.as_ref().err().map(|failure| failure.class);
                let service = ended.saturating_sub(sent);
                let sample = Sample {
                    ended,
                    response: due.planned.map_or(service, |at| ended.saturating_sub(at)),
                    service: (self.open || due.planned.is_some()).then_some(service),
                    late: sent.saturating_sub(due.meant),
                    sizes,
                    phases,
                    events: events.map(|times| Events {
                        first: times
                            .first
                            .map(|at| at.saturating_sub(due.planned.unwrap_or(sent))),
                        gaps: times.gaps,
                    }),
                    measured,
                    redirected,
                    retry: due.retry,
                    trace,
                };
                recorder.request(step, sample, result);
                Ended {
                    at: Some(ended),
                    not_before: match class.is_some_and(unanswered) {
                        true => ended + self.failure_pause,
                        false => 0,
                    },
                    well: class.is_none(),
                    timed_out: class == Some(ErrorClass::Timeout),
                }
            }
            Exchange::Skipped => {
                recorder.skipped(self.clock.nanos(), step);
                NOT_SENT
            }
            Exchange::Unmade { detail } => {
                recorder.unmade(self.clock.nanos(), step, detail);
                NOT_SENT
            }
        }
    }

    pub(crate) fn forget_rest(&self, step: &ScriptStep, from: RequestId, scope: &mut UserScope) {
        for request in from..step.requests.end {
            self.client.forget(request, scope);
        }
    }
}

const NOT_SENT: Ended = Ended {
    at: None,
    not_before: 0,
    well: false,
    timed_out: false,
};

/// Failures after which even a user without waits pauses, lest it hammer a server that is down.
pub(crate) fn unanswered(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Timeout | ErrorClass::Connect | ErrorClass::Reset
    )
}
