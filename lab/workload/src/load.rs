//! The load of a trial: the number of users, and the start of their sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::mix::{deal, step_of};
use crate::stage::Stage;
use crate::timeline::Timeline;

/// The load of a trial, at the plan's speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Virtual users; for stages, the most of them; for arrivals, the most sessions in progress at once, each on a
    /// connection of its own; for a sequence, one.
    pub users: u32,
    /// User i starts at ramp × i ÷ users; the rate of arrivals rises linearly. Stages have only their own ramps.
    pub ramp_ms: u64,
    /// The time at full load; for stages, of all of them; for a sequence, its deadline.
    pub hold_ms: u64,
    /// Length of a window: at least 250 fit into the hold if it is long enough.
    pub window_ms: u64,
    /// What starts sessions.
    #[serde(default)]
    pub kind: LoadKind,
    /// The changes of the load over time; empty if it is constant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// The recorded arrival times of sessions, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Populations with workloads of their own; empty if all users do the same. The load's users and rate are the sums
    /// of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<Population>,
    /// Number of processes for the users.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub generators: u32,
    /// Timeout of a response; `None` is [`TIMEOUT_MS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Longest time of an operation, after which its step reports a bound; replaces a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
}

/// One population of a load, at the plan's speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// Its name in the study.
    pub name: String,
    /// Short name of its workload.
    pub workload: String,
    /// The parameters of its workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Level>,
    /// Its weight among the shares of the load; `None` if it has a load of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// As [`LoadSpec::users`], of this population.
    pub users: u32,
    /// What starts its sessions; never a sequence.
    #[serde(default)]
    pub kind: LoadKind,
    /// As [`LoadSpec::stages`], of this population.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// As [`LoadSpec::timeline`], of this population: it starts with the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The delay of its own ramp after the start of the load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_ms: u64,
}

impl Population {
    /// The name of one of its steps among those of all populations.
    #[must_use]
    pub fn step(&self, step: &str) -> String {
        step_of(&self.name, step)
    }

    /// Its level at full load: sessions per second that arrive, or users.
    #[must_use]
    pub fn full(&self) -> f64 {
        match self.kind {
            LoadKind::Arrival { rate_per_s, .. } => rate_per_s,
            LoadKind::Users | LoadKind::Sequence { .. } => f64::from(self.users),
        }
    }
}

/// Default timeout of a response.
pub const TIMEOUT_MS: u64 = 60_000;

impl LoadSpec {
    /// Returns true if the load changes over time, so that no steady state is expected.
    #[must_use]
    pub fn changes(&self) -> bool {
        let is_other = |one: &Population| one.timeline.is_some() || one.after_ms > 0;
        !self.stages.is_empty() || self.timeline.is_some() || self.mix.iter().any(is_other)
    }

    /// The time limit of a request, or its timeout.
    #[must_use]
    pub fn timeout_ms(&self) -> u64 {
        self.time_limit_ms.or(self.timeout_ms).unwrap_or(TIMEOUT_MS)
    }
}

impl LoadSpec {
    /// The load of one of its populations.
    #[must_use]
    pub fn of(&self, population: &Population) -> Self {
        Self {
            users: population.users,
            kind: population.kind,
            stages: match population.after_ms {
                0 => population.stages.clone(),
                after_ms => self.later(population, after_ms),
            },
            timeline: population.timeline.clone(),
            mix: Vec::new(),
            ..self.clone()
        }
    }

    /// The stages of a population that starts later: no load, its ramp, and full load until the trial must have ended.
    fn later(&self, population: &Population, after_ms: u64) -> Vec<Stage> {
        let full = population.full();
        let rest_ms = (self.ramp_ms + self.hold_ms).saturating_sub(after_ms);
        let parts = [
            (after_ms, 0.0, 0.0),
            (self.ramp_ms, 0.0, full),
            (rest_ms, full, full),
        ];
        let some = parts.into_iter().filter(|(length_ms, ..)| *length_ms > 0);
        let stages = some.map(|(length_ms, from, to)| Stage {
            name: String::new(),
            length_ms,
            from,
            to,
        });
        stages.collect()
    }

