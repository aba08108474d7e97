//! A recorded timeline: sessions arrive at the times in a column of the workload's rows. The session of a row uses that
//! row. It reads rows in chunks, and knows no clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::data::{Data, Table};

/// The format of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Seconds from any epoch, such as `1767607200.25`.
    #[default]
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// `2026-01-05T10:00:00.25Z`.
    DateTime,
}

impl TimeUnit {
    /// Parses a time in ns; `None` if the text is none.
    #[must_use]
    pub fn nanos(self, text: &str) -> Option<i64> {
        let text = text.trim();
        let digits = match self {
            Self::Seconds => 9,
            Self::Millis => 6,
            Self::Micros => 3,
            Self::Nanos => 0,
            Self::DateTime => {
                let moment: Timestamp = text.parse().ok()?;
                return i64::try_from(moment.as_nanosecond()).ok();
            }
        };
        decimal(text, digits)
    }
}

/// A decimal number, times ten to the power of `digits`; further digits are truncated.
fn decimal(text: &str, digits: usize) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (sign, whole) = match whole.strip_prefix('-') {
        Some(whole) => (-1, whole),
        None => (1, whole),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.get(..digits.min(fraction.len()))?;
    let scaled = format!("{whole}{fraction:0<digits$}");
    Some(sign * scaled.parse::<i64>().ok()?)
}

/// The replayed rows, and their speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The index of the column with the times.
    pub column: u32,
    /// Their format.
    pub unit: TimeUnit,
    /// The first replayed row.
    pub first: u64,
    /// Number of rows.
    pub rows: u64,
    /// The recorded time of the start of the load, ns.
    pub origin_ns: i64,
    /// Speed relative to the recording.
    pub scale: f64,
}

/// The problem with the times of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    /// A row, from 1, without a time.
    #[error("row {row}: `{text}` is no moment")]
    NoMoment {
        /// The row.
        row: u64,
        /// Its text.
        text: String,
    },
    /// A row, from 1, whose time is before that of the row before.
    #[error("row {row}: its moment is before that of the row before")]
    Unsorted {
        /// The row.
        row: u64,
    },
    /// It can't be read.
    #[error("{0}")]
    Read(String),
}

/// The times of a column, in ns, chunk by chunk.
#[derive(Debug, Clone)]
struct Moments {
    table: Arc<Table>,
    column: usize,
    unit: TimeUnit,
    /// The next row.
    next: u64,
    /// The remaining rows of the present chunk, the last one first.
    left: Vec<String>,
}

impl Moments {
    fn new(table: &Arc<Table>, column: u32, unit: TimeUnit, first: u64) -> Self {
        Self {
            table: Arc::clone(table),
            column: column as usize,
            unit,
            next: first,
            left: Vec::new(),
        }
    }

    /// The next row and its time.
    fn advance(&mut self) -> Option<Result<(u64, i64), TimelineError>> {
        if self.next >= self.table.rows() {
            return None;
        }
        if self.left.is_empty() {
            match self.table.column_from(self.next, self.column) {
                Ok(mut values) => {
                    values.reverse();
                    self.left = values;
                }
                Err(error) => return Some(Err(TimelineError::Read(error))),
            }
        }
        let text = self.left.pop()?;
        let row = self.next;
        self.next += 1;
        let moment = self.unit.nanos(&text);
        let wrong = || TimelineError::NoMoment { row: row + 1, text };
        Some(moment.ok_or_else(wrong).map(|moment| (row, moment)))
    }
}

/// A section of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Its first row.
    pub first: u64,
    /// Number of rows.
    pub rows: u64,
    /// Its start time, ns.
    pub origin_ns: i64,
    /// Its last time, ns.
    pub last_ns: i64,
}

impl Recorded {
    /// Scans a column for the rows in this range of time after the first row. `None` if there are none.
    ///
    /// # Errors
    /// When a row has no time, or is out of order.
    pub fn scan(
        table: &Arc<Table>,
        (column, unit): (u32, TimeUnit),
        (from, to): (Duration, Option<Duration>),
    ) -> Result<Option<Self>, TimelineError> {
        let mut moments = Moments::new(table, column, unit, 0);
        let mut begins: Option<i64> = None;
        let mut before = i64::MIN;
        let mut found: Option<Self> = None;
        while let Some(next) = moments.advance() {
            let (row, moment) = next?;
            if moment < before {
                return Err(TimelineError::Unsorted { row: row + 1 });
            }
            before = moment;
            let begin = *begins.get_or_insert(moment);
            let origin_ns = begin.saturating_add(nanos(from));
            let end = to.map_or(i64::MAX, |to| begin.saturating_add(nanos(to)));
            if moment < origin_ns || moment >= end {
                continue;
            }
            let of = found.get_or_insert(Self {
                first: row,
                rows: 0,
                origin_ns,
                last_ns: moment,
            });
            of.rows += 1;
            of.last_ns = moment;
        }
        Ok(found)
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The arrivals of a timeline: the time after the start, and the row.
#[derive(Debug, Clone)]
pub(crate) struct Replay {
    timeline: Timeline,
    moments: Option<Moments>,
}

impl Replay {
    /// Without the rows nothing arrives.
    pub(crate) fn new(timeline: &Timeline, data: Option<&Arc<Data>>) -> Self {
        let table = data.and_then(|data| data.table.as_ref());
        let moments = |table| Moments::new(table, timeline.column, timeline.unit, timeline.first);
        Self {
            moments: table.map(moments),
            timeline: timeline.clone(),
        }
    }

    /// The next row and its arrival; `None` after the last, and if the file has changed.
    pub(crate) fn advance(&mut self) -> Option<(u64, Duration)> {
        let moments = self.moments.as_mut()?;
        if moments.next >= self.timeline.first.saturating_add(self.timeline.rows) {
            return None;
        }
        let (row, moment) = moments.advance()?.ok()?;
        let since = moment.saturating_sub(self.timeline.origin_ns).max(0);
        #[expect(clippy::cast_precision_loss, reason = "30 days are 2^52 ns")]
        let seconds = since as f64 / 1e9 / self.timeline.scale;
        Some((
            row,
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        ))
    }
}

#[cfg(test)]
mod tests;
