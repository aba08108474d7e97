//! Closed loops: a user's next session begins when its last one is over. Where the load has stages, users
//! come and go. One that leaves awaits the answer to what it has sent, and leaves the rest of its session
//! undone.

use std::rc::Rc;
use std::time::Duration;

use lab_workload::Visit;
use lab_workload::timing::TimingStream;

use crate::client::Client;
use crate::user::{Clocks, Progress, Shared, User};
use lab_client::time::{Nanos, nanos};

/// When user `index` of `users` starts, after the trial's 0.
pub(crate) fn start_offset(ramp: Duration, index: u32, users: u32) -> Nanos {
    let offset = ramp.as_nanos() * u128::from(index) / u128::from(users.max(1));
    Nanos::try_from(offset).unwrap_or(Nanos::MAX)
}

/// What a user does.
#[derive(Debug)]
pub(crate) struct Plan {
    /// When it is there, on the worker's clock.
    pub(crate) visits: Vec<Visit>,
    /// Its sessions; any number of them unless said.
    pub(crate) sessions: Option<u32>,
    pub(crate) seed: u64,
    pub(crate) block: u32,
}

/// Repeats the user's session while it is there, or so many times.
pub(crate) async fn run_user<C: Client>(shared: Rc<Shared<C>>, mut user: Box<User<C>>, plan: Plan) {
    let clocks = Clocks::new(&shared.timers);
    let mut free_from = 0;
    for (number, visit) in (0..).zip(&plan.visits) {
        // The answer to its last request may have come after it was due back.
        let start = visit.from.max(free_from);
        user.timing = TimingStream::of_visit(plan.seed, plan.block, user.index, number);
        let mut state = Progress::from(start);
        state.until = visit.until;
        if !state.leaves() {
            clocks.pause.sleep_until(start).await;
            shared.recorder.borrow_mut().user_started();
            run_visit(&shared, &mut user, &mut state, (&clocks, plan.sessions)).await;
            if plan.sessions.is_some() {
                // The trial ends with the last of them.
                return;
            }
            shared.recorder.borrow_mut().user_left();
        }
        free_from = state.at;
    }
    // The trial goes on without it.
    std::future::pending::<()>().await;
}

/// Sessions until the user leaves, or so many.
async fn run_visit<C: Client>(
    shared: &Shared<C>,
    user: &mut User<C>,
    state: &mut Progress,
    (clocks, sessions): (&Clocks, Option<u32>),
) {
    let (start, pause) = (state.at, &clocks.pause);
    let pace = shared.script.pace.map(nanos).filter(|pace| *pace > 0);
    let mut left = sessions;
    while left != Some(0) && !state.leaves() {
        left = left.map(|left| left - 1);
        if sessions.is_some() && state.at < state.not_before {
            // The pause after a failure is no part of the next session's time.
            pause.sleep_until(state.not_before).await;
            state.at = state.not_before;
        }
        let begun = state.at;
        shared.recorder.borrow_mut().cycle(begun.max(start));
        state.moved = false;
        shared.cycle(user, state, clocks).await;
        if state.leaves() {
            return;
        }
        if sessions.is_some() && state.moved && state.well {
            let took = state.at.saturating_sub(begun.max(start));
            shared.recorder.borrow_mut().session(state.at, took);
        }
        if let Some(pace) = pace.filter(|_| left != Some(0)) {
            let next = begun.saturating_add(pace);
            if state.at > next {
                // Followed at once; planning goes on from here.
                shared.recorder.borrow_mut().overrun(state.at);
            } else {
                let next = next.min(state.until);
                pause.sleep_until(next).await;
                state.at = next;
                continue;
            }
        }
        if !state.moved {
            state.at = shared.idle(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use lab_client::http::HttpClient;

    use super::*;
    use crate::load::run_slot;
    use crate::timers::Timers;

    /// A million of them wait at the same time: what a request needs is had while it is under way alone.
    #[test]
    fn a_user_who_waits_is_small() {
        fn size<A, B, C, F>(_: fn(A, B, C) -> F) -> usize {
            size_of::<F>()
        }
        let user = size_of::<User<HttpClient<Timers>>>();
        let closed = size(run_user::<HttpClient<Timers>>);
        let arriving = size(run_slot::<HttpClient<Timers>>);
        println!("a user {user}, its loop {closed}, one that arrives {arriving} bytes");
        assert!(user + closed.max(arriving) < 1536);
    }

    #[test]
    fn users_start_evenly_over_the_ramp() {
        let ramp = Duration::from_secs(12);
        assert_eq!(start_offset(ramp, 0, 3), 0);
        assert_eq!(start_offset(ramp, 1, 3), 4_000_000_000);
        assert_eq!(start_offset(ramp, 2, 3), 8_000_000_000);
        assert_eq!(start_offset(Duration::MAX, 1, 2), Nanos::MAX);
    }
}
