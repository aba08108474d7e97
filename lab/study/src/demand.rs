//! The load of a study as written, and resolved in one cell.

use std::time::Duration;

use lab_language::{
    AddressRange, Agents, CellError, Optional, Setting, TextError,
    units::{self, Hold},
};
use lab_workload::{LoadKind, LoadSpec, Population, Stage, Timeline, USUAL_WINDOWS, window_ms};

use crate::extent::{MAX_PHASE, milliseconds};
use crate::kinds::{Kind, KindTemplate};
use crate::mix::MixTemplate;
use crate::model::Cell;
use crate::stages::{self, Level};

/// The number of processes that generate one load.
const GENERATORS: std::ops::RangeInclusive<u64> = 1..=64;
/// The time limit of a sequence, unless a study sets another.
const SEQUENCE_LIMIT: Duration = Duration::from_secs(600);

/// The time after the last moment of a recording, for the answers to it.
const LAST_ANSWERS_MS: u64 = 1000;
/// Longest window of a sequence: its hold is far longer than the sequence itself.
const LONGEST_WINDOW_OF_SEQUENCE_MS: u64 = 100;

/// The load of a study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct LoadTemplate {
    pub(crate) who: WhoTemplate,
    pub(crate) ramp: Option<Setting>,
    pub(crate) hold: Option<Setting>,
    pub(crate) timeout: Option<Setting>,
    pub(crate) time_limit: Option<Setting>,
    pub(crate) generators: GeneratorsTemplate,
    pub(crate) connections: Option<Setting>,
    /// Whether the users' protocol uses HTTP/2 in any case.
    pub(crate) over_http2: bool,
    pub(crate) sources: Vec<AddressRange>,
}

/// The generators of a load; the number of processes may still refer to factors.
#[derive(Debug, Clone)]
pub(crate) enum GeneratorsTemplate {
    /// One process.
    One,
    Processes(Setting),
    Away(Agents),
}

/// The users of a load, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) enum WhoTemplate {
    /// Users who all run the same workload.
    One(KindTemplate),
    /// Several populations at the same time.
    Mix(MixTemplate),
}

/// The load of a trial at speed 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Load {
    kind: Kind,
    ramp: Duration,
    hold: Duration,
    timeout: Option<Duration>,
    time_limit: Option<Duration>,
    generators: u32,
}

impl LoadTemplate {
    /// Names of its populations, in their order.
    pub(crate) fn populations(&self) -> impl Iterator<Item = &str> {
        let populations = match &self.who {
            WhoTemplate::One(_) => &[][..],
            WhoTemplate::Mix(mix) => &mix.populations,
        };
        populations.iter().map(|one| one.name.as_str())
    }

    /// The load in `cell`; `pace` is the length of a cycle.
    pub(crate) fn load(&self, cell: &Cell, pace: Option<Duration>) -> Result<Load, CellError> {
        let mut kind = match &self.who {
            WhoTemplate::One(kind) => kind.kind(cell)?,
            WhoTemplate::Mix(mix) => mix.kind(cell)?,
        };
        let ramp = self
            .ramp
            .value(cell, |text| units::duration(text, MAX_PHASE))?;
        // Only users repeat a cycle.
        let pace = pace.filter(|_| kind.kind == LoadKind::Users && kind.mix.is_empty());
        let hold = self.hold.value(cell, |text| hold(text, &kind, pace))?;
        if let (WhoTemplate::Mix(mix), Some(hold)) = (&self.who, hold) {
            let length = ramp.unwrap_or_default().saturating_add(hold);
            for (template, of) in mix.populations.iter().zip(&mut kind.mix) {
                of.after_ms = milliseconds(template.after(cell, length)?, 1.0);
            }
        }
        let timeout = self.timeout.value(cell, units::timeout)?;
        let time_limit = self.time_limit.value(cell, units::timeout)?;
        let processes = |text: &str| units::whole_number(text, GENERATORS);
        let generators = match &self.generators {
            GeneratorsTemplate::Processes(count) => count.value(cell, processes)?,
            GeneratorsTemplate::One | GeneratorsTemplate::Away(_) => 1,
        };
        Ok(Load {
            ramp: ramp.unwrap_or(Duration::ZERO),
            hold: match &kind.timeline {
                Some((_, length)) => *length,
                None => hold.unwrap_or(SEQUENCE_LIMIT),
            },
            timeout,
            time_limit,
            generators: generators as u32,
            kind,
        })
    }
}

