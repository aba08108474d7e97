//! The load of a study as written, and what it comes to in one cell.

use std::time::Duration;

use lab_language::{
    CellError, Optional, Setting, TextError,
    units::{self, Hold},
};
use lab_workload::{LoadKind, LoadSpec, Spacing};

use crate::model::Cell;

/// Fewest and most virtual users of a trial.
pub(crate) const USERS: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Longest ramp, and longest hold.
pub(crate) const MAX_PHASE: Duration = Duration::from_secs(30 * 86_400);
/// Most sessions of a sequence.
const SESSIONS: std::ops::RangeInclusive<u64> = 1..=10_000_000;
/// Most processes that drive one load.
const GENERATORS: std::ops::RangeInclusive<u64> = 1..=64;
/// Sessions under way at once, unless a study says otherwise.
const CONNECTIONS: u32 = 1000;
/// The time that a sequence may take, unless a study says otherwise.
const SEQUENCE_LIMIT: Duration = Duration::from_secs(600);

/// The load of a study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct LoadTemplate {
    pub(crate) kind: KindTemplate,
    pub(crate) ramp: Option<Setting>,
    pub(crate) hold: Option<Setting>,
    pub(crate) timeout: Option<Setting>,
    pub(crate) time_limit: Option<Setting>,
    pub(crate) generators: Option<Setting>,
}

/// What makes sessions begin, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) enum KindTemplate {
    Users(Setting),
    Arrival(Box<ArrivalTemplate>),
    Sequence(Setting),
    /// Users whose number a search chooses, with the fewest that it tries.
    Searched(u32),
}

/// Sessions that arrive, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct ArrivalTemplate {
    pub(crate) rate: Setting,
    pub(crate) spacing: Option<Setting>,
    pub(crate) connections: Option<Setting>,
}

/// The load of a trial at speed 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    kind: LoadKind,
    users: u32,
    ramp: Duration,
    hold: Duration,
    timeout: Option<Duration>,
    time_limit: Option<Duration>,
    generators: u32,
}

impl LoadTemplate {
    /// The load in `cell`; `pace` is the length of a cycle.
    pub(crate) fn load(&self, cell: &Cell, pace: Option<Duration>) -> Result<Load, CellError> {
        let (kind, users) = self.kind.kind(cell)?;
        let ramp = self
            .ramp
            .value(cell, |text| units::duration(text, MAX_PHASE))?;
        // Only users repeat a cycle.
        let pace = pace.filter(|_| kind == LoadKind::Users);
        let hold = self.hold.value(cell, |text| hold(text, kind, pace))?;
        let timeout = self.timeout.value(cell, units::timeout)?;
        let time_limit = self.time_limit.value(cell, units::timeout)?;
        let generators = self
            .generators
            .value(cell, |text| units::whole_number(text, GENERATORS))?;
        Ok(Load {
            kind,
            users,
            ramp: ramp.unwrap_or(Duration::ZERO),
            hold: hold.unwrap_or(SEQUENCE_LIMIT),
            timeout,
            time_limit,
            generators: generators.map_or(1, |n| n as u32),
        })
    }
}

impl KindTemplate {
    fn kind(&self, cell: &Cell) -> Result<(LoadKind, u32), CellError> {
        let users = |text: &str| units::whole_number(text, USERS);
        Ok(match self {
            Self::Users(setting) => (LoadKind::Users, setting.value(cell, users)? as u32),
            Self::Searched(users) => (LoadKind::Users, *users),
            Self::Arrival(arrival) => {
                let spacing = arrival.spacing.value(cell, spacing_named)?;
                let kind = LoadKind::Arrival {
                    rate_per_s: arrival.rate.value(cell, units::rate)?,
                    spacing: spacing.unwrap_or_default(),
                };
                let connections = arrival.connections.value(cell, users)?;
                (kind, connections.map_or(CONNECTIONS, |n| n as u32))
            }
            Self::Sequence(sessions) => {
                let count = |text: &str| units::whole_number(text, SESSIONS);
                let sessions = sessions.value(cell, count)? as u32;
                (LoadKind::Sequence { sessions }, 1)
            }
        })
    }
}

fn hold(text: &str, kind: LoadKind, pace: Option<Duration>) -> Result<Duration, TextError> {
    let hold = match (units::hold(text, MAX_PHASE)?, pace) {
        (Hold::Time(time), _) => time,
        (Hold::Cycles(cycles), Some(pace)) => pace.saturating_mul(cycles),
        (Hold::Cycles(_), None) => {
            let message = match kind {
                LoadKind::Users => "the workload has no `pace`, so it has no cycles to count",
                LoadKind::Arrival { .. } => "a session that arrives has no cycles to count",
                LoadKind::Sequence { .. } => "a sequence has no cycles to count",
            };
            return Err(TextError::new(message, 0..text.len())
                .help("give the hold as a time, such as `10m`"));
        }
    };
    if hold < Duration::from_millis(1) || hold > MAX_PHASE {
        let message = "a hold lasts 1 ms to 30 days";
        return Err(TextError::new(message, 0..text.len()));
    }
    Ok(hold)
}

fn spacing_named(text: &str) -> Result<Spacing, TextError> {
    const NAMES: [(&str, Spacing); 2] = [
        ("poisson", Spacing::Poisson),
        ("constant", Spacing::Constant),
    ];
    units::one_named("spacing", text, &NAMES)
}

impl Load {
    /// As a trial has it. A speed divides times and multiplies rates; what may be late at any
    /// speed, an answer or the end of a sequence, keeps its limit.
    pub(crate) fn spec(&self, speed: f64) -> LoadSpec {
        let is_sequence = matches!(self.kind, LoadKind::Sequence { .. });
        let hold_ms = match is_sequence {
            true => milliseconds(self.hold, 1.0),
            false => milliseconds(self.hold, speed).max(1),
        };
        let kind = match self.kind {
            LoadKind::Arrival {
                rate_per_s,
                spacing,
            } => LoadKind::Arrival {
                rate_per_s: rate_per_s * speed,
                spacing,
            },
            other => other,
        };
        // The hold of a sequence is far longer than the sequence itself.
        let longest_window = if is_sequence { 100 } else { 1000 };
        LoadSpec {
            users: self.users,
            ramp_ms: milliseconds(self.ramp, speed),
            hold_ms,
            window_ms: (hold_ms / 250).clamp(1, longest_window),
            kind,
            generators: self.generators,
            timeout_ms: self.timeout.map(|time| milliseconds(time, 1.0)),
            time_limit_ms: self.time_limit.map(|time| milliseconds(time, 1.0)),
        }
    }
}

fn milliseconds(time: Duration, speed: f64) -> u64 {
    (time.as_secs_f64() * 1e3 / speed).round() as u64
}
