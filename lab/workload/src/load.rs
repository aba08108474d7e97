//! The load of a trial: how many users, and what makes their sessions begin.

use serde::{Deserialize, Serialize};

use crate::stage::Stage;

/// The load of a trial, at the plan's speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Virtual users, of stages the most of them; of arrivals, the sessions that may be under way at once, each on a connection
    /// of its own; of a sequence, one.
    pub users: u32,
    /// User i starts at ramp × i ÷ users; the rate of arrivals rises in a straight line. Stages have
    /// no other ramp than their own.
    pub ramp_ms: u64,
    /// The time at full load; of stages, of all of them; of a sequence, the time it may take.
    pub hold_ms: u64,
    /// Length of a window: at least 250 fit into the hold where it is long enough.
    pub window_ms: u64,
    /// What makes sessions begin.
    #[serde(default)]
    pub kind: LoadKind,
    /// How the load changes with time; empty where it stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// Processes that the users are spread over.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub generators: u32,
    /// How long an answer may take; `None` is [`TIMEOUT_MS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long an operation may take before its step is told as a bound; in the place of a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
}

/// How long an answer may take where a study doesn't say it.
pub const TIMEOUT_MS: u64 = 60_000;

impl LoadSpec {
    /// How long a request may take, whatever it is given up for then.
    #[must_use]
    pub fn timeout_ms(&self) -> u64 {
        self.time_limit_ms.or(self.timeout_ms).unwrap_or(TIMEOUT_MS)
    }
}

/// What makes sessions begin.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// Each user begins its next session when its last one is over (closed).
    #[default]
    Users,
    /// Sessions arrive whether or not earlier ones are over (open; with waits in the session,
    /// partly open). One that finds all connections taken waits for one, and its first request's
    /// response time counts from its arrival.
    Arrival {
        /// Sessions per second at full load; of stages, the most.
        rate_per_s: f64,
        /// How far apart they are.
        spacing: Spacing,
    },
    /// So many sessions of one user, one after the other; the trial ends with the last.
    Sequence {
        /// At least one.
        sessions: u32,
    },
}

/// How far apart arrivals are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Always the same.
    Constant,
    /// Independent and exponential: a Poisson process.
    #[default]
    Poisson,
}

fn one() -> u32 {
    1
}

fn is_one(n: &u32) -> bool {
    *n == 1
}
