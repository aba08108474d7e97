//! One virtual user: its session's steps, waits, and pace. Knows no protocol.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lab_study::UserScope;
use lab_study::model::Wait;
use lab_study::timing::TimingStream;

use crate::client::{Client, Exchange, RequestId};
use crate::clock::{Clock, Nanos, nanos};
use crate::event::{ErrorClass, Unanswered};
use crate::recorder::{Recorder, Sample};
use crate::script::{Script, ScriptStep};
use crate::timers::{Timer, Timers};

/// What all users of a worker share.
pub(crate) struct Shared<C> {
    pub(crate) client: C,
    pub(crate) script: Arc<Script>,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) failure_pause: Nanos,
    /// By place of the user on its worker: when the request under way was meant to be sent; 0
    /// where none is.
    pub(crate) under_way: Box<[Cell<Nanos>]>,
    /// Number of workers: user i has place i ÷ workers on its own.
    pub(crate) workers: usize,
}

impl<C> Shared<C> {
    fn place(&self, user: u32) -> &Cell<Nanos> {
        &self.under_way[user as usize / self.workers]
    }

    /// The requests that have no answer yet.
    pub(crate) fn unanswered(&self, now: Nanos) -> Unanswered {
        let meant = self
            .under_way
            .iter()
            .map(Cell::get)
            .filter(|meant| *meant > 0);
        meant.fold(Unanswered::default(), |mut sum, meant| {
            sum.count += 1;
            sum.oldest = sum
                .oldest
                .max(Duration::from_nanos(now.saturating_sub(meant)));
            sum
        })
    }
}

/// A user between two requests.
pub(crate) struct User<C: Client> {
    pub(crate) index: u32,
    pub(crate) scope: UserScope,
    pub(crate) timing: TimingStream,
    pub(crate) session: C::Session,
}

/// How a request or a step ended, as far as the schedule cares.
struct Progress {
    /// When: the next wait runs from here.
    at: Nanos,
    /// Nothing may be sent before this.
    not_before: Nanos,
    /// Whether anything took time; a cycle in which nothing does must not spin.
    moved: bool,
}

/// When user `index` of `users` starts, after the trial's 0.
pub(crate) fn start_offset(ramp: Duration, index: u32, users: u32) -> Nanos {
    let offset = ramp.as_nanos() * u128::from(index) / u128::from(users.max(1));
    Nanos::try_from(offset).unwrap_or(Nanos::MAX)
}

/// Repeats the user's session from `start` on, until the task is dropped.
pub(crate) async fn run_session<C: Client>(
    shared: Rc<Shared<C>>,
    mut user: Box<User<C>>,
    start: Nanos,
) {
    let pause = shared.timers.timer();
    let deadline = shared.timers.timer();
    let pace = shared.script.pace.map(nanos).filter(|pace| *pace > 0);
    pause.sleep_until(start).await;
    shared.recorder.borrow_mut().user_started();
    let mut state = Progress {
        at: start,
        not_before: 0,
        moved: true,
    };
    loop {
        let begun = state.at;
        shared.recorder.borrow_mut().cycle(begun.max(start));
        state.moved = false;
        for index in 0..shared.script.session.len() {
            for _ in 0..shared.script.session[index].repeat {
                step(&shared, &mut user, index, &mut state, &pause, &deadline).await;
            }
        }
        if let Some(pace) = pace {
            let next = begun.saturating_add(pace);
            if state.at > next {
                // Followed at once; planning goes on from here.
                shared.recorder.borrow_mut().overrun(state.at);
            } else {
                pause.sleep_until(next).await;
                state.at = next;
                continue;
            }
        }
        if !state.moved {
            state.at = shared.clock.nanos() + shared.failure_pause.max(1_000_000);
            pause.sleep_until(state.at).await;
        }
    }
}

