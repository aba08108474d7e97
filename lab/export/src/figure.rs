//! The figures of a trial at a time. It knows no receiver and no encoding.

use std::sync::Arc;

use lab_stats::exponential::Exponential;

/// The metric of a figure.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Words of its name, joined by `_`; without unit, and without what a receiver adds.
    pub name: &'static str,
    /// A sentence about it.
    pub help: &'static str,
    /// Its unit; empty for a plain number.
    pub unit: &'static str,
    /// The kind of its values.
    pub shape: Shape,
}

/// The kind of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A current value.
    Gauge,
    /// A sum since the start of the trial's ramp.
    Count,
    /// Times since then, or other numbers, as histograms.
    Times,
}

pub(crate) static USERS: Metric = Metric {
    name: "plimsoll_users",
    help: "Users in a session.",
    unit: "",
    shape: Shape::Gauge,
};
pub(crate) static SESSIONS: Metric = Metric {
    name: "plimsoll_sessions",
    help: "Sessions begun, ramp included.",
    unit: "",
    shape: Shape::Count,
};
pub(crate) static REQUESTS: Metric = Metric {
    name: "plimsoll_requests",
    help: "Requests by what came back, ramp included.",
    unit: "",
    shape: Shape::Count,
};
pub(crate) static RESPONSE_TIME: Metric = Metric {
    name: "plimsoll_response_time",
    help: "Of answered requests, from the planned send, ramp included.",
    unit: "seconds",
    shape: Shape::Times,
};
pub(crate) static TRANSACTIONS: Metric = Metric {
    name: "plimsoll_transactions",
    help: "Named transactions by what came of them, ramp included.",
    unit: "",
    shape: Shape::Count,
};
pub(crate) static TRANSACTION_TIME: Metric = Metric {
    name: "plimsoll_transaction_time",
    help: "Of completed transactions, without the think times within them, ramp included.",
    unit: "seconds",
    shape: Shape::Times,
};
pub(crate) static MEASURE: Metric = Metric {
    name: "plimsoll_measure",
    help: "Numbers that answers told, each in the unit of its label, ramp included.",
    unit: "",
    shape: Shape::Times,
};
pub(crate) static LATENESS: Metric = Metric {
    name: "plimsoll_lateness",
    help: "How much later than meant the generator sent.",
    unit: "seconds",
    shape: Shape::Times,
};
pub(crate) static COUNTER: Metric = Metric {
    name: "plimsoll_counter",
    help: "The newest samples of host and processes, as in monitor.csv.",
    unit: "",
    shape: Shape::Gauge,
};
pub(crate) static VALID: Metric = Metric {
    name: "plimsoll_trial_valid",
    help: "Whether a trial that is over is a measurement.",
    unit: "",
    shape: Shape::Gauge,
};

/// All metrics.
pub static METRICS: [&Metric; 10] = [
    &USERS,
    &SESSIONS,
    &REQUESTS,
    &RESPONSE_TIME,
    &TRANSACTIONS,
    &TRANSACTION_TIME,
    &MEASURE,
    &LATENESS,
    &COUNTER,
    &VALID,
];

/// The trial that figures belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialLabels {
    /// The archive's folder.
    pub run: String,
    /// The study.
    pub study: String,
    /// The trial's number in the archive.
    pub trial: u32,
    /// Its levels in words.
    pub cell: String,
    /// Start of its ramp, ms since 1970 (UTC).
    pub began_ms: i64,
}

impl TrialLabels {
    /// The labels of every figure, in the order of their names.
    pub(crate) fn labels(&self) -> [(&'static str, String); 4] {
        [
            ("cell", self.cell.clone()),
            ("run", self.run.clone()),
            ("study", self.study.clone()),
            ("trial", self.trial.to_string()),
        ]
    }
}

/// The figures of a trial at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The trial.
    pub of: Arc<TrialLabels>,
    /// The time, ms since 1970 (UTC).
    pub at_ms: i64,
    /// The figures.
    pub figures: Vec<Figure>,
    /// True if it ends these series: the values are those of the frame before.
    pub is_end: bool,
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its metric.
    pub metric: &'static Metric,
    /// The labels that identify it within its metric, in the order of the names.
    pub labels: Vec<(&'static str, Arc<str>)>,
    /// Its value.
    pub value: Value,
}

/// A value, of its metric's [`Shape`].
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A current value.
    Gauge(f64),
    /// A sum since the start of the ramp, and its increase since the last frame.
    Count(u64, u64),
    /// Times since the start of the ramp, and those since the last frame.
    Times(Arc<Exponential>, Arc<Exponential>),
}

impl Frame {
    /// Its figures of a metric.
    pub(crate) fn of(&self, metric: &'static Metric) -> impl Iterator<Item = &Figure> {
        self.figures
            .iter()
            .filter(move |figure| figure.metric == metric)
    }
}
