//! The kinds of load (what starts sessions): as a study writes them, and resolved in one cell.

use std::time::Duration;

use lab_language::{CellError, Optional, Setting, TextError, units};
use lab_workload::{LoadKind, Population, Spacing, Stage, Timeline};

use crate::extent::USERS;
use crate::model::Cell;
use crate::stages::{self, Level, StageTemplate};
use crate::timeline::TimelineTemplate;

/// The maximum number of concurrent sessions, unless a study sets another.
const SESSIONS_AT_ONCE: u32 = 1000;
/// The number of sessions of a sequence.
const SESSIONS: std::ops::RangeInclusive<u64> = 1..=10_000_000;
/// The kind of load, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) enum KindTemplate {
    Users(Setting),
    Arrival(Box<ArrivalTemplate>),
    Sequence(Box<SequenceTemplate>),
    /// Users or arrivals that change with time.
    Stages {
        of: Level,
        stages: Vec<StageTemplate>,
        arrival: Option<Box<ArrivalTemplate>>,
    },
    /// Sessions that arrive as recorded.
    Timeline(Box<TimelineTemplate>, Option<Box<ArrivalTemplate>>),
    /// A search chooses the number of users; the value is the minimum that it tries.
    Searched(u32),
}

/// The kind of load in one cell, at speed 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Kind {
    pub(crate) kind: LoadKind,
    pub(crate) users: u32,
    pub(crate) stages: Vec<Stage>,
    pub(crate) mix: Vec<Population>,
    /// A recording, and how long it lasts.
    pub(crate) timeline: Option<(Timeline, Duration)>,
}

impl Kind {
    fn of(kind: LoadKind, users: u32) -> Self {
        Self {
            kind,
            users,
            ..Self::default()
        }
    }
}

/// A number of sessions, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct SequenceTemplate {
    pub(crate) sessions: Setting,
    /// One, if it is absent.
    pub(crate) users: Option<Setting>,
    pub(crate) shared: Option<Setting>,
}

/// Sessions that arrive, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct ArrivalTemplate {
    /// Absent with stages, which set the rate.
    pub(crate) rate: Option<Setting>,
    pub(crate) spacing: Option<Setting>,
    /// Sessions under way at once.
    pub(crate) sessions: Option<Setting>,
}

impl KindTemplate {
    pub(crate) fn kind(&self, cell: &Cell) -> Result<Kind, CellError> {
        let users = |text: &str| units::whole_number(text, USERS);
        Ok(match self {
            Self::Users(setting) => {
                let users = setting.value(cell, users)? as u32;
                Kind::of(LoadKind::Users, users)
            }
            Self::Timeline(template, arrival) => {
                let (timeline, length) = template.timeline(cell)?;
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "a file has far less than 2^52 rows"
                )]
                let rate_per_s = timeline.rows as f64 / length.as_secs_f64().max(1e-3);
                let kind = arrivals(rate_per_s, arrival.as_deref(), cell)?;
                Kind {
                    kind: LoadKind::Arrival {
                        rate_per_s,
                        spacing: Spacing::Recorded,
                    },
                    timeline: Some((timeline, length)),
                    ..kind
                }
            }
            Self::Searched(users) => Kind::of(LoadKind::Users, *users),
            Self::Stages {
                of,
                stages,
                arrival,
            } => {
                let (stages, most) = stages::stages(*of, stages, cell)?;
                let kind = match of {
                    Level::Users => Kind::of(LoadKind::Users, most as u32),
                    Level::Rate => arrivals(most, arrival.as_deref(), cell)?,
                };
                Kind { stages, ..kind }
            }
            Self::Arrival(arrival) => {
                let rate_per_s = arrival.rate.value(cell, units::rate)?;
                arrivals(rate_per_s.unwrap_or_default(), Some(arrival), cell)?
            }
            Self::Sequence(sequence) => {
                let count = |text: &str| units::whole_number(text, SESSIONS);
                let sessions = sequence.sessions.value(cell, count)? as u32;
                let of = sequence.users.value(cell, users)?.unwrap_or(1) as u32;
                let shared = sequence.shared.value(cell, switch)?.unwrap_or_default();
                Kind::of(LoadKind::Sequence { sessions, shared }, of)
            }
        })
    }
}

/// Sessions that arrive at this rate, with the maximum number of concurrent ones.
fn arrivals(
    rate_per_s: f64,
    template: Option<&ArrivalTemplate>,
    cell: &Cell,
) -> Result<Kind, CellError> {
    let (mut spacing, mut sessions) = (None, None);
    if let Some(arrival) = template {
        spacing = arrival.spacing.value(cell, spacing_named)?;
        let count = |text: &str| units::whole_number(text, USERS);
        sessions = arrival.sessions.value(cell, count)?;
    }
    let kind = LoadKind::Arrival {
        rate_per_s,
        spacing: spacing.unwrap_or_default(),
    };
    Ok(Kind::of(
        kind,
        sessions.map_or(SESSIONS_AT_ONCE, |n| n as u32),
    ))
}

fn switch(text: &str) -> Result<bool, TextError> {
    units::one_named("shared", text, &[("true", true), ("false", false)])
}

fn spacing_named(text: &str) -> Result<Spacing, TextError> {
    const NAMES: [(&str, Spacing); 2] = [
        ("poisson", Spacing::Poisson),
        ("constant", Spacing::Constant),
    ];
    units::one_named("spacing", text, &NAMES)
}
