//! The system and load of a study as written, and what they come to in one cell.
//!
//! Settings may name factors (`users: "{{ users }}"`), so their values are known only per cell;
//! loading a study works out every cell once, so that a plan finds no new errors.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Cell;
use crate::template::Template;
use crate::text_error::TextError;
use crate::units::{self, Hold};

/// Fewest and most virtual users of a trial.
pub(crate) const USERS: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Most worker threads of a system.
const HTTP_THREADS: std::ops::RangeInclusive<u64> = 1..=10_000;
/// Most padding of one mailbox.
const MAX_PAD_BYTES: u64 = 10 * 1024 * 1024 * 1024;
/// Longest ramp, and longest hold.
pub(crate) const MAX_PHASE: Duration = Duration::from_secs(30 * 86_400);

/// How the system under test is set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemSpec {
    /// The groupware server that comes with the lab, as a process of its own.
    Groupware(GroupwareSpec),
}

/// A setting of the groupware server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupwareSpec {
    /// Worker threads; `None` = its own default.
    pub http_threads: Option<u32>,
    /// Bytes by which each mailbox is padded before the trial.
    pub mailbox_pad_bytes: u64,
    /// Where it keeps its records.
    pub engine: Engine,
}

/// A store engine of the groupware server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// On disk, durable.
    #[default]
    Sqlite,
    /// Gone when the process ends.
    Memory,
}

/// The load of a trial at speed 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    pub(crate) users: u32,
    pub(crate) ramp: Duration,
    pub(crate) hold: Duration,
}

/// The settings of a study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct CellTemplate {
    pub(crate) http_threads: Option<Template>,
    pub(crate) mailbox_pad: Option<Template>,
    pub(crate) engine: Option<Template>,
    pub(crate) users: Template,
    pub(crate) ramp: Template,
    pub(crate) hold: Template,
}

/// A setting that makes no sense in a cell.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{field}` is `{text}`: {cause}")]
pub(crate) struct CellError {
    /// The key in the file.
    pub(crate) field: &'static str,
    /// Its text in the cell.
    pub(crate) text: String,
    /// What is wrong with it.
    pub(crate) cause: TextError,
}

impl CellTemplate {
    /// The system in `cell`.
    pub(crate) fn system(&self, cell: &Cell) -> Result<SystemSpec, CellError> {
        let http_threads = optional("http_threads", self.http_threads.as_ref(), cell, |text| {
            units::whole_number(text, HTTP_THREADS)
        })?;
        let pad = optional("mailbox_pad", self.mailbox_pad.as_ref(), cell, |text| {
            units::size(text, MAX_PAD_BYTES)
        })?;
        let engine = optional("engine", self.engine.as_ref(), cell, units::engine)?;
        Ok(SystemSpec::Groupware(GroupwareSpec {
            http_threads: http_threads.map(|n| n as u32),
            mailbox_pad_bytes: pad.unwrap_or(0),
            engine: engine.unwrap_or_default(),
        }))
    }

    /// The load in `cell`; `pace` is the length of a cycle.
    pub(crate) fn load(&self, cell: &Cell, pace: Option<Duration>) -> Result<Load, CellError> {
        let users = setting("users", &self.users, cell, |text| {
            units::whole_number(text, USERS)
        })?;
        let ramp = setting("ramp", &self.ramp, cell, |text| {
            units::duration(text, MAX_PHASE)
        })?;
        let hold = setting("hold", &self.hold, cell, |text| {
            let hold = match (units::hold(text, MAX_PHASE)?, pace) {
                (Hold::Time(time), _) => time,
                (Hold::Cycles(cycles), Some(pace)) => pace.saturating_mul(cycles),
                (Hold::Cycles(_), None) => {
                    return Err(TextError::new(
                        "the workload has no `pace`, so it has no cycles to count",
                        0..text.len(),
                    )
                    .help("give the hold as a time, such as `10m`"));
                }
            };
            if hold < Duration::from_millis(1) || hold > MAX_PHASE {
                return Err(TextError::new(
                    "a hold lasts 1 ms to 30 days",
                    0..text.len(),
                ));
            }
            Ok(hold)
        })?;
        Ok(Load {
            users: users as u32,
            ramp,
            hold,
        })
    }
}

fn optional<T>(
    field: &'static str,
    template: Option<&Template>,
    cell: &Cell,
    parse: impl FnOnce(&str) -> Result<T, TextError>,
) -> Result<Option<T>, CellError> {
    template.map(|t| setting(field, t, cell, parse)).transpose()
}

fn setting<T>(
    field: &'static str,
    template: &Template,
    cell: &Cell,
    parse: impl FnOnce(&str) -> Result<T, TextError>,
) -> Result<T, CellError> {
    let text = template.render_setting(cell).map_err(|error| CellError {
        field,
        text: template.source().to_owned(),
        cause: TextError::new(error.to_string(), 0..template.source().len()),
    })?;
    parse(&text).map_err(|cause| CellError { field, text, cause })
}

/// Every combination of levels, in file order: the last factor changes fastest.
pub(crate) fn cells(matrix: &[crate::model::Factor]) -> Vec<Cell> {
    let mut cells = vec![Cell::new()];
    for factor in matrix {
        cells = cells
            .iter()
            .flat_map(|cell| {
                factor.levels.iter().map(move |level| {
                    let mut cell = cell.clone();
                    cell.insert(factor.name.clone(), level.clone());
                    cell
                })
            })
            .collect();
    }
    cells
}
