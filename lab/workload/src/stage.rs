//! Stages: a load whose level changes over time, one stage after the other.

use serde::{Deserialize, Serialize};

/// A part of a load with a constant or linearly changing level. The level is the number of users, or the rate of
/// arrivals per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name in the study; else its number, from 1.
    pub name: String,
    /// At least 1 ms.
    pub length_ms: u64,
    /// The level at its start.
    pub from: f64,
    /// The level at its end.
    pub to: f64,
}

impl Stage {
    /// Returns true if its level changes: such a stage is no steady load.
    #[must_use]
    pub fn ramps(&self) -> bool {
        (self.from - self.to).abs() > 0.0
    }

    /// The time, in ns after its start, at which a level between its own is reached.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a stage lasts 30 days at most: 2^52 ns"
    )]
    fn reaches(&self, level: f64) -> u64 {
        let length = (self.length_ms * 1_000_000) as f64;
        (length * (level - self.from) / (self.to - self.from)).round() as u64
    }

    /// The time for which user `index` is active, in ns after its start; `None` if it isn't.
    fn stay(&self, index: u32) -> Option<(u64, u64)> {
        let (level, end) = (f64::from(index), self.length_ms * 1_000_000);
        match (self.from > level, self.to > level) {
            (true, true) => Some((0, end)),
            (false, true) => Some((self.reaches(level), end)),
            (true, false) => Some((0, self.reaches(level))),
            (false, false) => None,
        }
        .filter(|(from, until)| from < until)
    }
}

/// Most stages of a load.
pub const MAX_STAGES: usize = 100;
/// Longest stage.
const MAX_LENGTH_MS: u64 = 30 * 86_400_000;

/// Returns true if the invariants hold: received stages may violate them.
#[must_use]
pub fn are_sound(stages: &[Stage]) -> bool {
    let is_level = |level: f64| level.is_finite() && level >= 0.0;
    (1..=MAX_STAGES).contains(&stages.len())
        && stages.iter().all(|stage| {
            (1..=MAX_LENGTH_MS).contains(&stage.length_ms)
                && is_level(stage.from)
                && is_level(stage.to)
        })
}

/// The time for which a user is active, in ns after the start of the ramp or of the first stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Start of its first session.
    pub from: u64,
    /// It sends nothing from then on.
    pub until: u64,
}

/// The times at which user `index` of a load of stages is active: whenever the level is above its index, so that the
/// user that started last stops first.
#[must_use]
pub fn visits(stages: &[Stage], index: u32) -> Vec<Visit> {
    let mut visits: Vec<Visit> = Vec::new();
    let mut begin = 0;
    for stage in stages {
        if let Some((from, until)) = stage.stay(index) {
            let (from, until) = (begin + from, begin + until);
            match visits.last_mut().filter(|last| last.until == from) {
                Some(last) => last.until = until,
                None => visits.push(Visit { from, until }),
            }
        }
        begin += stage.length_ms * 1_000_000;
    }
    visits
}

/// Stages without names: length (ms), from, to.
#[cfg(test)]
pub(crate) fn stages(of: &[(u64, f64, f64)]) -> Vec<Stage> {
    let stage = |&(length_ms, from, to): &(u64, f64, f64)| Stage {
        name: String::new(),
        length_ms,
        from,
        to,
    };
    of.iter().map(stage).collect()
}

#[cfg(test)]
mod tests;
