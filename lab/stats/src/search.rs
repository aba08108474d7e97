//! Which level to try next in a search for the load line. Pure: the trials so far decide, so that a
//! resumed search goes on as it would have.
//!
//! Doubling from the fewest until a level is not carried, bisection until the two levels beside the
//! line are close, then repeats at both in random order. The line is always that of the falling
//! rates that fit best ([`crate::isotonic`]): repeats that contradict an earlier trial move it, and
//! the search narrows again from there. Where the repeats don't bound the line, since a trial of them
//! contradicts the others, one further out is repeated, too, on each side that is open.
//!
//! A search that is to show a safe line ([`crate::safe`]) goes on from there: at the highest level at which
//! no trial failed, until it is shown or one does, and then further down, twice as far each time.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::isotonic::{self, CONFIDENCE, Ceiling, LoadLine, Tally};
use crate::safe;

/// How far beyond the levels beside the line one more is repeated on each side, in resolutions.
const FURTHER_OUT: f64 = 3.0;

/// What may be wrong at the first level that is looked at for a safe line.
const FIRST_ALPHA: f64 = (1.0 - CONFIDENCE) / 2.0;

/// What is searched, and how closely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The lowest level; at least 1.
    pub min: u32,
    /// The highest level.
    pub max: u32,
    /// The levels beside the line differ by no more than this fraction in the end.
    pub resolution: f64,
    /// Trials at each of them in the end.
    pub repeats: u32,
    /// A trial that failed for a reason outside is tried again so often in a row.
    pub again: u32,
    /// Of the order of repeats.
    pub seed: u64,
    /// The part of the trials that is to be shown to hold at a safe level; `None` ends with the line.
    pub safe: Option<f64>,
}

/// What a trial of a search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is a measurement, and every threshold held.
    Carried,
    /// It is a measurement, and a threshold did not hold.
    NotCarried,
    /// The system under test failed: it did not carry the level.
    SystemFailed,
    /// It is no measurement.
    Invalid {
        /// Why, in a sentence's fragment.
        reason: String,
        /// Whether the reason lies outside system and generator: it says nothing of the level.
        outside: bool,
    },
}

impl Judgement {
    /// Whether the level was carried; `None` without a measurement.
    #[must_use]
    pub fn carried(&self) -> Option<bool> {
        match self {
            Self::Carried => Some(true),
            Self::NotCarried | Self::SystemFailed => Some(false),
            Self::Invalid { .. } => None,
        }
    }
}

/// A trial of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its level.
    pub level: u32,
    /// What it came to.
    pub judgement: Judgement,
}

impl Tried {
    fn is_invalid(&self) -> bool {
        self.judgement.carried().is_none()
    }

    fn is_disturbed(&self) -> bool {
        matches!(self.judgement, Judgement::Invalid { outside: true, .. })
    }
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A trial at this level.
    Try(u32),
    /// The search is over.
    Done(End),
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The line is between two levels, each repeated.
    Found,
    /// Not even the lowest level is carried.
    BelowMin,
    /// All that was tried is carried.
    Ceiling(Ceiling),
    /// The lowest level can't be measured.
    Unmeasurable,
    /// Trial after trial failed for reasons outside system and generator.
    Disturbed,
    /// So many trials were made without an end; see [`Rules::most_trials`].
    Unsettled,
}

impl Rules {
    /// Trials that a search takes where no trial contradicts another and the line is in the middle.
    #[must_use]
    pub fn usual_trials(&self) -> u32 {
        // The last of the doubling and of the bisection are among the repeats.
        // A trial that fails costs those that held before it.
        let safe = self
            .safe
            .map_or(0, |part| 2 * safe::trials_for(part, FIRST_ALPHA));
        self.doublings() / 2 + self.bisections() + 2 * self.repeats + safe
    }

    /// Trials after which a search ends in any case, those that failed for reasons outside left out.
    #[must_use]
    pub fn most_trials(&self) -> u32 {
        let safe = self
            .safe
            .map_or(0, |part| 3 * safe::trials_for(part, FIRST_ALPHA));
        self.doublings() + 3 * (self.bisections() + 2 * self.repeats) + 2 * self.repeats + 10 + safe
    }

    fn doublings(&self) -> u32 {
        let ratio = f64::from(self.max.max(1)) / f64::from(self.min.max(1));
        ratio.log2().ceil().max(0.0) as u32 + 1
    }