    /// The mean load of a population over the hold, as a part of its full load.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a trial lasts some months at most"
    )]
    pub fn part_in_hold(&self, population: &Population) -> f64 {
        let [ramp, hold, after] =
            [self.ramp_ms, self.hold_ms, population.after_ms].map(|ms| ms as f64);
        if after <= 0.0 || hold <= 0.0 {
            return 1.0;
        }
        // The area below the load until a time after the start of the population's ramp.
        let area = |time: f64| match time {
            _ if time <= 0.0 => 0.0,
            _ if time < ramp => time * time / ramp / 2.0,
            _ => time - ramp / 2.0,
        };
        (area(ramp + hold - after) - area(ramp - after)) / hold
    }

    /// Sessions per second that arrive in the hold, of all populations together; `None` for a load without arrivals.
    #[must_use]
    pub fn arrivals_per_s(&self) -> Option<f64> {
        let rate = |kind: LoadKind| match kind {
            LoadKind::Arrival { rate_per_s, .. } => Some(rate_per_s),
            LoadKind::Users | LoadKind::Sequence { .. } => None,
        };
        let all = rate(self.kind)?;
        if self.mix.iter().all(|one| one.after_ms == 0) {
            return Some(all);
        }
        let each = self
            .mix
            .iter()
            .filter_map(|one| Some((one, rate(one.kind)?)));
        Some(each.map(|(one, rate)| rate * self.part_in_hold(one)).sum())
    }

    /// The same load with so many users; populations with shares keep them.
    #[must_use]
    pub fn with_users(&self, users: u32) -> Self {
        let mut load = Self {
            users,
            ..self.clone()
        };
        let shares: Option<Vec<u32>> = load.mix.iter().map(|one| one.share).collect();
        if let Some(shares) = shares {
            for (population, users) in load.mix.iter_mut().zip(deal(users, &shares)) {
                population.users = users;
            }
        }
        load
    }
}

/// What starts sessions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// Each user starts its next session at the end of its last one (closed).
    #[default]
    Users,
    /// Sessions arrive whether or not earlier ones have ended (open; with waits in the session, partly open). If all
    /// connections are taken, a session waits for one, and its first request's response time counts from its arrival.
    Arrival {
        /// Sessions per second at full load; for stages, the most.
        rate_per_s: f64,
        /// The distribution of their intervals.
        spacing: Spacing,
    },
    /// A number of sessions; each user starts its next one at the end of its last one. The trial ends with the last.
    Sequence {
        /// At least one: of each user, or of all together.
        sessions: u32,
        /// Whether the users share the sessions: a free user takes the next one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
    },
}

impl LoadKind {
    /// The number of sessions of a sequence of so many users; `None` for another load.
    #[must_use]
    pub fn sessions(self, users: u32) -> Option<u64> {
        match self {
            Self::Sequence {
                sessions,
                shared: true,
            } => Some(sessions.into()),
            Self::Sequence { sessions, .. } => Some(u64::from(sessions) * u64::from(users)),
            Self::Users | Self::Arrival { .. } => None,
        }
    }
}

/// The distribution of the intervals between arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Constant.
    Constant,
    /// Independent and exponential: a Poisson process.
    #[default]
    Poisson,
    /// As recorded: at the times of the load's timeline.
    Recorded,
}

fn one() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

fn is_one(n: &u32) -> bool {
    *n == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(ramp_ms: u64, after_ms: u64) -> (LoadSpec, Population) {
        let population = Population {
            name: "a".to_owned(),
            workload: "w".to_owned(),
            parameters: BTreeMap::new(),
            share: None,
            users: 10,
            kind: LoadKind::Arrival {
                rate_per_s: 8.0,
                spacing: Spacing::Constant,
            },
            stages: Vec::new(),
            timeline: None,
            after_ms,
        };
        let load = LoadSpec {
            ramp_ms,
            kind: population.kind,
            mix: vec![population.clone()],
            ..LoadSpec::of_users(10, 10_000, 100)
        };
        (load, population)
    }

    #[test]
    fn a_population_that_comes_later_has_a_part_of_the_hold() {
        for (ramp_ms, after_ms, part) in [
            (0, 0, 1.0),
            (0, 5_000, 0.5),
            (2_000, 0, 1.0),
            // The ramp lasts from 1 s before to 1 s after the start of the hold: half of it is in the hold.
            (2_000, 1_000, (0.75 + 9.0) / 10.0),
            (2_000, 2_000, (1.0 + 8.0) / 10.0),
            (2_000, 11_000, 0.25 / 10.0),
        ] {
            let (load, population) = later(ramp_ms, after_ms);
            let found = load.part_in_hold(&population);
            assert!((found - part).abs() < 1e-9, "{ramp_ms} {after_ms}: {found}");
            let rate = load.arrivals_per_s().unwrap();
            assert!((rate - 8.0 * part).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn stages_of_one_that_comes_later_reach_to_the_end_of_the_trial() {
        let (load, population) = later(2_000, 5_000);
        let lengths: u64 = load
            .of(&population)
            .stages
            .iter()
            .map(|stage| stage.length_ms)
            .sum();
        assert!(lengths >= 12_000, "{lengths}");
    }
}