fn hold(text: &str, kind: &Kind, pace: Option<Duration>) -> Result<Duration, TextError> {
    let hold = match (units::hold(text, MAX_PHASE)?, pace) {
        (Hold::Time(time), _) => time,
        (Hold::Cycles(cycles), Some(pace)) => pace.saturating_mul(cycles),
        (Hold::Cycles(_), None) => {
            let message = match kind.kind {
                _ if !kind.mix.is_empty() => "populations have no cycles in common to count",
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

impl Load {
    /// Returns the load of a trial. The speed divides times and multiplies rates. Limits that hold at any
    /// speed (of a late answer, of the end of a sequence) stay as they are.
    pub(crate) fn spec(&self, speed: f64) -> LoadSpec {
        let is_sequence = matches!(self.kind.kind, LoadKind::Sequence { .. });
        let stages = at_speed(self.kind.kind, &self.kind.stages, speed).1;
        let hold_ms = match (is_sequence, stages.is_empty()) {
            (true, _) => milliseconds(self.hold, 1.0),
            (false, true) if self.kind.timeline.is_some() => {
                milliseconds(self.hold, speed) + LAST_ANSWERS_MS
            }
            (false, true) => milliseconds(self.hold, speed).max(1),
            (false, false) => stages.iter().map(|stage| stage.length_ms).sum(),
        };
        let window_ms = match is_sequence {
            true => (hold_ms / USUAL_WINDOWS).clamp(1, LONGEST_WINDOW_OF_SEQUENCE_MS),
            false => window_ms(hold_ms, &stages),
        };
        LoadSpec {
            users: self.kind.users,
            ramp_ms: milliseconds(self.ramp, speed),
            hold_ms,
            window_ms,
            kind: at_speed(self.kind.kind, &[], speed).0,
            stages,
            timeline: self
                .kind
                .timeline
                .as_ref()
                .map(|(timeline, _)| faster(timeline, speed)),
            mix: self.populations(speed),
            generators: self.generators,
            timeout_ms: self.timeout.map(|time| milliseconds(time, 1.0)),
            time_limit_ms: self.time_limit.map(|time| milliseconds(time, 1.0)),
        }
    }

    fn populations(&self, speed: f64) -> Vec<Population> {
        let population = |one: &Population| {
            let (kind, stages) = at_speed(one.kind, &one.stages, speed);
            Population {
                kind,
                stages,
                timeline: one.timeline.as_ref().map(|one| faster(one, speed)),
                after_ms: milliseconds(Duration::from_millis(one.after_ms), speed),
                ..one.clone()
            }
        };
        self.kind.mix.iter().map(population).collect()
    }
}

/// A recording at a speed.
fn faster(timeline: &Timeline, speed: f64) -> Timeline {
    Timeline {
        scale: timeline.scale * speed,
        ..timeline.clone()
    }
}

/// Scales the kind of load and its stages to a speed, which multiplies rates.
fn at_speed(kind: LoadKind, stages: &[Stage], speed: f64) -> (LoadKind, Vec<Stage>) {
    match kind {
        LoadKind::Arrival {
            rate_per_s,
            spacing,
        } => {
            let kind = LoadKind::Arrival {
                rate_per_s: rate_per_s * speed,
                spacing,
            };
            (kind, stages::at_speed(stages, Level::Rate, speed))
        }
        other => (other, stages::at_speed(stages, Level::Users, speed)),
    }
}
