//! What readers know of whether the database answers, and who of them finds out. Pure: the time is an argument.
//!
//! It is silent where somebody has waited for an answer in vain and nobody has had one lately: a single look that takes
//! long says nothing of the others'. Then one reader at a time finds out whether it is there, and the others wait for
//! that, or are told at once that it is away. Whatever anybody hears of it meanwhile shows that it is there.

use std::time::{Duration, Instant};

/// Time in which nobody asks a server that was away.
const PEACE: Duration = Duration::from_millis(200);

/// What a reader who comes may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Ask,
    /// Asks on a session of its own, and tells what it found: the others want to know whether anybody is there.
    FindOut {
        within: Duration,
    },
    /// Somebody finds out.
    Wait,
    /// It is away.
    Refused,
}

/// What somebody found who was to find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is there, even if it said no.
    Answer,
    /// Nobody takes connections there, or it says itself that it comes or goes.
    Nobody,
    /// Nothing, as long as it was waited for.
    Silence,
}

#[derive(Debug)]
pub(crate) struct Reach {
    state: State,
    /// When anybody last had an answer.
    heard: Option<Instant>,
    /// How long whoever finds out waits at first, and how long at most.
    brief: Duration,
    longest: Duration,
}

#[derive(Debug, Clone, Copy)]
enum State {
    There,
    /// Somebody waited for an answer in vain: the next reader finds out.
    Late,
    /// Somebody finds out. Others wait for that, unless it was away before.
    Asked {
        was_away: bool,
        within: Duration,
    },
    /// It was away, and nobody asks again before this.
    Away {
        until: Instant,
        within: Duration,
    },
}

impl Reach {
    pub(crate) fn new(brief: Duration, longest: Duration) -> Self {
        Self {
            state: State::There,
            heard: None,
            brief,
            longest: longest.max(brief),
        }
    }

    /// Somebody had an answer. True if that is news.
    pub(crate) fn heard(&mut self, now: Instant) -> bool {
        self.heard = Some(now);
        let before = std::mem::replace(&mut self.state, State::There);
        !matches!(before, State::There)
    }

    /// Somebody waited for an answer in vain. True if the server is silent since: what sessions there are may be of a
    /// machine that is gone.
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

    /// Somebody comes.
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

    /// Who was to find out has done so. One that is away is waited for longer each time, when nobody else waits for that:
    /// it may be so busy that it takes long to let anybody in.
    pub(crate) fn found_out(&mut self, found: Found, now: Instant) {
        let State::Asked { within, .. } = self.state else {
            // Somebody has had an answer since.
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
        let (mut reach, begin) = (Reach::new(BRIEF, LONGEST), now());
        reach.heard(begin);
        assert!(!reach.late(after(begin, 999)));
        assert_eq!(reach.turn(after(begin, 999)), Turn::Ask);
        assert!(reach.late(after(begin, 1000)));
        // Once is enough.
        assert!(!reach.late(after(begin, 1001)));
    }

    #[test]
    fn one_finds_out_and_the_others_wait_for_it_or_are_refused() {
        let (mut reach, begin) = (Reach::new(BRIEF, LONGEST), now());
        assert!(reach.late(begin));
        assert_eq!(reach.turn(begin), within(1));
        assert_eq!(reach.turn(begin), Turn::Wait);
        reach.found_out(Found::Silence, begin);
        assert_eq!(reach.turn(after(begin, 199)), Turn::Refused);
        // Nobody waits for who asks again, so that it may take longer.
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
        let (mut reach, begin) = (Reach::new(BRIEF, LONGEST), now());
        assert!(!reach.heard(begin));
        assert!(reach.late(after(begin, 2000)));
        assert_eq!(reach.turn(after(begin, 2000)), within(1));
        // An answer that was waited for elsewhere comes before there is one here, and that counts.
        assert!(reach.heard(after(begin, 2500)));
        reach.found_out(Found::Silence, after(begin, 3000));
        assert_eq!(reach.turn(after(begin, 3000)), Turn::Ask);
        assert!(!reach.late(after(begin, 3000)));
    }
}
