//! Parallel requests of a step: up to a maximum at once, each on a session beside the user's. All of them are rendered
//! before the first is sent. Their captures are kept once the last has ended, in the order of the file, so that the
//! user's random values and captures don't depend on response times.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use lab_client::time::Nanos;
use lab_client::{ErrorClass, Made, Unmade};
use lab_workload::timing::TimingStream;
use lab_workload::{UserScope, usual_at_once};

use crate::client::Client;
use crate::script::{Part, ScriptParallel};
use crate::session::{DueRequest, Requested, RoundOutcome};
use crate::user::{Due, Ended, Life, Next, Progress, Shared, User};

/// A rendered request that waits for a slot.
pub(crate) struct Ready {
    pub(crate) number: usize,
    pub(crate) made: Made,
    pub(crate) scope: UserScope,
    pub(crate) timing: TimingStream,
}

/// An ended request.
pub(crate) struct Over<C: Client> {
    pub(crate) number: usize,
    pub(crate) place: usize,
    pub(crate) life: Life<C>,
    pub(crate) outcome: Requested,
}

pub(crate) type Sending<'a, C> = Pin<Box<dyn Future<Output = Over<C>> + 'a>>;

/// The sum of the outcomes so far.
#[derive(Default)]
pub(crate) struct Sum {
    outcome: RoundOutcome,
    /// The start of the first one's time.
    from: Option<Nanos>,
    /// The first failure.
    failure: Option<ErrorClass>,
    /// Whether a request was skipped because a list was empty.
    skips: bool,
    /// The end of the last one, of those that were sent.
    at: Nanos,
    /// Whether one had a response, even a failed one.
    answered: bool,
    /// The number without a response.
    unanswered: u8,
}

impl Sum {
    /// Records that one was not sent, or failed with this class.
    pub(crate) fn fail(&mut self, class: Option<ErrorClass>) {
        self.failure = self.failure.or(class);
        self.skips |= class.is_none();
    }

    fn add(&mut self, outcome: &Requested, at: Nanos) {
        if !outcome.well {
            self.fail(outcome.class);
        }
        self.outcome.timed_out |= outcome.timed_out();
        let Some(from) = outcome.from else { return };
        self.outcome.sent = true;
        self.from = Some(self.from.map_or(from, |first| first.min(from)));
        self.at = self.at.max(at);
        match outcome.class.is_some_and(ErrorClass::is_without_response) {
            true => self.unanswered = self.unanswered.saturating_add(1),
            false => self.answered = true,
        }
    }
}

impl<C: Client> Shared<C> {
    /// Sends the parallel requests of a step, which are due at `due` after a wait of `waited` for a token.
    pub(crate) async fn parallel(
        &self,
        life: &mut Life<C>,
        (index, parallel): (usize, &ScriptParallel),
        (due, waited): (Due, Nanos),
    ) -> RoundOutcome {
        self.within_trial(due.meant).await;
        let due_at = due.meant.saturating_sub(waited);
        let from = due.planned.unwrap_or(due_at);
        self.transactions.due(life.user.place, from);
        // Each request in progress is recorded in a slot of its own.
        self.clear_under_way(life.user.place);
        let token = self.parallel_token(index, &life.user.scope);
        let all = parallel.all(&life.user.scope);
        let mut sum = Sum::default();
        let mut ready = self.made(life, (index, parallel), &all, &mut sum);
        let step_of = |number: usize| index + all[number].0.counts_as;
        let queue = ready.iter().map(|one| (step_of(one.number), from));
        let parallel_sessions = &self.parallel_sessions;
        parallel_sessions.wait(life.user.place, queue.collect());
        let mut captured: Vec<Option<UserScope>> = all.iter().map(|_| None).collect();
        let mut places: Vec<usize> = (0..all.len()).rev().collect();
        let mut under_way: FuturesUnordered<Sending<'_, C>> = FuturesUnordered::new();
        let mut turn = due;
        loop {
            while !(parallel.stops && sum.failure.is_some())
                && turn.meant < life.state.until
                && under_way.len() < self.at_once(life, parallel)
                && let (Some(one), Some(place)) = (ready.pop_front(), places.pop())
            {
                parallel_sessions.next(life.user.place, 0);
                let due_request = DueRequest {
                    request: all[one.number].0.request,
                    step: step_of(one.number),
                    due: turn,
                    blocked: turn.meant.saturating_sub(due_at),
                    is_made: true,
                    token: token.clone(),
                };
                under_way.push(self.send_parallel(life, (index, due_request), (one, place)));
            }
            // The maximum at once is unknown until the server has chosen a protocol.
            let is_open =
                parallel.at_once.is_none() && self.client.multiplexes(&life.user.session).is_none();
            let chosen = pin!(self.client.chosen());
            let next = match is_open {
                false => under_way.next().await,
                true => match select(under_way.next(), chosen).await {
                    Either::Left((next, _)) => next,
                    Either::Right(_) => {
                        turn.meant = self.clock.nanos().max(due.meant);
                        continue;
                    }
                },
            };
            let Some(over) = next else { break };
            places.push(over.place);
            turn.meant = over.life.state.at.max(due.meant);
            let number = over.number;
            captured[number] = self.take_over(life, &mut sum, over);
        }
        drop(under_way);
        parallel_sessions.wait(life.user.place, VecDeque::new());
        self.keep_captured(life, parallel, &all, captured);
        let unsent = ready.iter().filter(|one| all[one.number].1.is_none());
        let unsent = unsent.map(|one| step_of(one.number)).collect();
        self.sum_up(life, &sum, due, (index, unsent));
        sum.outcome
    }

