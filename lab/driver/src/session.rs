//! What a session does next: its steps in order, those that a draw or a condition leaves out, loops, and
//! retries. It knows no protocol, and not what makes a session begin: see [`crate::load`].

use std::ops::Range;

use lab_workload::timing::SessionChoice;
use lab_workload::{Control, Template, Visitor};

use crate::client::Client;
use crate::user::{Clocks, Due, Ended, Progress, Shared, User};
use lab_client::{ErrorClass, Exchange, Failure, RequestId};

/// How a round went.
#[derive(Clone, Copy, Default)]
struct Went {
    /// Whether anything was sent.
    sent: bool,
    timed_out: bool,
}

/// A session under way.
struct Walk<'a, C: Client> {
    user: &'a mut User<C>,
    state: &'a mut Progress,
    clocks: &'a Clocks,
    choice: SessionChoice,
}

/// Where in its session, and by whose doing.
#[derive(Clone, Copy)]
struct Place {
    /// The step.
    index: usize,
    /// The round of its group, from 0.
    round: u32,
    /// Whether the plan knows of it.
    planned: bool,
}

impl<C: Client> Shared<C> {
    /// All steps of a session, once.
    pub(crate) async fn cycle(&self, user: &mut User<C>, state: &mut Progress, clocks: &Clocks) {
        if self.script.visitor == Visitor::New {
            user.session = self.client.session();
            user.scope.renew();
        }
        user.scope.next_cycle();
        state.well = true;
        let mut walk = Walk {
            user,
            state,
            clocks,
            choice: SessionChoice::default(),
        };
        for (steps, control) in &self.script.blocks {
            match control {
                Some(control) => Box::pin(self.group(&mut walk, steps.clone(), control)).await,
                None => {
                    for index in steps.clone() {
                        let place = Place {
                            index,
                            round: 0,
                            planned: true,
                        };
                        self.rounds(&mut walk, place).await;
                    }
                }
            }
        }
    }

    /// A group of steps, as often as it is done.
    async fn group(&self, walk: &mut Walk<'_, C>, steps: Range<usize>, control: &Control) {
        let first = steps.start;
        if !self.is_chosen(walk, first) {
            return;
        }
        if !self.begins(walk, first, control) {
            return steps.for_each(|index| self.leave_out(walk, index, true));
        }
        for round in 0..control.most_rounds(1) {
            let mut sent = false;
            for index in steps.clone() {
                let place = Place {
                    index,
                    round,
                    planned: round == 0,
                };
                sent |= self.rounds(walk, place).await;
            }
            walk.user.scope.set_round(round);
            // A round in which nothing could be sent would be followed by others like it.
            if !sent || walk.state.leaves() || self.is_over(walk, first, control) {
                return;
            }
        }
        self.cut_off(first, control);
    }

    /// A step, as often as it is done. Tells whether anything was sent.
    async fn rounds(&self, walk: &mut Walk<'_, C>, place: Place) -> bool {
        let index = place.index;
        let step = &self.script.session[index];
        if walk.state.leaves() || !self.is_chosen(walk, index) {
            return false;
        }
        let control = step.control.as_deref();
        if control.is_some_and(|control| !self.begins(walk, index, control)) {
            self.leave_out(walk, index, place.planned);
            return false;
        }
        let most = control.map_or(step.repeat, |control| control.most_rounds(step.repeat));
        let looped = control.filter(|control| control.until.is_some());
        let mut sent = false;
        for round in 0..most {
            let shown = if most == 1 { place.round } else { round };
            walk.user.scope.set_round(shown);
            let planned = place.planned && round < step.planned_rounds;
            let went = self.step(walk, index, planned).await;
            sent |= went.sent;
            if walk.state.leaves() || (went.timed_out && self.timeout_ends_step) {
                return sent;
            }
            if let Some(control) = looped
                && (!went.sent || self.is_over(walk, index, control))
            {
                return sent;
            }
        }
        if let Some(control) = looped {
            self.cut_off(index, control);
        }
        sent
    }

    /// One step: its wait, then its requests one after the other until one is skipped or fails.
    async fn step(&self, walk: &mut Walk<'_, C>, index: usize, planned: bool) -> Went {
        let step = &self.script.session[index];
        let pause = &walk.clocks.pause;
        let due = self.wait(walk.user, (index, planned), walk.state, pause);
        let Some(mut due) = due.await else {
            return Went::default();
        };
        let mut went = Went::default();
        for request in step.requests.clone() {
            // On the heap, so that a user who waits is small: most wait most of the time.
            let ended = Box::pin(self.request(walk, index, (request, due))).await;
            went.sent |= ended.sent;
            if !ended.well || walk.state.leaves() {
                self.forget_rest(step, request, &mut walk.user.scope);
                went.timed_out = ended.timed_out;
                return went;
            }
            due = Due {
                planned: None,
                meant: walk.state.at,
                retry: None,
            };
        }
        went
    }

