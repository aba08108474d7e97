//! Closed loops: a user's next session begins when its last one is over.

use std::rc::Rc;
use std::time::Duration;

use crate::client::Client;
use crate::user::{Clocks, Progress, Shared, User};
use lab_client::time::{Nanos, nanos};

/// When user `index` of `users` starts, after the trial's 0.
pub(crate) fn start_offset(ramp: Duration, index: u32, users: u32) -> Nanos {
    let offset = ramp.as_nanos() * u128::from(index) / u128::from(users.max(1));
    Nanos::try_from(offset).unwrap_or(Nanos::MAX)
}

/// Repeats the user's session from `start` on: `sessions` times, or until the task is dropped.
pub(crate) async fn run_session<C: Client>(
    shared: Rc<Shared<C>>,
    mut user: Box<User<C>>,
    start: Nanos,
    sessions: Option<u32>,
) {
    let clocks = Clocks::new(&shared.timers);
    let pause = &clocks.pause;
    let pace = shared.script.pace.map(nanos).filter(|pace| *pace > 0);
    pause.sleep_until(start).await;
    shared.recorder.borrow_mut().user_started();
    let mut state = Progress::from(start);
    let mut left = sessions;
    while left != Some(0) {
        left = left.map(|left| left - 1);
        if sessions.is_some() && state.at < state.not_before {
            // The pause after a failure is no part of the next session's time.
            pause.sleep_until(state.not_before).await;
            state.at = state.not_before;
        }
        let begun = state.at;
        shared.recorder.borrow_mut().cycle(begun.max(start));
        state.moved = false;
        shared.cycle(&mut user, &mut state, &clocks).await;
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
