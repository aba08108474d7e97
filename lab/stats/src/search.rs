//! Which level to try next in a search for the load line. Pure: the trials so far decide, so that a
//! resumed search goes on as it would have.
//!
//! Doubling from the fewest until a level is not carried, bisection until the two levels beside the
//! line are close, then repeats at both in random order. The line is always that of the falling
//! rates that fit best ([`crate::isotonic`]): repeats that contradict an earlier trial move it, and
//! the search narrows again from there. Where the repeats don't bound the line, since a trial of them
//! contradicts the others, one further out is repeated, too, on each side that is open.
//!
//! Noise from outside only slows a system down, so a disturbed trial in which the level held all the same
//! bounds the line from below. Where the machine stays disturbed, the search goes on upwards from there; such
//! a trial is never one of those that the line is estimated from.
//!
//! A search that is to show a safe line ([`crate::safe`]) goes on from there: at the highest level at which
//! no trial failed, until it is shown or one does, and then further down, twice as far each time.

use std::collections::BTreeSet;

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

/// The result of a trial of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It is valid, and every threshold held.
    Carried,
    /// It is valid, and a threshold did not hold.
    NotCarried,
    /// The system under test failed under the load.
    SystemFailed,
    /// It ended before it offered any load, which says nothing about the level.
    Unprepared,
    /// It is invalid for a reason outside system and generator, which says nothing about the level.
    Disturbed {
        /// Whether every threshold held all the same, with the whole load offered.
        held: bool,
    },
    /// It is invalid for another reason.
    Invalid,
}

impl Judgement {
    /// Whether the level was carried; `None` of a trial that is not valid.
    #[must_use]
    pub fn carried(&self) -> Option<bool> {
        match self {
            Self::Carried => Some(true),
            Self::NotCarried | Self::SystemFailed => Some(false),
            Self::Unprepared | Self::Disturbed { .. } | Self::Invalid => None,
        }
    }
}

/// A trial of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// Its level.
    pub level: u32,
    /// Its result.
    pub judgement: Judgement,
}

impl Tried {
    fn is_invalid(&self) -> bool {
        self.judgement.carried().is_none()
    }

    /// Whether it says something about its level, be it only that the generator is too weak.
    fn is_evidence(&self) -> bool {
        match self.judgement {
            Judgement::Unprepared | Judgement::Disturbed { .. } => false,
            Judgement::Carried
            | Judgement::NotCarried
            | Judgement::SystemFailed
            | Judgement::Invalid => true,
        }
    }

    fn held_while_disturbed(&self) -> bool {
        self.judgement == Judgement::Disturbed { held: true }
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
    /// A trial ended before it offered any load, and so did its repeat.
    Unprepared,
    /// The system failed at the lowest level each time.
    SystemFailed,
    /// So many trials were made without an end; see [`Rules::most_trials`].
    Unsettled,
}

/// A level that held in disturbed trials: a bound of the line from below, and no measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowerBound {
    /// The level.
    pub level: u32,
    /// Disturbed trials there in which it held.
    pub held: u32,
    /// All disturbed trials there.
    pub trials: u32,
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

