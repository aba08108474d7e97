//! The flow of a session: its steps in order, skipped steps, loops, and retries. It knows no protocol, and not what
//! starts a session: see [`crate::load`].

use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use lab_workload::timing::SessionChoice;
use lab_workload::{Control, Round, Template, Visitor};

use crate::client::Client;
use crate::renewal::{Authorized, Need};
use crate::tokens::SharedToken;
use crate::user::{Due, Ended, Life, Next, Sending, Shared, User, Waiting};
use lab_client::time::Nanos;
use lab_client::{ErrorClass, Exchange, FailedRequest, Phases, RequestId};

/// The outcome of a round.
#[derive(Clone, Copy, Default)]
pub(crate) struct RoundOutcome {
    /// Whether anything was sent.
    pub(crate) sent: bool,
    pub(crate) timed_out: bool,
}

/// A due request.
pub(crate) struct DueRequest {
    pub(crate) request: RequestId,
    /// The step as which it counts.
    pub(crate) step: usize,
    pub(crate) due: Due,
    /// How long it waited for a slot among the parallel requests.
    pub(crate) blocked: Nanos,
    /// Whether it was rendered before, so that its first message is not rendered again.
    pub(crate) is_made: bool,
    /// The token that parallel requests share, for retries.
    pub(crate) token: Option<Rc<SharedToken>>,
}

/// A position in a session.
#[derive(Clone, Copy)]
struct Position {
    /// The step.
    step: u32,
    /// The round of its group, from 0.
    round: u32,
    /// Whether the plan contains it.
    planned: bool,
}

impl Position {
    fn of(step: usize) -> Self {
        Self {
            step: step as u32,
            round: 0,
            planned: true,
        }
    }

    fn index(self) -> usize {
        self.step as usize
    }
}

