//! Closed loops: a user's next session begins when its last one has ended. If the load has stages, users start and
//! leave. A leaving user waits for the response to its last request, and skips the rest of its session.

use std::future::Future;

use lab_workload::timing::TimingStream;
use lab_workload::{LoadKind, Visit};

use crate::client::Client;
use crate::user::{Life, Member, Progress, Shared, User};
use lab_client::time::{Nanos, nanos};

impl<C: Client> Shared<C> {
    /// Returns true if the number of sessions is fixed.
    fn is_sequence(&self) -> bool {
        matches!(self.drive.kind, LoadKind::Sequence { .. })
    }

    /// Returns true if a user has another session after it began this many.
    fn has_session(&self, begun: u32) -> bool {
        match self.drive.kind {
            LoadKind::Sequence { shared: true, .. } => self.left.get().1 > 0,
            LoadKind::Sequence { sessions, .. } => begun < sessions,
            LoadKind::Users | LoadKind::Arrival { .. } => true,
        }
    }

    /// Counts a session that begins.
    fn take_session(&self) {
        let (users, sessions) = self.left.get();
        self.left.set((users, sessions.saturating_sub(1)));
    }

    /// Counts a user whose sequence ends. Returns true for the last one.
    fn end_user(&self) -> bool {
        let (users, sessions) = self.left.get();
        self.left.set((users.saturating_sub(1), sessions));
        users <= 1
    }
}

/// Repeats the user's session while the user is active, or a fixed number of times.
pub(crate) fn run_user<C: Client>(
    shared: Member<C>,
    user: Box<User<C>>,
) -> impl Future<Output = ()> {
    let mut life = Life::new(user, &shared.timers);
    async move {
        let mut number = 0;
        while let Some(Visit { from, until }) = shared.visit(life.user.index, number) {
            // The response to the last request may have arrived after the next start was due.
            life.state = Progress::from(from.max(life.state.at));
            life.state.until = until;
            life.user.timing = timing(&shared, life.user.index, number);
            if !life.state.leaves() {
                let until = life.state.at;
                life.sleep_until(&shared.client, until).await;
                shared.recorder.borrow_mut().user_started();
                run_visit(&shared, &mut life).await;
                if shared.is_sequence() && shared.end_user() {
                    // The trial ends with the last session.
                    return;
                }
                shared.recorder.borrow_mut().user_left();
            }
            number += 1;
        }
        // The trial continues without the user.
        std::future::pending::<()>().await;
    }
}

/// Returns the random stream for the waits of a user's nth visit, from 0.
fn timing<C: Client>(shared: &Shared<C>, index: u32, visit: u32) -> TimingStream {
    let (seed, block) = (shared.drive.seed, shared.drive.block);
    TimingStream::of_visit(seed, block, index, visit)
}

/// Runs sessions until the user leaves, or a fixed number.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn keeps its arguments twice, in each user who waits"
)]
fn run_visit<C: Client>(shared: &Shared<C>, life: &mut Life<C>) -> impl Future<Output = ()> {
    async move {
        let (mut sessions, is_sequence) = (0, shared.is_sequence());
        while shared.has_session(sessions) && !life.state.leaves() {
            sessions = u32::saturating_add(sessions, 1);
            shared.take_session();
            if is_sequence && life.state.at < life.state.not_before {
                let until = count_pause(shared, &life.state);
                life.sleep_until(&shared.client, until).await;
                life.state.at = life.state.not_before;
            }
            let begun = life.state.at;
            shared.recorder.borrow_mut().cycle(begun);
            life.state.moved = false;
            shared.cycle(life).await;
            if life.state.leaves() {
                return;
            }
            if is_sequence && life.state.moved && life.state.well {
                let took = life.state.at.saturating_sub(begun);
                shared.recorder.borrow_mut().session(life.state.at, took);
            }
            let more = shared.has_session(sessions);
            let next = more
                .then(|| next_begins(shared, &life.state, begun))
                .flatten();
            let next = next.or_else(|| {
                // A cycle in which nothing took time must not spin.
                (!life.state.moved).then(|| shared.idle_until())
            });
            if let Some(next) = next {
                life.sleep_until(&shared.client, next).await;
                life.state.at = next;
            }
        }
    }
}

/// Counts the pause after failures, which is no part of the next session's time, and returns its end.
fn count_pause<C: Client>(shared: &Shared<C>, state: &Progress) -> Nanos {
    let lasts = state.not_before - state.at;
    let mut recorder = shared.recorder.borrow_mut();
    recorder.paused(state.at, shared.first_step, lasts);
    state.not_before
}

/// Returns when the next session begins by the workload's pace; `None` if there is none, or if the last one took
/// longer: then the next follows at once, and planning continues from there.
fn next_begins<C: Client>(shared: &Shared<C>, state: &Progress, begun: Nanos) -> Option<Nanos> {
    let pace = shared.script.pace.map(nanos).filter(|pace| *pace > 0);
    let next = begun.saturating_add(pace?);
    if state.at > next {
        shared.recorder.borrow_mut().overrun(state.at);
        return None;
    }
    Some(next.min(state.until))
}

#[cfg(test)]
mod tests {
    use lab_client::http::HttpClient;

    use super::*;
    use crate::load::run_slot;
    use crate::timers::Timers;

    /// A million users wait at the same time, so memory for a request is held only while it is in progress. The runtime
    /// keeps 104 bytes beside a task's future, and rounds up to 128.
    #[test]
    fn a_user_who_waits_is_small() {
        fn size<A, B, F>(_: fn(A, B) -> F) -> usize {
            size_of::<F>()
        }
        let user = size_of::<User<HttpClient<Timers>>>();
        let closed = size(run_user::<HttpClient<Timers>>);
        let arriving = size(run_slot::<HttpClient<Timers>>);
        let said = format!("a user {user}, its loop {closed}, one that arrives {arriving} bytes");
        println!("{said}");
        assert!(user <= 320 && closed.max(arriving) + 104 <= 384, "{said}");
    }
}
