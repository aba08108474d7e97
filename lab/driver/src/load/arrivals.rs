//! Open loads: sessions arrive by the plan's stream, whether or not earlier ones have ended. Each runs on one of a
//! bounded number of connections.
//!
//! A session that finds no free connection waits. Its first request was planned for its arrival (and its first wait),
//! so the waiting is response time: omitting it would hide how far an overloaded server is behind. It is no lateness,
//! since the generator could not have sent earlier.

use std::future::{Future, poll_fn};

use lab_workload::timing::{ArrivalStream, ChoiceStream, TimingStream};

use crate::client::Client;
use crate::user::{Life, Member, Shared, User};
use lab_client::time::nanos;
use lab_queues::{Arrived, Fate, SlotId};
use lab_workload::part::Slice;

/// Produces this worker's arrivals at their planned times.
pub(crate) async fn run_arrivals<C: Client>(
    shared: Member<C>,
    stream: ArrivalStream,
    slice: Slice,
) {
    let pause = shared.timers.timer();
    for arrival in stream.filter(|arrival| slice.has(arrival.number)) {
        let at = shared.zero.get().saturating_add(nanos(arrival.at));
        // No later session can follow: a stream ends with the end of time.
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
            recorder.turned_away(at, shared.first_step, shared.transactions.session());
        }
    }
    // The trial continues after the last arrival of a recording.
    std::future::pending::<()>().await;
}

/// Runs one session after the other on the user's connection, until the task is dropped.
pub(crate) fn run_slot<C: Client>(
    shared: Member<C>,
    user: Box<User<C>>,
) -> impl Future<Output = ()> {
    let mut life = Life::new(user, &shared.timers);
    async move {
        loop {
            let slot = (shared.worker, life.user.place);
            free(&shared, slot);
            let given = poll_fn(|cx| {
                shared.client.poll_idle(&mut life.user.session, cx);
                shared.pool.lock().poll_session(slot, cx)
            });
            let given = given.await;
            begin(&shared, &mut life, given);
            shared.cycle(&mut life).await;
            shared.recorder.borrow_mut().user_left();
            if !life.state.moved {
                let until = shared.idle_until();
                life.sleep_until(&shared.client, until).await;
                life.state.at = until;
            }
        }
    }
}

/// Frees the slot for the next session.
fn free<C: Client>(shared: &Shared<C>, slot: SlotId) {
    let waiting = {
        let mut pool = shared.pool.lock();
        pool.release(slot);
        shared.waiting(&pool)
    };
    let waiting = (shared.population, waiting);
    shared.recorder.borrow_mut().waiting(waiting);
}

/// Starts an arrived session.
fn begin<C: Client>(shared: &Shared<C>, life: &mut Life<C>, given: Arrived) {
    let Arrived { number, at, .. } = given;
    let (user, state) = (&mut *life.user, &mut life.state);
    let (seed, block) = (shared.drive.seed, shared.drive.block);
    user.timing = TimingStream::of_session(seed, block, number);
    let choice = ChoiceStream::of_session(seed, block, number);
    user.scope.begin_session(number, choice);
    state.at = state.at.max(at);
    // The pause after failures of another session doesn't apply: arrivals bound the rate.
    (state.without_response, state.not_before) = (0, 0);
    state.arrived = Some(at);
    state.moved = false;
    let mut recorder = shared.recorder.borrow_mut();
    // Record the cycle first: it may end a window, and the session is not yet in that window.
    recorder.cycle(state.at);
    recorder.user_started();
}
