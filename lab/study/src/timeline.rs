//! A recorded timeline: still with references to factors, and resolved in one cell.

use std::time::Duration;

use lab_language::{CellError, Optional, Setting, TextError};
use lab_workload::{Recorded, TimeUnit, Timeline};

use crate::extent::MAX_PHASE;
use crate::model::Cell;

/// Slowest and fastest replay.
const SCALES: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// A parsed recording; only its replay speed may depend on a factor.
#[derive(Debug, Clone)]
pub(crate) struct TimelineTemplate {
    pub(crate) column: u32,
    pub(crate) unit: TimeUnit,
    pub(crate) recorded: Recorded,
    /// From where it begins to where it ends, as recorded.
    pub(crate) length: Duration,
    pub(crate) scale: Option<Setting>,
}

impl TimelineTemplate {
    /// The timeline in `cell`, and how long it lasts, at speed 1.
    pub(crate) fn timeline(&self, cell: &Cell) -> Result<(Timeline, Duration), CellError> {
        let scale = self.scale.value(cell, |text| self.scale(text))?;
        let scale = scale.unwrap_or(1.0);
        let timeline = Timeline {
            column: self.column,
            unit: self.unit,
            first: self.recorded.first,
            rows: self.recorded.rows,
            origin_ns: self.recorded.origin_ns,
            scale,
        };
        Ok((timeline, self.length.div_f64(scale)))
    }

    fn scale(&self, text: &str) -> Result<f64, TextError> {
        let wrong = |message: &str| Err(TextError::new(message, 0..text.len()));
        let number = text.trim().trim_start_matches('×').parse::<f64>();
        let Some(scale) = number.ok().filter(|scale| SCALES.contains(scale)) else {
            return wrong("a scale is a number from 0.001 to 1000: how many times faster");
        };
        if self.length.as_secs_f64() / scale > MAX_PHASE.as_secs_f64() {
            return wrong("a replay lasts 30 days at most");
        }
        Ok(scale)
    }
}
