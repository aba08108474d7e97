//! Whether the database responds, as far as readers know, and which reader checks. Pure: the time is an argument.
//!
//! The database counts as silent after a timeout without any recent response: one slow query proves nothing
//! about the others. Then one reader at a time checks whether it is up, and the others wait for the result,
//! or fail at once if it was down. Any response in the meantime proves that it is up.

use std::time::{Duration, Instant};

/// The pause after a failed check.
const PEACE: Duration = Duration::from_millis(200);

/// The permission of a new reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Ask,
    /// Checks the server on a session of its own, and reports the result to the waiting readers.
    FindOut {
        within: Duration,
    },
    /// Another reader checks.
    Wait,
    /// The server is down.
    Refused,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The server responded, even if with a rejection.
    Answer,
    /// The server accepts no connection, or is starting or shutting down.
    Nobody,
    /// No response within the time limit.
    Silence,
}

#[derive(Debug)]
pub(crate) struct Connectivity {
    state: State,
    /// The time of the last response.
    heard: Option<Instant>,
    /// The minimum and the maximum duration of a check.
    brief: Duration,
    longest: Duration,
}

#[derive(Debug, Clone, Copy)]
enum State {
    There,
    /// A response was missing: the next reader checks.
    Late,
    /// A reader checks. Others wait for the result, unless the server was down before.
    Asked {
        was_away: bool,
        within: Duration,
    },
    /// The server was down; no check starts before this time.
    Away {
        until: Instant,
        within: Duration,
    },
}

impl Connectivity {
    pub(crate) fn new(brief: Duration, longest: Duration) -> Self {
        Self {
            state: State::There,
            heard: None,
            brief,
            longest: longest.max(brief),
        }
    }

    /// Records a response. Returns true if the server was not known to be up.
    pub(crate) fn heard(&mut self, now: Instant) -> bool {
        self.heard = Some(now);
        let before = std::mem::replace(&mut self.state, State::There);
        !matches!(before, State::There)
    }

    /// Records a missing response. Returns true if the server counts as silent from now on: open
    /// sessions may be those of a lost machine.
    pub(crate) fn late(&mut self, now: Instant) -> bool {
        let is_silent = self
            .heard
            .is_none_or(|heard| now.saturating_duration_since(heard) >= self.brief);
        let is_news = is_silent && matches!(self.state, State::There);
        if is_news {
            self.state = State::Late;
        }
        is_news
    }

    /// Returns the permission of a new reader.
    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        let (was_away, within) = match self.state {
            State::There => return Turn::Ask,
            State::Asked { was_away: true, .. } => return Turn::Refused,
            State::Asked { .. } => return Turn::Wait,
            State::Away { until, .. } if now < until => return Turn::Refused,
            State::Away { within, .. } => (true, within),
            State::Late => (false, self.brief),
        };
        self.state = State::Asked { was_away, within };
        Turn::FindOut { within }
    }

    /// Records the result of a check. After each silent check the next one may take longer, while
    /// no other reader waits for it: an overloaded server may accept connections slowly.
    pub(crate) fn found_out(&mut self, found: Found, now: Instant) {
        let State::Asked { within, .. } = self.state else {
            // Another reader got a response in the meantime.
            return;
        };
        let away = |within| State::Away {
            until: now + PEACE,
            within,
        };
        self.state = match found {
            Found::Answer => {
                self.heard = Some(now);
                State::There
            }
            Found::Nobody => away(self.brief),
            Found::Silence => away((within * 2).min(self.longest)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    const BRIEF: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(4);

    fn after(begin: Instant, ms: u64) -> Instant {
        begin + Duration::from_millis(ms)
    }

    fn within(seconds: u64) -> Turn {
        let within = Duration::from_secs(seconds);
        Turn::FindOut { within }
    }

    #[test]
    fn a_look_that_takes_long_is_no_silence_while_others_are_answered() {
        let (mut reach, begin) = (Connectivity::new(BRIEF, LONGEST), now());
        reach.heard(begin);
        assert!(!reach.late(after(begin, 999)));
        assert_eq!(reach.turn(after(begin, 999)), Turn::Ask);
        assert!(reach.late(after(begin, 1000)));
        // Reported once only.
        assert!(!reach.late(after(begin, 1001)));
    }

    #[test]
    fn one_finds_out_and_the_others_wait_for_it_or_are_refused() {
        let (mut reach, begin) = (Connectivity::new(BRIEF, LONGEST), now());
        assert!(reach.late(begin));
        assert_eq!(reach.turn(begin), within(1));
        assert_eq!(reach.turn(begin), Turn::Wait);
        reach.found_out(Found::Silence, begin);
        assert_eq!(reach.turn(after(begin, 199)), Turn::Refused);
        // No reader waits for a repeated check, so that it may take longer.
        for (ms, seconds) in [(200, 2), (400, 4), (600, 4)] {
            let now = after(begin, ms);
            assert_eq!(reach.turn(now), within(seconds));
            assert_eq!(reach.turn(now), Turn::Refused);
            reach.found_out(Found::Silence, now);
        }
        assert_eq!(reach.turn(after(begin, 800)), within(4));
        reach.found_out(Found::Nobody, after(begin, 800));
        assert_eq!(reach.turn(after(begin, 1000)), within(1));
        reach.found_out(Found::Answer, after(begin, 1000));
        assert_eq!(reach.turn(after(begin, 1000)), Turn::Ask);
    }

    #[test]
    fn whatever_anybody_hears_shows_that_it_is_there() {
        let (mut reach, begin) = (Connectivity::new(BRIEF, LONGEST), now());
        assert!(!reach.heard(begin));
        assert!(reach.late(after(begin, 2000)));
        assert_eq!(reach.turn(after(begin, 2000)), within(1));
        // A response to another reader arrives before this check ends, and counts.
        assert!(reach.heard(after(begin, 2500)));
        reach.found_out(Found::Silence, after(begin, 3000));
        assert_eq!(reach.turn(after(begin, 3000)), Turn::Ask);
        assert!(!reach.late(after(begin, 3000)));
    }
}