    /// One request with its redirects, and with its retries where it fails.
    async fn request(
        &self,
        walk: &mut Walk<'_, C>,
        index: usize,
        (request, mut due): (RequestId, Due),
    ) -> Requested {
        let retry = self.script.session[index].retry;
        let mut left = retry.map_or(0, |retry| retry.at_most);
        let mut sent = false;
        loop {
            self.within_trial(due.meant).await;
            let meant = due.planned.unwrap_or(due.meant);
            self.under_way(walk.user.place).set(meant.max(1));
            let mut exchange = self.send(walk.user, request, walk.clocks).await;
            self.under_way(walk.user.place).set(0);
            let redirected = exchange.redirected();
            let measured = self.measured(walk.user, (index, request), &mut exchange);
            let ended = self.record((exchange, measured), index, due);
            walk.state.take(&ended, due);
            sent |= ended.at.is_some();
            let goes_on = !walk.state.leaves();
            match retry.filter(|_| goes_on && !ended.well && ended.at.is_some() && left > 0) {
                Some(retry) => {
                    left -= 1;
                    let pause = &walk.clocks.pause;
                    let waited = self.wait_to_retry(walk.user, &retry.wait, walk.state, pause);
                    due = waited.await;
                    if walk.state.leaves() {
                        return Requested::of(sent, &ended);
                    }
                    self.client.again(&mut walk.user.session, request);
                }
                None if ended.well && redirected && goes_on => {
                    due = Due {
                        planned: None,
                        meant: walk.state.at,
                        retry: None,
                    };
                }
                None => return Requested::of(sent, &ended),
            }
        }
    }

    /// The numbers that an answer told, each with the place of its measure. A value that is no number makes the
    /// request a failed one.
    fn measured(
        &self,
        user: &User<C>,
        (index, request): (usize, RequestId),
        exchange: &mut Exchange,
    ) -> Vec<(usize, u64)> {
        let step = &self.script.session[index];
        let (mut measured, mut numbers) = (Vec::new(), Vec::new());
        let Exchange::Done {
            result: result @ Ok(()),
            redirected: false,
            ..
        } = exchange
        else {
            return measured;
        };
        let at = (request - step.requests.start) as usize;
        let measures = step.measures.iter().enumerate();
        for (place, measure) in measures.filter(|(_, measure)| measure.request == at) {
            if let Err(told) = measure.read(&user.scope, &mut numbers) {
                let (class, detail) = (ErrorClass::Check, told.into());
                *result = Err(Failure { class, detail });
                return Vec::new();
            }
            measured.extend(numbers.drain(..).map(|number| (place, number)));
        }
        measured
    }

    /// Whether the session's draws have it do this step.
    fn is_chosen(&self, walk: &mut Walk<'_, C>, index: usize) -> bool {
        let chance = self.script.session[index].chance.as_ref();
        walk.choice.does(chance, &mut walk.user.timing)
    }

    /// Whether what is controlled, from this step on, begins at all.
    fn begins(&self, walk: &mut Walk<'_, C>, index: usize, control: &Control) -> bool {
        let Some(when) = &control.when else {
            return true;
        };
        self.holds(walk, index, when).unwrap_or(false)
    }

    /// Leaves a step out for what came. Its waits are passed over, so that later ones are the plan's.
    fn leave_out(&self, walk: &mut Walk<'_, C>, index: usize, planned: bool) {
        let step = &self.script.session[index];
        if planned {
            walk.user.timing.pass_over(step.planned_rounds);
        }
        self.client.left_out(step.requests.start);
    }

    /// Whether a round was the last one by its condition.
    fn is_over(&self, walk: &mut Walk<'_, C>, index: usize, control: &Control) -> bool {
        match &control.until {
            Some(until) => self.holds(walk, index, &until.condition).unwrap_or(true),
            None => true,
        }
    }

    /// Whether a condition holds; `None`, and a failed request, where it can't be judged.
    fn holds(&self, walk: &mut Walk<'_, C>, index: usize, condition: &Template) -> Option<bool> {
        condition
            .holds(&mut walk.user.scope)
            .map_err(|error| {
                walk.state.well = false;
                let detail = error.to_string().into();
                let now = self.clock.nanos();
                let step = self.first_step + index;
                self.recorder.borrow_mut().unmade(now, step, detail);
            })
            .ok()
    }

    /// Counts a loop that ended by its bound.
    fn cut_off(&self, index: usize, control: &Control) {
        if control.until.is_some() {
            let now = self.clock.nanos();
            let step = self.first_step + index;
            self.recorder.borrow_mut().cut_off(now, step);
        }
    }
}

/// How a request went, with its redirects and retries.
struct Requested {
    sent: bool,
    well: bool,
    timed_out: bool,
}

impl Requested {
    /// By how the last of them did.
    fn of(sent: bool, last: &Ended) -> Self {
        Self {
            sent,
            well: last.well,
            timed_out: last.timed_out,
        }
    }
}
