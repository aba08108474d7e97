//! Chooses the next level in a search for the load line. Pure: depends on the trials so far, so that a resumed search
//! continues unchanged.
//!
//! Doubles from the minimum until a level is not sustained, bisects until the two levels next to the line are close,
//! then repeats both in random order. The line is always that of the best falling rates ([`crate::isotonic`]): repeats
//! that contradict an earlier trial move it, and the search narrows again from there. If the repeats don't bound the
//! line, since a trial of them contradicts the others, a level further out is also repeated, on each open side.
//!
//! External noise only slows a system down, so a disturbed trial that passed all the same bounds the line from below.
//! If the machine stays disturbed, the search continues upwards from there; such a trial is never used for estimating
//! the line.
//!
//! A search for a safe line ([`crate::safe`]) continues at the highest level without a failed trial, until it is shown
//! or a trial fails, and then further down, by twice the distance each time.

use std::collections::BTreeSet;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::isotonic::{self, CONFIDENCE, Ceiling, LoadLine, Tally};
use crate::safe;

/// Distance of the further levels from those next to the line, in resolutions.
const FURTHER_OUT: f64 = 3.0;

/// The error allowed for the first level that is examined for a safe line.
const FIRST_ALPHA: f64 = (1.0 - CONFIDENCE) / 2.0;

/// The range and precision of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The lowest level; at least 1.
    pub min: u32,
    /// The highest level.
    pub max: u32,
    /// The maximum final distance of the levels next to the line, as a fraction.
    pub resolution: f64,
    /// Final number of trials at each of them.
    pub repeats: u32,
    /// Maximum consecutive retries of a trial that failed for an external reason.
    pub again: u32,
    /// Seed of the order of repeats.
    pub seed: u64,
    /// The part of the trials that must be shown to pass at a safe level; `None` ends with the line.
    pub safe: Option<f64>,
}

/// The result of a trial of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// The trial is valid, and every threshold passed.
    Carried,
    /// The trial is valid, and a threshold failed.
    NotCarried,
    /// The system under test failed under the load.
    SystemFailed,
    /// The trial ended before it offered any load, which gives no evidence on the level.
    Unprepared,
    /// The trial is invalid for a reason outside system and generator, which gives no evidence on the level.
    Disturbed {
        /// Whether every threshold passed all the same, with the whole load offered.
        held: bool,
    },
    /// The trial is invalid for another reason.
    Invalid,
}

impl Judgement {
    /// Returns whether the level was sustained; `None` for an invalid trial.
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

    /// Returns true if it gives evidence on its level, including that the generator is too weak.
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

/// The next action.
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
    /// All tried levels are sustained.
    Ceiling(Ceiling),
    /// The lowest level can't be measured.
    Unmeasurable,
    /// Repeated trials failed for reasons outside system and generator.
    Disturbed,
    /// A trial ended before it offered any load, and so did its repeat.
    Unprepared,
    /// The system failed at the lowest level each time.
    SystemFailed,
    /// The maximum number of trials was reached; see [`Rules::most_trials`].
    Unsettled,
}

/// A level that passed in disturbed trials: a lower bound of the line, and no measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowerBound {
    /// The level.
    pub level: u32,
    /// Disturbed trials there that passed.
    pub held: u32,
    /// All disturbed trials there.
    pub trials: u32,
}

impl Rules {
    /// Returns the trials of a search without contradictions and with the line in the middle.
    #[must_use]
    pub fn usual_trials(&self) -> u32 {
        // The last trials of the doubling and of the bisection are among the repeats. A failed trial makes the passed
        // ones before it useless.
        let safe = self
            .safe
            .map_or(0, |part| 2 * safe::trials_for(part, FIRST_ALPHA));
        self.doublings() / 2 + self.bisections() + 2 * self.repeats + safe
    }

    /// Returns the maximum number of trials of a search, without those that failed for external reasons.
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
        // A doubling step spans a factor of two; with few users, half a user can't be tried.
        let finest = self.resolution.max(1.0 / f64::from(self.max.max(1)));
        (1.0 / finest).log2().ceil().max(0.0) as u32
    }

    /// Returns the next action, from all trials so far in their order.
    #[must_use]
    pub fn next(&self, so_far: &[Tried]) -> Next {
        self.next_since(so_far, 0)
    }

    /// Returns the next action of a search that was resumed after `known` trials: it restarts the count of retries of a
    /// disturbed or unprepared trial.
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

    /// Returns the next level for a safe line; `None` if it is shown, or if there is no lower level.
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

    /// Returns the next action of the search for the line, where the levels `held` passed while disturbed.
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

    /// Returns a level further out that may bound the line where the levels next to it don't. A started level is
    /// completed: stopping at the first trial that closes the interval would bias the sample. For the same reason there
    /// is one on each side. With so few repeats that they can't bound the line even if all agree, the study wants a
    /// quick answer, and there is none.
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

    /// Returns a level between two that are too far apart.
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

/// Summary of the disturbed trials of a search.
#[derive(Debug, Default)]
struct Disturbed {
    /// Levels that passed in a disturbed trial, and were given up without a quiet trial.
    held: BTreeSet<u32>,
    /// Levels that were given up since the last undisturbed trial.
    given_up: BTreeSet<u32>,
    /// Number of trailing trials at one level that is not given up yet.
    in_a_row: u32,
}

impl Disturbed {
    /// Gives a level up after `again` repeats. After the first such level that passed, the machine is unlikely to
    /// become quiet: a level that passes then is not repeated.
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

    /// Restarts the count: the machine may be quiet now.
    fn begin_again(&mut self, has_held: &mut bool) {
        (self.in_a_row, *has_held) = (0, false);
        self.given_up.clear();
    }
}

/// Returns the highest level that passed in a disturbed trial, below all at which a valid trial failed.
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

/// Returns the current bounds of the line, from valid trials alone: the highest sustained level, and the next one that
/// is not.
#[must_use]
pub fn bracket(so_far: &[Tried]) -> (Option<u32>, Option<u32>) {
    isotonic::beside(&tallies(so_far, wall(so_far, 0)))
}

/// Adds a passed trial to the tallies at each level that passed while disturbed. Valid trials take precedence: a
/// sustained level needs none, and a failed one contradicts it.
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

/// Returns true if the system failed in all trials at this level.
fn is_failing(so_far: &[Tried], level: u32) -> bool {
    let mut there = so_far
        .iter()
        .filter(|tried| tried.level == level && !tried.is_invalid());
    there.all(|tried| tried.judgement == Judgement::SystemFailed)
}

/// Returns the lowest level at which two consecutive trials were invalid. If a level at or above it has a valid trial,
/// or passed while disturbed, the generator is not the cause.
fn wall(so_far: &[Tried], held: u32) -> Option<u32> {
    let valid = so_far.iter().filter(|tried| !tried.is_invalid());
    let measured = valid.map(|tried| tried.level).max().unwrap_or(0).max(held);
    // A disturbed or unprepared trial gives no evidence on the generator.
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

/// Returns the tallies of valid trials below the wall.
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

/// Returns the load line of a search, finished or not; `None` without a valid trial. Only a finished search has a
/// ceiling: one in progress may still find a line.
#[must_use]
pub fn load_line(rules: &Rules, so_far: &[Tried], confidence: f64) -> Option<LoadLine> {
    let mut line = isotonic::load_line(&tallies(so_far, wall(so_far, 0)), confidence)?;
    line.ceiling = match rules.next(so_far) {
        Next::Done(End::Ceiling(ceiling)) => Some(ceiling),
        Next::Done(_) | Next::Try(_) => None,
    };
    Some(line)
}