/// One step: its wait, then its requests one after the other until one is skipped or fails.
async fn step<C: Client>(
    shared: &Shared<C>,
    user: &mut User<C>,
    index: usize,
    state: &mut Progress,
    pause: &Timer,
    deadline: &Timer,
) {
    let step = &shared.script.session[index];
    let wait = nanos(user.timing.next_wait(&step.wait));
    let mut meant = state.at.saturating_add(wait).max(state.not_before);
    if meant > state.at {
        pause.sleep_until(meant).await;
        state.moved = true;
    }
    if step.wait != Wait::None {
        let now = shared.clock.nanos();
        // A pause after a failure is no think time.
        let lasted = now.saturating_sub(meant).saturating_add(wait);
        shared.recorder.borrow_mut().waited(now, index, lasted);
        state.at = now;
    }
    for request in step.requests.clone() {
        shared.place(user.index).set(meant.max(1));
        let exchange = shared
            .client
            .exchange(&mut user.session, request, &mut user.scope, deadline)
            .await;
        shared.place(user.index).set(0);
        let went_well = shared.settle(exchange, index, meant, state);
        if !went_well {
            shared.forget_rest(step, request, &mut user.scope);
            return;
        }
        meant = state.at;
    }
}

impl<C: Client> Shared<C> {
    /// Records how a request went. False when the rest of its step is off.
    fn settle(&self, exchange: Exchange, step: usize, meant: Nanos, state: &mut Progress) -> bool {
        let mut recorder = self.recorder.borrow_mut();
        match exchange {
            Exchange::Done {
                sent,
                ended,
                bytes,
                result,
            } => {
                let went_well = match &result {
                    Ok(()) => true,
                    Err(failure) => {
                        if unanswered(failure.class) {
                            state.not_before = ended + self.failure_pause;
                        }
                        false
                    }
                };
                let took = ended.saturating_sub(sent);
                let late = sent.saturating_sub(meant);
                recorder.request(
                    step,
                    Sample {
                        ended,
                        took,
                        late,
                        bytes,
                    },
                    result,
                );
                state.at = ended;
                state.moved = true;
                went_well
            }
            Exchange::Skipped => {
                recorder.skipped(self.clock.nanos(), step);
                false
            }
            Exchange::Unmade { detail } => {
                recorder.unmade(self.clock.nanos(), step, detail);
                false
            }
        }
    }

    fn forget_rest(&self, step: &ScriptStep, from: RequestId, scope: &mut UserScope) {
        for request in from..step.requests.end {
            self.client.forget(request, scope);
        }
    }
}

/// Failures after which even a user without waits pauses, lest it hammer a server that is down.
pub(crate) fn unanswered(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Timeout | ErrorClass::Connect | ErrorClass::Reset
    )
}

/// Sends the probe at its planned times from `zero` on, until the task is dropped. Response times
/// count from the planned time, also where the answer before came too late to send then.
pub(crate) async fn run_probe<C: Client>(
    shared: Rc<Shared<C>>,
    mut user: Box<User<C>>,
    (request, every): (RequestId, Duration),
    zero: Nanos,
) {
    let pause = shared.timers.timer();
    let deadline = shared.timers.timer();
    let every = nanos(every).max(1_000);
    let step = shared.script.session.len();
    let mut planned = zero;
    let mut free_from = zero;
    loop {
        planned = planned.saturating_add(every);
        let meant = planned.max(free_from);
        pause.sleep_until(meant).await;
        let exchange = shared
            .client
            .exchange(&mut user.session, request, &mut user.scope, &deadline)
            .await;
        let mut recorder = shared.recorder.borrow_mut();
        match exchange {
            Exchange::Done {
                sent,
                ended,
                bytes,
                result,
            } => {
                let unanswered = result.as_ref().is_err_and(|f| unanswered(f.class));
                free_from = ended + if unanswered { shared.failure_pause } else { 0 };
                let took = ended.saturating_sub(planned);
                let late = sent.saturating_sub(meant);
                recorder.request(
                    step,
                    Sample {
                        ended,
                        took,
                        late,
                        bytes,
                    },
                    result,
                );
            }
            Exchange::Skipped => recorder.skipped(shared.clock.nanos(), step),
            Exchange::Unmade { detail } => recorder.unmade(shared.clock.nanos(), step, detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_start_evenly_over_the_ramp() {
        let ramp = Duration::from_secs(12);
        assert_eq!(start_offset(ramp, 0, 3), 0);
        assert_eq!(start_offset(ramp, 1, 3), 4_000_000_000);
        assert_eq!(start_offset(ramp, 2, 3), 8_000_000_000);
        assert_eq!(start_offset(Duration::MAX, 1, 2), Nanos::MAX);
    }
}
