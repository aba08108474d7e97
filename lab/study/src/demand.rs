//! The load of a study as written, and what it comes to in one cell.

use std::time::Duration;

use lab_language::{
    CellError, Optional, Setting, TextError,
    units::{self, Hold},
};
use lab_workload::{LoadKind, LoadSpec, Spacing, Stage};

use crate::extent::{MAX_PHASE, USERS, milliseconds};
use crate::model::Cell;
use crate::stages::{self, Level, StageTemplate};

/// Most sessions of a sequence.
const SESSIONS: std::ops::RangeInclusive<u64> = 1..=10_000_000;
/// Most processes that drive one load.
const GENERATORS: std::ops::RangeInclusive<u64> = 1..=64;
/// Sessions under way at once, unless a study says otherwise.
const CONNECTIONS: u32 = 1000;
/// The time that a sequence may take, unless a study says otherwise.
const SEQUENCE_LIMIT: Duration = Duration::from_secs(600);

/// Longest window of a load whose end is known.
const LONGEST_WINDOW_MS: u64 = 1000;

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
    /// Users or arrivals that change with time.
    Stages {
        of: Level,
        stages: Vec<StageTemplate>,
        arrival: Option<Box<ArrivalTemplate>>,
    },
    /// Users whose number a search chooses, with the fewest that it tries.
    Searched(u32),
}

/// Sessions that arrive, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct ArrivalTemplate {
    /// With stages none: they say it.
    pub(crate) rate: Option<Setting>,
    pub(crate) spacing: Option<Setting>,
    pub(crate) connections: Option<Setting>,
}

/// The load of a trial at speed 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Load {
    kind: LoadKind,
    users: u32,
    stages: Vec<Stage>,
    ramp: Duration,
    hold: Duration,
    timeout: Option<Duration>,
    time_limit: Option<Duration>,
    generators: u32,
}

impl LoadTemplate {
    /// The load in `cell`; `pace` is the length of a cycle.
    pub(crate) fn load(&self, cell: &Cell, pace: Option<Duration>) -> Result<Load, CellError> {
        let (kind, users, stages) = self.kind.kind(cell)?;
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
            stages,
            ramp: ramp.unwrap_or(Duration::ZERO),
            hold: hold.unwrap_or(SEQUENCE_LIMIT),
            timeout,
            time_limit,
            generators: generators.map_or(1, |n| n as u32),
        })
    }
}

impl KindTemplate {
    fn kind(&self, cell: &Cell) -> Result<(LoadKind, u32, Vec<Stage>), CellError> {
        let users = |text: &str| units::whole_number(text, USERS);
        Ok(match self {
            Self::Users(setting) => {
                let users = setting.value(cell, users)? as u32;
                (LoadKind::Users, users, Vec::new())
            }
            Self::Searched(users) => (LoadKind::Users, *users, Vec::new()),
            Self::Stages {
                of,
                stages,
                arrival,
            } => {
                let (stages, most) = stages::stages(*of, stages, cell)?;
                match of {
                    Level::Users => (LoadKind::Users, most as u32, stages),
                    Level::Rate => {
                        let (kind, connections) = arrivals(most, arrival.as_deref(), cell)?;
                        (kind, connections, stages)
                    }
                }
            }
            Self::Arrival(arrival) => {
                let rate_per_s = arrival.rate.value(cell, units::rate)?;
                let (kind, connections) =
                    arrivals(rate_per_s.unwrap_or_default(), Some(arrival), cell)?;
                (kind, connections, Vec::new())
            }
            Self::Sequence(sessions) => {
                let count = |text: &str| units::whole_number(text, SESSIONS);
                let sessions = sessions.value(cell, count)? as u32;
                (LoadKind::Sequence { sessions }, 1, Vec::new())
            }
        })
    }
}

/// Sessions that arrive at this rate, and their connections.
fn arrivals(
    rate_per_s: f64,
    template: Option<&ArrivalTemplate>,
    cell: &Cell,
) -> Result<(LoadKind, u32), CellError> {
    let (mut spacing, mut connections) = (None, None);
    if let Some(arrival) = template {
        spacing = arrival.spacing.value(cell, spacing_named)?;
        let count = |text: &str| units::whole_number(text, USERS);
        connections = arrival.connections.value(cell, count)?;
    }
    let kind = LoadKind::Arrival {
        rate_per_s,
        spacing: spacing.unwrap_or_default(),
    };
    Ok((kind, connections.map_or(CONNECTIONS, |n| n as u32)))
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
        let level = match self.kind {
            LoadKind::Arrival { .. } => Level::Rate,
            LoadKind::Users | LoadKind::Sequence { .. } => Level::Users,
        };
        let stages = stages::at_speed(&self.stages, level, speed);
        let hold_ms = match (is_sequence, stages.is_empty()) {
            (true, _) => milliseconds(self.hold, 1.0),
            (false, true) => milliseconds(self.hold, speed).max(1),
            (false, false) => stages.iter().map(|stage| stage.length_ms).sum(),
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
        let longest_window = if is_sequence { 100 } else { LONGEST_WINDOW_MS };
        LoadSpec {
            users: self.users,
            ramp_ms: milliseconds(self.ramp, speed),
            hold_ms,
            window_ms: window_ms(hold_ms, &stages).clamp(1, longest_window),
            kind,
            stages,
            generators: self.generators,
            timeout_ms: self.timeout.map(|time| milliseconds(time, 1.0)),
            time_limit_ms: self.time_limit.map(|time| milliseconds(time, 1.0)),
        }
    }
}

/// As long as 250 fit into the hold; where a stage is short, ten into that, so that it has figures, but
/// never more than 5000 into all. Windows end where stages do, if their lengths allow it.
fn window_ms(hold_ms: u64, stages: &[Stage]) -> u64 {
    let usual = hold_ms / 250;
    let lengths = || stages.iter().map(|stage| stage.length_ms);
    let Some(shortest) = lengths().min() else {
        return usual;
    };
    let most = usual
        .min((shortest / 10).max(hold_ms / 5000))
        .clamp(1, LONGEST_WINDOW_MS);
    let fits = |window: &u64| lengths().all(|length| length.is_multiple_of(*window));
    (most.div_ceil(2)..=most).rev().find(fits).unwrap_or(most)
}