impl<C: Client> Shared<C> {
    /// Runs all steps of a session, once.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn keeps its arguments twice, in each user who waits"
    )]
    pub(crate) fn cycle(&self, life: &mut Life<C>) -> impl Future<Output = ()> {
        async move {
            if let Some(playing) = &self.playing {
                return drop(Box::pin(self.play(life, playing)).await);
            }
            if self.leases() {
                Box::pin(self.lease(life)).await;
            }
            self.begin_session(life);
            for (steps, control) in &self.script.blocks {
                // Ended transactions are ended only now, so that a waiting user keeps nothing for it.
                self.end_transactions(life, steps.start, Round::Session);
                self.begin_transactions(life, steps.start, Round::Session);
                match control {
                    Some(control) => Box::pin(self.group(life, steps.clone(), control)).await,
                    // The block is one step.
                    None => {
                        self.rounds(life, Position::of(steps.start)).await;
                    }
                }
            }
            self.end_transactions(life, self.script.session.len(), Round::Session);
            self.release(life);
        }
    }

    pub(crate) fn begin_session(&self, life: &mut Life<C>) {
        let user = &mut *life.user;
        if self.script.visitor == Visitor::New {
            user.session = self.client.session();
            self.parallel_sessions.end(user.place);
            user.scope.renew();
            self.forget_token(&mut user.scope);
        }
        user.scope.next_cycle();
        (life.state.well, life.state.breaks_off) = (true, false);
        self.set_leased(life);
        life.choice = SessionChoice::default();
    }

    /// Runs a group of steps, with its repetitions.
    async fn group(&self, life: &mut Life<C>, steps: Range<usize>, control: &Control) {
        let first = steps.start;
        if !self.is_chosen(life, first) {
            return;
        }
        if life.state.breaks_off || !self.begins(life, first, control) {
            let is_sure = control.when.is_none();
            return steps.for_each(|index| self.leave_out(life, Position::of(index), is_sure));
        }
        for round in 0..control.most_rounds(1) {
            let mut sent = false;
            life.user.scope.set_round(round);
            for index in steps.clone() {
                let place = Position {
                    round,
                    planned: round == 0,
                    ..Position::of(index)
                };
                self.begin_transactions(life, index, Round::Group);
                sent |= self.rounds(life, place).await;
                self.end_transactions(life, index + 1, Round::Group);
            }
            life.user.scope.set_round(round);
            // If a round sent nothing, the next rounds would send nothing either.
            if !sent || life.state.is_over() || self.is_over(life, first, control) {
                return;
            }
        }
        self.cut_off(first, control);
    }

    /// Runs a step, with its repetitions: its wait each time, then its requests. Returns true if anything was sent.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn keeps its arguments twice, in each user who waits"
    )]
    fn rounds(&self, life: &mut Life<C>, place: Position) -> impl Future<Output = bool> {
        async move {
            let Some(most) = self.most_rounds(life, place) else {
                return false;
            };
            let (mut round, mut sent) = (0, false);
            while round < most {
                let waiting = self.begin_round(life, place, (round, most));
                if let Some(until) = Self::sleeps_until(life, &waiting) {
                    life.sleep_until(&self.client, until).await;
                }
                let outcome = match self.end_wait(life, place.index(), &waiting) {
                    // On the heap, so that waiting users are small; built there after its allocation, not copied.
                    Some(due) => {
                        let block = Box::new_uninit();
                        Box::into_pin(Box::write(block, self.requests(life, place.index(), due)))
                            .await
                    }
                    None => RoundOutcome::default(),
                };
                sent |= outcome.sent;
                round += 1;
                if self.was_last(life, place, (round, outcome)) {
                    return sent;
                }
            }
            if let Some(control) = self.script.session[place.index()].looped() {
                self.cut_off(place.index(), control);
            }
            sent
        }
    }

    /// Begins a round, with its wait.
    fn begin_round(
        &self,
        life: &mut Life<C>,
        place: Position,
        (round, most): (u32, u32),
    ) -> Waiting {
        let shown = if most == 1 { place.round } else { round };
        life.user.scope.set_round(shown);
        let step = &self.script.session[place.index()];
        let planned = place.planned && round < step.planned_rounds;
        self.begin_wait(life, (place.index(), planned))
    }

    /// Returns the maximum number of rounds of a step; `None` if it is skipped.
    fn most_rounds(&self, life: &mut Life<C>, place: Position) -> Option<u32> {
        let index = place.index();
        let step = &self.script.session[index];
        if step.requests.is_empty() || life.state.leaves() || !self.is_chosen(life, index) {
            return None;
        }
        let control = step.control.as_deref();
        let begins = |life: &mut Life<C>| control.is_none_or(|one| self.begins(life, index, one));
        if life.state.breaks_off || !begins(life) {
            self.leave_out(life, place, true);
            return None;
        }
        Some(control.map_or(step.repeat, |control| control.most_rounds(step.repeat)))
    }

    /// Returns true if the step ends after this round. `round` counts from 1.
    fn was_last(
        &self,
        life: &mut Life<C>,
        place: Position,
        (round, outcome): (u32, RoundOutcome),
    ) -> bool {
        let index = place.index();
        if life.state.breaks_off && place.planned {
            let step = &self.script.session[index];
            let left = step.planned_rounds.saturating_sub(round);
            life.user.timing.pass_over(left);
            self.rounds_not_reached(life, index, left);
        }
        if life.state.is_over() || (outcome.timed_out && self.timeout_ends_step) {
            return true;
        }
        let looped = self.script.session[index].looped();
        looped.is_some_and(|control| !outcome.sent || self.is_over(life, index, control))
    }

    /// Sends the requests of a step.
    async fn requests(&self, life: &mut Life<C>, index: usize, due: Due) -> RoundOutcome {
        let Some(parallel) = self.script.session[index].parallel.as_deref() else {
            return self.in_turn(life, index, due).await.0;
        };
        self.begin_transactions(life, index, Round::Step);
        let (mut outcome, due) = self.in_turn(life, index, due).await;
        let mut due = due.map(|due| (due, 0));
        if let Some((after, _)) = due
            && self.lacks_token(&mut life.user.scope, parallel.requests(), None)
        {
            due = Box::pin(self.authorized(life, index, after, &mut outcome)).await;
        }
        if let Some(due) = due {
            self.rotate(life);
            let beside = Box::pin(self.parallel(life, (index, parallel), due)).await;
            outcome.sent |= beside.sent;
            outcome.timed_out |= beside.timed_out;
        }
        self.end_transactions(life, index + 1, Round::Step);
        outcome
    }

    /// Sends the sequential requests, until one is skipped or fails. Returns when the next one is due, if none was
    /// skipped or failed.
    async fn in_turn(
        &self,
        life: &mut Life<C>,
        index: usize,
        mut due: Due,
    ) -> (RoundOutcome, Option<Due>) {
        let step = &self.script.session[index];
        let parallel = step.parallel.as_ref();
        let last = parallel.map_or(step.requests.end, |parallel| parallel.first);
        let mut outcome = RoundOutcome::default();
        if self.takes(index) {
            let Some(taken) = Box::pin(self.take(life, index, due)).await else {
                self.forget_rest(step, step.requests.start, &mut life.user.scope);
                return (outcome, None);
            };
            due = taken;
        }
        for request in step.requests.start..last {
            let mut blocked = 0;
            if self.lacks_token(&mut life.user.scope, request..request + 1, None) {
                let authorized = Box::pin(self.authorized(life, index, due, &mut outcome)).await;
                let Some(authorized) = authorized else {
                    self.forget_rest(step, request, &mut life.user.scope);
                    return (outcome, None);
                };
                (due, blocked) = authorized;
            }
            let due_request = DueRequest {
                request,
                step: index,
                due,
                blocked,
                is_made: false,
                token: None,
            };
            self.rotate(life);
            let ended = self.request(life, index, due_request).await;
            outcome.sent |= ended.from.is_some();
            if ended.well && request + 1 == step.requests.end {
                self.put(life, index);
            }
            if ended.class.is_some() && !life.state.leaves() {
                life.state.breaks_off |= step.ends_session;
                self.not_reached(life, index, last - request - 1);
                for part in step.parallel.iter().flat_map(|parallel| parallel.once()) {
                    self.not_reached(life, index + part.counts_as, 1);
                }
            }
            if !ended.well || life.state.leaves() {
                self.forget_rest(step, request, &mut life.user.scope);
                outcome.timed_out = ended.timed_out();
                return (outcome, None);
            }
            due = Due {
                planned: None,
                meant: life.state.at,
            };
        }
        (outcome, Some(due))
    }

    /// Returns when a request of a step is due, and how long it waited for a token. `None` if the user has no token, so
    /// that the rest of the step is skipped, or if the user leaves.
    async fn authorized(
        &self,
        life: &mut Life<C>,
        index: usize,
        due: Due,
        outcome: &mut RoundOutcome,
    ) -> Option<(Due, Nanos)> {
        let need = Need {
            step: Some(index),
            parallel_token: None,
        };
        match self.authorize(life, due, need).await {
            Authorized::Due(due, waited) => Some((due, waited)),
            Authorized::Without(was_sent) => {
                outcome.sent |= was_sent;
                life.state.well = false;
                self.clear_under_way(life.user.place);
                if !life.state.leaves() {
                    self.transactions.ended(life.user.place, None, None);
                    self.skip(index);
                }
                None
            }
        }
    }

    /// Counts a skipped step.
    pub(crate) fn skip(&self, step: usize) {
        let now = self.clock.nanos();
        let step = self.first_step + step;
        self.recorder.borrow_mut().skipped(now, step);
    }

    /// Sends one request with its redirects, and with its retries if it fails.
    pub(crate) async fn request(
        &self,
        life: &mut Life<C>,
        index: usize,
        mut due_request: DueRequest,
    ) -> Requested {
        let (request, step, mut due) = (due_request.request, due_request.step, due_request.due);
        let retry = self.script.session[index].retry.as_ref();
        let mut left = retry.map_or(0, |retry| retry.at_most);
        let mut sending = Sending::new(step, due, due_request.blocked);
        loop {
            self.within_trial(due.meant).await;
            self.begins_at(life, step, sending.meant());
            sending.retry_until = (left > 0).then_some(life.state.until);
            let is_made = std::mem::take(&mut due_request.is_made);
            // In a block of its own, so that the future keeps no room for it during later waits.
            let ended = {
                let mut exchange = self.send(&mut life.user, request, is_made).await;
                let measured = self.measured(&mut life.user, (index, request), &mut exchange);
                self.record((exchange, measured), &mut sending, due)
            };
            life.state.take(&ended, due, self.failure_pause);
            match (ended.next, retry) {
                (Next::Redirect, _) => {
                    due = Due {
                        planned: None,
                        meant: life.state.at,
                    };
                }
                (Next::Retry, Some(retry)) => {
                    let retries = retry.at_most - left;
                    left -= 1;
                    due = self
                        .wait_to_retry(life, (step, retry, retries), &sending)
                        .await;
                    let mut is_sent_again = !life.state.leaves();
                    let (scope, one) = (&mut life.user.scope, request..request + 1);
                    if is_sent_again && self.lacks_token(scope, one, due_request.token.as_deref()) {
                        let need = Need {
                            step: None,
                            parallel_token: due_request.token.as_deref(),
                        };
                        match Box::pin(self.authorize(life, due, need)).await {
                            Authorized::Due(after, _) => due = after,
                            Authorized::Without(_) => is_sent_again = false,
                        }
                    }
                    self.record_failed(&mut sending, is_sent_again);
                    if !is_sent_again {
                        life.state.well = false;
                        return self.requested(life, &sending, &ended);
                    }
                    self.client.again(&mut life.user.session, request);
                }
                _ => return self.requested(life, &sending, &ended),
            }
        }
    }

    /// Marks a request of this step as in progress since its intended send time.
    pub(crate) fn begins_at(&self, life: &Life<C>, step: usize, meant: Nanos) {
        self.set_under_way(life.user.place, step, meant);
        self.transactions.due(life.user.place, meant);
    }

    /// Ends a request with its redirects and retries.
    pub(crate) fn requested(&self, life: &Life<C>, sending: &Sending, last: &Ended) -> Requested {
        let (place, from) = (life.user.place, sending.counts_from());
        self.clear_under_way(place);
        self.transactions.ended(place, from, last.class);
        Requested {
            from,
            well: last.well,
            class: last.class,
            phases: sending.phases,
        }
    }

    /// Begins the transactions that begin with this step.
    fn begin_transactions(&self, life: &Life<C>, step: usize, each: Round) {
        for (place, one) in self.script.transactions.iter().enumerate() {
            if one.steps.start == step && one.each == each {
                self.transactions.begin(life.user.place, one.level, place);
            }
        }
    }

    /// Ends the transactions that end before this step, inner ones first.
    fn end_transactions(&self, life: &Life<C>, step: usize, each: Round) {
        let (user, now, leaves) = (life.user.place, life.state.at, life.state.leaves());
        for one in self.script.transactions.iter().rev() {
            if one.steps.end == step && one.each == each {
                let ended = self.transactions.end(user, one.level, now, leaves);
                let mut recorder = self.recorder.borrow_mut();
                ended
                    .into_iter()
                    .for_each(|one| recorder.transaction(now, one));
            }
        }
    }

    /// Returns the numbers in a response, each with the index of its measure. A value that is no number makes the
    /// request fail.
    fn measured(
        &self,
        user: &mut User<C>,
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
            if let Err(told) = measure.read(&mut user.scope, &mut numbers) {
                *result = Err(FailedRequest::new(ErrorClass::Check, told));
                return Vec::new();
            }
            measured.extend(numbers.drain(..).map(|number| (place, number)));
        }
        measured
    }

    /// Returns true if the session's random choice includes this step.
    fn is_chosen(&self, life: &mut Life<C>, index: usize) -> bool {
        let chance = self.script.session[index].chance.as_ref();
        life.choice.does(chance, &mut life.user.timing)
    }

    /// Returns true if the control's condition lets the steps from this one on begin.
    fn begins(&self, life: &mut Life<C>, index: usize, control: &Control) -> bool {
        let Some(when) = &control.when else {
            return true;
        };
        self.holds(life, index, when).unwrap_or(false)
    }

    /// Skips a step because of earlier responses. Its planned waits are skipped, too, so that later waits match the
    /// plan. `is_sure`: no condition could have skipped it.
    fn leave_out(&self, life: &mut Life<C>, place: Position, is_sure: bool) {
        let step = &self.script.session[place.index()];
        if place.planned {
            life.user.timing.pass_over(step.planned_rounds);
        }
        let is_sure = is_sure && step.control.iter().all(|control| control.when.is_none());
        if place.planned && is_sure && life.state.breaks_off && !self.takes(place.index()) {
            self.rounds_not_reached(life, place.index(), step.planned_rounds);
        }
        self.client.left_out(step.requests.start);
    }

    /// Records planned rounds of a step that are not begun because an earlier request failed.
    fn rounds_not_reached(&self, life: &Life<C>, index: usize, rounds: u32) {
        for (counts_as, requests) in &self.script.session[index].surely {
            self.not_reached(life, index + counts_as, rounds * requests);
        }
    }

    /// Records planned requests of a step that are not sent because an earlier one failed.
    pub(crate) fn not_reached(&self, life: &Life<C>, index: usize, requests: u32) {
        if requests > 0 {
            let step = self.first_step + index;
            let mut recorder = self.recorder.borrow_mut();
            recorder.record_unreached(life.state.at, step, requests);
        }
    }

    /// Returns true if a round was the last one by its condition.
    fn is_over(&self, life: &mut Life<C>, index: usize, control: &Control) -> bool {
        match &control.until {
            Some(until) => self.holds(life, index, &until.condition).unwrap_or(true),
            None => true,
        }
    }

    /// Returns whether a condition holds; `None`, with a failed request recorded, if it can't be evaluated.
    fn holds(&self, life: &mut Life<C>, index: usize, condition: &Template) -> Option<bool> {
        condition
            .holds(&mut life.user.scope)
            .map_err(|error| self.unmade(life, index, error.to_string()))
            .ok()
    }

    /// Records that the input of a step could not be rendered: a failed request, like one that can't be sent.
    pub(crate) fn unmade(&self, life: &mut Life<C>, index: usize, detail: String) {
        life.state.well = false;
        life.state.breaks_off |= self.script.session[index].ends_session;
        let class = Some(ErrorClass::Check);
        self.transactions.ended(life.user.place, None, class);
        let (now, step) = (self.clock.nanos(), self.first_step + index);
        self.recorder.borrow_mut().unmade(now, step, detail.into());
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

/// The outcome of a request, with its redirects and retries.
pub(crate) struct Requested {
    /// The start of its response time; `None` if it wasn't sent.
    pub(crate) from: Option<Nanos>,
    pub(crate) well: bool,
    pub(crate) class: Option<ErrorClass>,
    /// Sums over its messages.
    pub(crate) phases: Phases,
}

impl Requested {
    pub(crate) fn timed_out(&self) -> bool {
        self.class == Some(ErrorClass::Timeout)
    }
}