    /// The same for a search that was resumed after `known` trials: a resumed search counts anew how often
    /// a disturbed or unprepared trial is tried again.
    #[must_use]
    pub fn next_since(&self, so_far: &[Tried], known: usize) -> Next {
        let disturbed = Disturbed::of(so_far, known, self.again);
        if let Some(last) = so_far.get(known..).and_then(<[Tried]>::last) {
            match last.judgement {
                Judgement::Unprepared => {
                    let since = so_far.iter().skip(known).rev();
                    let is_unprepared = |tried: &&Tried| tried.judgement == Judgement::Unprepared;
                    return match since.take_while(is_unprepared).count() {
                        1 => Next::Try(last.level),
                        _ => Next::Done(End::Unprepared),
                    };
                }
                Judgement::Disturbed { .. } if disturbed.in_a_row > 0 => {
                    return Next::Try(last.level);
                }
                Judgement::Disturbed { .. } if !disturbed.held.contains(&last.level) => {
                    return Next::Done(End::Disturbed);
                }
                _ => {}
            }
        }
        let evidence = so_far.iter().copied().filter(Tried::is_evidence);
        let evidence: Vec<Tried> = evidence.collect();
        if evidence.len() >= self.most_trials() as usize {
            return Next::Done(End::Unsettled);
        }
        let next = self.next_of_line(&evidence, &disturbed.held);
        let next = match (next, self.safe) {
            (Next::Done(End::Found | End::Ceiling(_)), Some(part)) => {
                let tallies = tallies(&evidence, wall(&evidence, 0));
                self.for_safety(&tallies, part).map_or(next, Next::Try)
            }
            (next, _) => next,
        };
        match next {
            Next::Try(level) if disturbed.given_up.contains(&level) => Next::Done(End::Disturbed),
            next => next,
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

    /// The next level of the search for the line, where the levels `held` did so while disturbed.
    fn next_of_line(&self, so_far: &[Tried], held: &BTreeSet<u32>) -> Next {
        let wall = wall(so_far, held.last().copied().unwrap_or(0));
        if let Some(last) = so_far.last()
            && last.is_invalid()
            && wall.is_none_or(|wall| last.level < wall)
        {
            return Next::Try(last.level);
        }
        let tallies: Vec<Tally> = tallies(so_far, wall);
        let (below, above) = isotonic::beside(&with_held(&tallies, held));
        let trials = |level| count(&tallies, level);
        match (below, above, wall) {
            (None, None, Some(_)) => Next::Done(End::Unmeasurable),
            (None, None, None) => Next::Try(self.min),
            (None, Some(above), _) if above > self.min => Next::Try(self.min),
            (None, Some(above), _) if trials(above) < self.repeats.min(2) => Next::Try(above),
            (None, Some(above), _) if is_failing(so_far, above) => Next::Done(End::SystemFailed),
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

/// What the disturbed trials of a search come to.
#[derive(Debug, Default)]
struct Disturbed {
    /// Levels that held in a disturbed trial, and were given up as no quiet trial came of them.
    held: BTreeSet<u32>,
    /// Levels that were given up since the last trial that was not disturbed.
    given_up: BTreeSet<u32>,
    /// The trials at the end, all at one level that is not given up yet.
    in_a_row: u32,
}

impl Disturbed {
    /// A level is given up after `again` repeats. Once one that held was, the machine is not about to become
    /// quiet: a level that holds then is not repeated.
    fn of(so_far: &[Tried], known: usize, again: u32) -> Self {
        let mut found = Self::default();
        let mut has_held = false;
        for (at, tried) in so_far.iter().enumerate() {
            if at == known {
                found.begin_again(&mut has_held);
            }
            let Judgement::Disturbed { held } = tried.judgement else {
                found.begin_again(&mut has_held);
                continue;
            };
            found.in_a_row += 1;
            has_held |= held;
            if found.in_a_row > again || (held && !found.held.is_empty()) {
                found.given_up.insert(tried.level);
                if has_held {
                    found.held.insert(tried.level);
                }
                (found.in_a_row, has_held) = (0, false);
            }
        }
        if known >= so_far.len() {
            found.begin_again(&mut has_held);
        }
        found
    }

    /// The machine may be quiet now.
    fn begin_again(&mut self, has_held: &mut bool) {
        (self.in_a_row, *has_held) = (0, false);
        self.given_up.clear();
    }
}

/// The highest level that held in a disturbed trial, below all at which a valid trial did not hold.
#[must_use]
pub fn lower_bound(so_far: &[Tried]) -> Option<LowerBound> {
    let failed = so_far
        .iter()
        .filter(|tried| tried.judgement.carried() == Some(false));
    let lowest = failed.map(|tried| tried.level).min().unwrap_or(u32::MAX);
    let held = so_far.iter().filter(|tried| tried.held_while_disturbed());
    let level = held
        .map(|tried| tried.level)
        .filter(|level| *level < lowest)
        .max()?;
    let is_disturbed = |tried: &&Tried| matches!(tried.judgement, Judgement::Disturbed { .. });
    let there = so_far.iter().filter(|tried| tried.level == level);
    let there: Vec<&Tried> = there.filter(is_disturbed).collect();
    let held = there.iter().filter(|tried| tried.held_while_disturbed());
    Some(LowerBound {
        level,
        held: u32::try_from(held.count()).unwrap_or(u32::MAX),
        trials: u32::try_from(there.len()).unwrap_or(u32::MAX),
    })
}

/// The levels that the line is between so far, of valid trials alone: the highest that is carried, and the
/// next one that is not.
#[must_use]
pub fn bracket(so_far: &[Tried]) -> (Option<u32>, Option<u32>) {
    isotonic::beside(&tallies(so_far, wall(so_far, 0)))
}

/// Tallies with a trial more at each level that held while disturbed. Valid trials go before: one that is
/// carried needs none, and one that is not carried contradicts it.
fn with_held(tallies: &[Tally], held: &BTreeSet<u32>) -> Vec<Tally> {
    let failed = tallies.iter().find(|tally| tally.held < tally.trials);
    let lowest = failed.map_or(u32::MAX, |tally| tally.level);
    let mut all = tallies.to_vec();
    for level in held.range(..lowest) {
        if let Err(at) = all.binary_search_by_key(level, |tally| tally.level) {
            let one = Tally {
                level: *level,
                held: 1,
                trials: 1,
            };
            all.insert(at, one);
        }
    }
    all
}

/// Whether the system failed in all trials at this level.
fn is_failing(so_far: &[Tried], level: u32) -> bool {
    let mut there = so_far
        .iter()
        .filter(|tried| tried.level == level && !tried.is_invalid());
    there.all(|tried| tried.judgement == Judgement::SystemFailed)
}

/// The lowest level at which two trials in a row were not valid. Where one at it or above is valid, or held
/// while disturbed, it was not the generator that failed.
fn wall(so_far: &[Tried], held: u32) -> Option<u32> {
    let valid = so_far.iter().filter(|tried| !tried.is_invalid());
    let measured = valid.map(|tried| tried.level).max().unwrap_or(0).max(held);
    // A disturbed or unprepared trial says nothing about the generator.
    let fit: Vec<&Tried> = so_far.iter().filter(|tried| tried.is_evidence()).collect();
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
    let mut line = isotonic::load_line(&tallies(so_far, wall(so_far, 0)), confidence)?;
    line.ceiling = match rules.next(so_far) {
        Next::Done(End::Ceiling(ceiling)) => Some(ceiling),
        Next::Done(_) | Next::Try(_) => None,
    };
    Some(line)
}
