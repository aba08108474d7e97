//! What happened in a turn besides its end: checks, samples of metrics, groups, log lines.

/// One thing that happened in a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A check passed or failed.
    Check {
        /// The place of the call in the sites of the program.
        site: u32,
        /// The name that the script gives.
        name: String,
        /// Whether it passed.
        passed: bool,
    },
    /// A value was added to a metric of the script.
    Metric {
        /// The name of the metric.
        name: String,
        /// The kind of the metric.
        kind: MetricKind,
        /// Whether the values are times in milliseconds.
        time: bool,
        /// The value; 1 or 0 for a rate.
        value: f64,
    },
    /// A group begins or ends.
    Group {
        /// The name of the group, without the groups around it.
        name: String,
        /// True at its beginning.
        begins: bool,
    },
    /// A line of the script's log.
    Log {
        /// The severity.
        level: Level,
        /// The text.
        text: String,
        /// The place of the call in the sites of the program.
        site: u32,
    },
    /// The script asks to end the whole test (`test.abort`).
    Interrupt {
        /// The reason that the script gives.
        reason: String,
    },
    /// The script ends its iteration by `fail`.
    Fail {
        /// The reason that the script gives.
        reason: String,
    },
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A sum.
    Counter,
    /// The last, least, and greatest value.
    Gauge,
    /// The share of values other than 0.
    Rate,
    /// A distribution.
    Trend,
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.debug`
    Debug,
    /// `console.log`, `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
}