    /// Adds the outcome of one request to the sum; returns its captures if it succeeded.
    pub(crate) fn take_over(
        &self,
        life: &mut Life<C>,
        sum: &mut Sum,
        over: Over<C>,
    ) -> Option<UserScope> {
        sum.add(&over.outcome, over.life.state.at);
        if let Some(class) = over.outcome.class {
            self.transactions.failed(life.user.place, class);
        }
        let User { scope, session, .. } = *over.life.user;
        self.parallel_sessions.keep(life.user.place, session);
        self.join_token(&mut life.user.scope, &scope);
        over.outcome.well.then_some(scope)
    }

    /// Returns how many of them may be in progress at once.
    fn at_once(&self, life: &Life<C>, parallel: &ScriptParallel) -> usize {
        let multiplexes = self.client.multiplexes(&life.user.session) == Some(true);
        let usual = usual_at_once(multiplexes) as usize;
        parallel.at_once.unwrap_or(usual)
    }

    /// Renders all requests, in the order of the file.
    fn made(
        &self,
        life: &mut Life<C>,
        (index, parallel): (usize, &ScriptParallel),
        all: &[(&Part, Option<usize>)],
        sum: &mut Sum,
    ) -> VecDeque<Ready> {
        let mut ready = VecDeque::with_capacity(all.len());
        let User {
            scope,
            session,
            timing,
            ..
        } = &mut *life.user;
        let retries = self.script.session[index].retry.is_some();
        for (number, (part, entry)) in all.iter().enumerate() {
            scope.begin_request();
            let has_entry = match (entry, &parallel.each) {
                (Some(entry), Some(each)) => scope.set_entry(each.entry, (each.list, *entry)),
                _ => true,
            };
            let step = self.first_step + index + part.counts_as;
            let made = match has_entry {
                true => self.client.make(session, part.request, scope),
                false => Err(Unmade::Empty),
            };
            match made {
                Ok(made) => ready.push_back(Ready {
                    number,
                    made,
                    scope: scope.branch(part.reads_later),
                    // No wait is drawn if there are no retries.
                    timing: match retries {
                        true => timing.branch(),
                        false => timing.clone(),
                    },
                }),
                Err(Unmade::Empty) => {
                    sum.fail(None);
                    self.recorder.borrow_mut().skipped(self.clock.nanos(), step);
                }
                Err(Unmade::Failed(detail)) => {
                    sum.fail(Some(ErrorClass::Check));
                    let now = self.clock.nanos();
                    self.recorder.borrow_mut().unmade(now, step, detail);
                }
            }
        }
        if let Some(each) = &parallel.each {
            scope.clear(each.entry);
        }
        ready
    }

    /// Sends one of them on a session beside the user's own.
    pub(crate) fn send_parallel<'a>(
        &'a self,
        life: &mut Life<C>,
        (index, due_request): (usize, DueRequest),
        (one, place): (Ready, usize),
    ) -> Sending<'a, C> {
        let user = &mut *life.user;
        let kept = self.parallel_sessions.take(user.place);
        let mut session = kept.unwrap_or_else(|| self.client.parallel_session(&mut user.session));
        self.client.take_up(&mut session, one.made);
        let user = Box::new(User {
            index: user.index,
            place: self.parallel_sessions.place(user.place, place),
            scope: one.scope,
            timing: one.timing,
            session,
        });
        let mut part = Life::new(user, &self.timers);
        part.state = Progress::from(life.state.at);
        part.state.until = life.state.until;
        Box::pin(async move {
            let outcome = self.request(&mut part, index, due_request).await;
            Over {
                number: one.number,
                place,
                life: part,
                outcome,
            }
        })
    }

    /// Keeps the captures of the successful requests, and clears those of the others.
    fn keep_captured(
        &self,
        life: &mut Life<C>,
        parallel: &ScriptParallel,
        all: &[(&Part, Option<usize>)],
        captured: Vec<Option<UserScope>>,
    ) {
        let scope = &mut life.user.scope;
        for part in &parallel.parts {
            self.client.forget(part.request, scope);
        }
        for ((part, _), branch) in all.iter().zip(captured) {
            let Some(mut branch) = branch else { continue };
            for slot in &part.captures {
                scope.join(&mut branch, *slot);
            }
        }
    }

    /// Continues as after one ended request, once all of these have ended.
    pub(crate) fn sum_up(
        &self,
        life: &mut Life<C>,
        sum: &Sum,
        due: Due,
        (index, unsent): (usize, Vec<usize>),
    ) {
        if sum.failure.is_some() && !life.state.leaves() {
            life.state.breaks_off |= self.script.session[index].ends_session;
            let unsent = unsent.into_iter();
            unsent.for_each(|step| self.not_reached(life, step, 1));
        }
        let ended = Ended {
            at: sum.outcome.sent.then_some(sum.at),
            well: sum.failure.is_none() && !sum.skips,
            class: sum.failure.filter(|_| !sum.answered),
            next: Next::Over,
        };
        if !sum.answered {
            // One of them is counted with the end of all.
            let more = sum.unanswered.saturating_sub(1);
            let before = &mut life.state.without_response;
            *before = before.saturating_add(more);
        }
        life.state.take(&ended, due, self.failure_pause);
        let user = life.user.place;
        self.transactions.ended(user, sum.from, sum.failure);
        if sum.skips {
            self.transactions.ended(user, None, None);
        }
    }
}