    fn bisections(&self) -> u32 {
        // A step of doubling spans a factor of two; of few users, no half user can be tried.
        let finest = self.resolution.max(1.0 / f64::from(self.max.max(1)));
        (1.0 / finest).log2().ceil().max(0.0) as u32
    }

    /// The next level, from all trials so far in their order.
    #[must_use]
    pub fn next(&self, so_far: &[Tried]) -> Next {
        self.next_since(so_far, 0)
    }

    /// The same for a search that was resumed after `known` trials: who resumes it begins to count anew
    /// how often a disturbed trial is tried again.
    #[must_use]
    pub fn next_since(&self, so_far: &[Tried], known: usize) -> Next {
        if let Some(last) = so_far.last()
            && last.is_disturbed()
        {
            let since = so_far.iter().skip(known).rev();
            let in_a_row = since.take_while(|tried| tried.is_disturbed()).count();
            return if in_a_row > self.again as usize {
                Next::Done(End::Disturbed)
            } else {
                Next::Try(last.level)
            };
        }
        let fit = so_far.iter().filter(|tried| !tried.is_disturbed());
        let so_far = &*fit.cloned().collect::<Vec<Tried>>();
        if so_far.len() >= self.most_trials() as usize {
            return Next::Done(End::Unsettled);
        }
        let next = self.next_of_line(so_far);
        match (next, self.safe) {
            (Next::Done(End::Found | End::Ceiling(_)), Some(part)) => {
                let tallies = tallies(so_far, wall(so_far));
                self.for_safety(&tallies, part).map_or(next, Next::Try)
            }
            (next, _) => next,
        }
    }

    /// The level to try next for a safe line; `None` where it is shown, or where there is none to go down to.
    fn for_safety(&self, tallies: &[Tally], part: f64) -> Option<u32> {
        let shown = safe::safe_line(tallies, part, CONFIDENCE);
        if shown.is_some_and(|safe| safe.part >= part) {
            return None;
        }
        let (top, _) = isotonic::beside(tallies);
        let failed = |tally: &&Tally| tally.held < tally.trials;
        let upper: Vec<&Tally> = tallies.iter().filter(|t| Some(t.level) <= top).collect();
        let held = |below: u32| {
            let mut held = upper.iter().rev().filter(|t| t.level < below && !failed(t));
            held.next().map_or(0, |tally| tally.level)
        };
        let Some(lowest) = upper.iter().copied().find(failed) else {
            return top;
        };
        let candidate = held(lowest.level);
        let times = upper.iter().copied().filter(failed).count() - 1;
        let step = FURTHER_OUT * self.resolution * f64::from(1_u32 << times.min(16));
        let lower = (f64::from(lowest.level) * (1.0 - step).max(0.0)) as u32;
        let next = candidate.max(lower.min(lowest.level.saturating_sub(1)));
        (lowest.level > self.min).then_some(next.max(self.min))
    }

    /// The next level of the search for the line.
    fn next_of_line(&self, so_far: &[Tried]) -> Next {
        let wall = wall(so_far);
        if let Some(last) = so_far.last()
            && last.is_invalid()
            && wall.is_none_or(|wall| last.level < wall)
        {
            return Next::Try(last.level);
        }
        let tallies: Vec<Tally> = tallies(so_far, wall);
        let (below, above) = isotonic::beside(&tallies);
        let trials = |level| count(&tallies, level);
        match (below, above, wall) {
            (None, None, Some(_)) => Next::Done(End::Unmeasurable),
            (None, None, None) => Next::Try(self.min),
            (None, Some(above), _) if above > self.min => Next::Try(self.min),
            (None, Some(above), _) if trials(above) < self.repeats => Next::Try(above),
            (None, Some(_), _) => Next::Done(End::BelowMin),
            (Some(below), Some(above), _) => self.between(below, above, so_far, &tallies),
            (Some(below), None, Some(wall)) => match self.middle(below, wall) {
                Some(level) => Next::Try(level),
                None if trials(below) < self.repeats => Next::Try(below),
                None => Next::Done(End::Ceiling(Ceiling::Generator { users: wall })),
            },
            (Some(below), None, None) if below < self.max => {
                Next::Try(below.saturating_mul(2).min(self.max))
            }
            (Some(below), None, None) if trials(below) < self.repeats => Next::Try(below),
            (Some(_), None, None) => Next::Done(End::Ceiling(Ceiling::Asked)),
        }
    }

