//! Open loads: sessions arrive by the plan's stream, whether or not earlier ones are over, and each
//! is carried out on a connection of a bounded number.
//!
//! A session that finds none free waits. Its first request was planned for its arrival (and its
//! first wait), so that the waiting is response time: leaving it out would hide how far an
//! overloaded server is behind. It is no lateness, for the generator could not have sent earlier.

use std::future::poll_fn;
use std::rc::Rc;

use lab_workload::timing::{ArrivalStream, ChoiceStream, TimingStream};

use super::pool::{Arrived, Fate};
use crate::client::Client;
use crate::part::Slice;
use crate::user::{Clocks, Progress, Shared, User};
use lab_client::time::{Nanos, nanos};

/// What the sessions of a trial are drawn from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) seed: u64,
    pub(crate) block: u32,
    pub(crate) stream: ArrivalStream,
}

/// Lets the sessions arrive that are this worker's.
pub(crate) async fn run_arrivals<C: Client>(
    shared: Rc<Shared<C>>,
    source: Source,
    zero: Nanos,
    slice: Slice,
) {
    let pause = shared.timers.timer();
    for arrival in source.stream.filter(|arrival| slice.has(arrival.number)) {
        let at = zero.saturating_add(nanos(arrival.at));
        // Behind it may come no other: a stream ends with the end of time.
        shared.within_trial(at).await;
        pause.sleep_until(at).await;
        let number = arrival.number;
        let worker = shared.worker;
        let arrived = Arrived { number, at, worker };
        let (fate, waiting) = {
            let mut pool = shared.pool.lock();
            (pool.arrive(arrived), shared.waiting(&pool))
        };
        let mut recorder = shared.recorder.borrow_mut();
        recorder.arrived(at, (shared.population, waiting));
        if fate == Fate::Dropped {
            recorder.dropped(at);
        }
    }
    // The trial goes on behind the last moment of a recording.
    std::future::pending::<()>().await;
}

/// Carries out session after session on the user's connection, until the task is dropped.
pub(crate) async fn run_slot<C: Client>(
    shared: Rc<Shared<C>>,
    mut user: Box<User<C>>,
    source: Source,
) {
    let clocks = Clocks::new(&shared.timers);
    let slot = (shared.worker, user.place);
    let mut state = Progress::from(0);
    loop {
        let waiting = {
            let mut pool = shared.pool.lock();
            pool.release(slot);
            shared.waiting(&pool)
        };
        let waiting = (shared.population, waiting);
        shared.recorder.borrow_mut().waiting(waiting);
        let given = poll_fn(|cx| shared.pool.lock().poll_session(slot, cx));
        let Arrived { number, at, .. } = given.await;
        user.timing = TimingStream::of_session(source.seed, source.block, number);
        let choice = ChoiceStream::of_session(source.seed, source.block, number);
        user.scope.begin_session(number, choice);
        state.at = state.at.max(at);
        // The pause after another session's failure isn't this one's: arrivals bound the rate.
        state.not_before = 0;
        state.arrived = Some(at);
        state.moved = false;
        {
            let mut recorder = shared.recorder.borrow_mut();
            recorder.user_started();
            recorder.cycle(state.at);
        }
        shared.cycle(&mut user, &mut state, &clocks).await;
        shared.recorder.borrow_mut().user_left();
        if !state.moved {
            state.at = shared.idle(&clocks.pause).await;
        }
    }
}
