//! The stages of a load: still with references to factors, and resolved in one cell.

use std::time::Duration;

use lab_language::{CellError, Optional, Setting, TextError, units};
use lab_workload::Stage;

use crate::extent::{MAX_PHASE, USERS, milliseconds};
use crate::model::Cell;

/// A stage, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct StageTemplate {
    pub(crate) name: String,
    pub(crate) level: Setting,
    /// The level at its start, if it isn't that of the stage before.
    pub(crate) from: Option<Setting>,
    pub(crate) length: Setting,
    /// Whether the stage changes the level, or keeps it.
    pub(crate) ramps: bool,
}

/// The unit of the levels of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Numbers of users.
    Users,
    /// Arrivals per second.
    Rate,
}

/// The stages in `cell`, at speed 1, and the most of their levels.
pub(crate) fn stages(
    of: Level,
    templates: &[StageTemplate],
    cell: &Cell,
) -> Result<(Vec<Stage>, f64), CellError> {
    let (mut from, mut most) = (0.0, 0.0f64);
    let mut stages = Vec::with_capacity(templates.len());
    for template in templates {
        let to = template.level.value(cell, |text| level(of, text))?;
        let own = template.from.value(cell, |text| level(of, text))?;
        stages.push(Stage {
            name: template.name.clone(),
            length_ms: milliseconds(template.length.value(cell, length)?, 1.0),
            from: own.unwrap_or(if template.ramps { from } else { to }),
            to,
        });
        from = to;
        most = most.max(to).max(own.unwrap_or_default());
    }
    match templates.last() {
        Some(last) if most <= 0.0 => {
            let message = "no stage has any load";
            let none = |text: &str| Err(TextError::new(message, 0..text.len()));
            last.level.value(cell, none)
        }
        _ => Ok((stages, most)),
    }
}

fn level(of: Level, text: &str) -> Result<f64, TextError> {
    match of {
        #[expect(clippy::cast_precision_loss, reason = "a million users at most")]
        Level::Users => units::whole_number(text, 0..=*USERS.end()).map(|users| users as f64),
        Level::Rate => units::rate_or_none(text),
    }
}

fn length(text: &str) -> Result<Duration, TextError> {
    let length = units::duration(text, MAX_PHASE)?;
    if length < Duration::from_millis(1) {
        let message = "a stage lasts 1 ms to 30 days";
        return Err(TextError::new(message, 0..text.len()));
    }
    Ok(length)
}

/// Returns the stages at a speed, which divides times and multiplies rates.
pub(crate) fn at_speed(stages: &[Stage], of: Level, speed: f64) -> Vec<Stage> {
    let level = |level: f64| match of {
        Level::Users => level,
        Level::Rate => level * speed,
    };
    let stage = |stage: &Stage| Stage {
        name: stage.name.clone(),
        length_ms: milliseconds(Duration::from_millis(stage.length_ms), speed).max(1),
        from: level(stage.from),
        to: level(stage.to),
    };
    stages.iter().map(stage).collect()
}