    fn between(&self, below: u32, above: u32, so_far: &[Tried], tallies: &[Tally]) -> Next {
        if let Some(level) = self.middle(below, above) {
            return Next::Try(level);
        }
        let lacks = |level| count(tallies, level) < self.repeats;
        match (lacks(below), lacks(above)) {
            (false, false) => match self.further_out(below, above, tallies) {
                Some(level) => Next::Try(level),
                None => Next::Done(End::Found),
            },
            (true, false) => Next::Try(below),
            (false, true) => Next::Try(above),
            (true, true) => {
                // Pairs in random order: neither level has all the early or all the late trials.
                let drawn = if self.coin(so_far.len() / 2) {
                    [below, above]
                } else {
                    [above, below]
                };
                Next::Try(drawn[so_far.len() % 2])
            }
        }
    }

    /// A level beyond those beside the line that may bound it where they don't. One that was begun with
    /// is gone on with: to stop at the first trial that closes the interval would be to choose what
    /// is counted. For the same reason there is one on each side. Who asks for so few repeats that they
    /// can't bound the line even where all agree wants a quick answer.
    fn further_out(&self, below: u32, above: u32, tallies: &[Tally]) -> Option<u32> {
        let chance = 0.5_f64.powi(i32::try_from(self.repeats).unwrap_or(i32::MAX));
        if chance > (1.0 - CONFIDENCE) / 2.0 {
            return None;
        }
        let line = isotonic::load_line(tallies, CONFIDENCE)?;
        let step = |of: u32| ((FURTHER_OUT * self.resolution * f64::from(of)) as u32).max(1);
        let lower = below.saturating_sub(step(below)).max(self.min);
        let upper = above.saturating_add(step(above)).min(self.max);
        let is_open = |level, is_open| match count(tallies, level) {
            0 => is_open,
            trials => trials < self.repeats,
        };
        if lower < below && is_open(lower, line.low < lower) {
            return Some(lower);
        }
        let is_high_open = line.high.is_none_or(|high| high >= upper);
        (upper > above && is_open(upper, is_high_open)).then_some(upper)
    }

    /// A level between two that are too far apart.
    fn middle(&self, below: u32, above: u32) -> Option<u32> {
        let gap = above.checked_sub(below).filter(|gap| *gap > 1)?;
        let far = f64::from(gap) > self.resolution * f64::from(below);
        far.then_some(below + gap / 2)
    }

    fn coin(&self, number: usize) -> bool {
        let seed = self.seed.wrapping_add(number as u64);
        Xoshiro256PlusPlus::seed_from_u64(seed).next_u64() & 1 == 1
    }
}

/// The lowest level at which two trials in a row were not valid. Where one at it or above is valid, it
/// was not the generator that failed.
fn wall(so_far: &[Tried]) -> Option<u32> {
    let valid = so_far.iter().filter(|tried| !tried.is_invalid());
    let measured = valid.map(|tried| tried.level).max().unwrap_or(0);
    // What was disturbed from outside says nothing of the generator.
    let fit: Vec<&Tried> = so_far
        .iter()
        .filter(|tried| !tried.is_disturbed())
        .collect();
    let levels = fit
        .iter()
        .enumerate()
        .filter(|(_, tried)| tried.is_invalid());
    let twice = levels.filter_map(|(at, tried)| {
        let earlier = fit[..at].iter().rev().find(|t| t.level == tried.level);
        earlier.filter(|t| t.is_invalid()).map(|t| t.level)
    });
    twice.filter(|level| *level > measured).min()
}

/// Valid trials below the wall.
fn tallies(so_far: &[Tried], wall: Option<u32>) -> Vec<Tally> {
    let measured = so_far
        .iter()
        .filter_map(|tried| Some((tried.level, tried.judgement.carried()?)));
    isotonic::tally(measured.filter(|(level, _)| wall.is_none_or(|wall| *level < wall)))
}

fn count(tallies: &[Tally], level: u32) -> u32 {
    let found = tallies.iter().find(|t| t.level == level);
    found.map_or(0, |t| t.trials)
}

/// The load line of a search, also of one that is not over; `None` without a valid trial. A ceiling is
/// what ended the search: one that goes on may still find a line.
#[must_use]
pub fn load_line(rules: &Rules, so_far: &[Tried], confidence: f64) -> Option<LoadLine> {
    let mut line = isotonic::load_line(&tallies(so_far, wall(so_far)), confidence)?;
    line.ceiling = match rules.next(so_far) {
        Next::Done(End::Ceiling(ceiling)) => Some(ceiling),
        Next::Done(_) | Next::Try(_) => None,
    };
    Some(line)
}
