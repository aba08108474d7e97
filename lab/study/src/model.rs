//! The validated model of a study and its workload: what the driver and the conductor work from.
//!
//! Every value here has passed validation; a wrong state can't be written. It knows nothing of
//! files and lines (see `load`), of time, or of sockets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;

use crate::scope::Slot;
use crate::template::Template;

/// Day 0 of the date functions where a study names none: a Monday whose fortnight lies in one month.
pub const DEFAULT_DATES_FROM: Date = jiff::civil::date(2026, 1, 5);

/// A whole study: one file, one question.
#[derive(Debug, Clone)]
pub struct Study {
    /// Short name, `[a-z0-9-]+`; names the archive's folder.
    pub name: String,
    /// One line for the head of the report.
    pub title: String,
    /// The question and its background, in prose; may be empty.
    pub about: String,
    /// What the virtual users do, at speed 1 and with the workload's own parameters; that of a trial
    /// is [`Study::workload_with`] its parameters.
    pub workload: Arc<Workload>,
    /// The varied factors, in file order. Never empty levels.
    pub matrix: Vec<Factor>,
    /// The cells of a block, in file order.
    pub cells: Vec<Cell>,
    /// Number of blocks: how often each cell runs.
    pub trials: u32,
    /// Seed of all randomness.
    pub seed: u64,
    /// Judgements on the server.
    pub thresholds: Vec<Threshold>,
    /// Published figures to set beside ours.
    pub published: Vec<Published>,
    /// The order of cells in a block.
    pub order: Order,
    /// Day 0 of the date functions.
    pub dates_from: Date,
    /// The smallest relative difference that matters to whoever asks; a fraction.
    pub smallest_difference: f64,
    /// Whether the first of `cells` runs a second time in each block, as a control: the same under
    /// two labels, whose spread bounds what the study can claim.
    pub control: bool,
    /// Whether each trial also measures what the disk alone does with what its sessions carry.
    pub raw_baseline: bool,
    /// The search for the load line, instead of given numbers of users.
    pub find: Option<Find>,
    /// The system and load as written, still with references to factors; see [`crate::plan`].
    pub(crate) cell_template: crate::cell::CellTemplate,
    /// The workload as written, for compiling it with other parameters.
    pub(crate) workload_file: Arc<crate::file::WorkloadFile>,
}

impl Study {
    /// The workload at speed 1 with these parameters, those of a [`crate::plan::Trial`]: a parameter
    /// is a constant of the workload's templates, so each set of values has a workload of its own.
    /// What is missing has the workload's own value.
    ///
    /// # Errors
    /// Values that make no sense in the workload; those of a plan's trials do.
    pub fn workload_with(&self, parameters: &Cell) -> Result<Arc<Workload>, crate::LoadError> {
        let mut values = self.cell_template.parameters.defaults.clone();
        let known: Vec<String> = values.keys().cloned().collect();
        let given = parameters.iter().filter(|(name, _)| known.contains(name));
        values.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        if values == self.cell_template.parameters.defaults {
            return Ok(Arc::clone(&self.workload));
        }
        crate::load::workload_with(&self.workload_file, &values).map(Arc::new)
    }
}

/// The order in which a block runs its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// A new seeded order in each block, so that drift of the machine favours no cell.
    #[default]
    Shuffled,
    /// As the file lists them.
    Listed,
}

/// The name of the factor whose levels are the variants of a study.
pub const VARIANT: &str = "variant";

/// The smallest relative difference that matters, where a study names none.
pub const SMALLEST_DIFFERENCE: f64 = 0.02;

/// The search for the most users that the system carries within thresholds.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Find {
    /// Fewest users tried; at least one.
    pub min_users: u32,
    /// Most users tried.
    pub max_users: u32,
    /// What must hold for a level to be carried; at least one.
    pub subject_to: Vec<Threshold>,
    /// The search narrows until the levels on both sides of the line differ by no more than this
    /// fraction.
    pub resolution: f64,
    /// Trials at each of the two levels beside the line, in the end.
    pub repeats: u32,
}

/// One varied factor and its levels, in file order.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Name, as in `matrix:`.
    pub name: String,
    /// At least one level.
    pub levels: Vec<Level>,
}

/// The value of a factor in a cell.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// A whole number (users, threads …).
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text (a path, a name).
    Text(String),
    /// A switch.
    Bool(bool),
}

/// One cell: level by factor name.
pub type Cell = BTreeMap<String, Level>;

/// What virtual users do.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Short name.
    pub name: String,
    /// Prose.
    pub about: String,
    /// Variables of each user, evaluated once in this order with `index` (0-based) and `users`.
    pub user: Vec<(String, Template)>,
    /// Steps before measuring. All users finish a step before the next begins; waits are zero.
    pub setup: Vec<Step>,
    /// The repeated session.
    pub session: Session,
    /// A single request measured beside the load.
    pub probe: Option<Probe>,
    /// What a session carries, if its rate is of interest.
    pub transfer: Option<Transfer>,
    /// Every variable a template may see, by slot: `user:` variables, `password`, captures, and
    /// what `set:` sets.
    pub variables: Arc<[String]>,
}

/// The repeated cycle of one user.
#[derive(Debug, Clone)]
pub struct Session {
    /// Fixed cycle time; `None` starts the next cycle at once.
    pub pace: Option<Duration>,
    /// At least one.
    pub steps: Vec<Step>,
}

/// One step: a wait, then one or more requests.
#[derive(Debug, Clone)]
pub struct Step {
    /// As shown in reports; unique in its session.
    pub name: String,
    /// Think time before the first request.
    pub wait: Wait,
    /// How often the step is done in a row (each time with its wait); 1 unless said.
    pub repeat: u32,
    /// At least one; one after the other.
    pub requests: Vec<Request>,
    /// In which sessions it is done; `None` in all.
    pub chance: Option<Chance>,
    /// Of a setup: the first user does it, and nobody else.
    pub once: bool,
}

/// The part of the sessions that does a step: see [`crate::timing::SessionChoice`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// Steps of one group share one draw per session, so that one of them excludes the others.
    pub group: u32,
    /// The step is done when the draw, at least 0 and below 1, is at least this,
    pub from: f64,
    /// and below this.
    pub to: f64,
}

/// Think time, drawn per user and step from the user's timing stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wait {
    /// No wait.
    None,
    /// Always the same.
    Constant(Duration),
    /// Uniform between the two, first ≤ second.
    Uniform(Duration, Duration),
    /// Exponential with this mean, cut at ten means.
    Exponential(Duration),
    /// Lognormal with this median and sigma (of the log), cut at 100 medians.
    Lognormal(Duration, f64),
}

/// One HTTP request of a step.
#[derive(Debug, Clone)]
pub struct Request {
    /// Upper case, one of GET HEAD POST PUT PATCH DELETE OPTIONS.
    pub method: String,
    /// Path and query, or an absolute `http(s)://` URL. Render it before headers and body: it
    /// also evaluates the step's `set:` variables.
    pub target: Template,
    /// In file order; `Host`, `Content-Length`, and cookies are the driver's.
    pub headers: Vec<(String, Template)>,
    /// The body and, by its kind, its default content type.
    pub body: Body,
    /// HTTP Basic credentials.
    pub basic_auth: Option<(Template, Template)>,
    /// Accepted statuses; never empty (200..=299 unless said).
    pub expect: Vec<std::ops::RangeInclusive<u16>>,
    /// Values kept for later requests of this user.
    pub captures: Vec<Capture>,
}

/// A request body.
#[derive(Debug, Clone)]
pub enum Body {
    /// None.
    Empty,
    /// A JSON document whose strings are templates, compiled to one text template
    /// (values are escaped as JSON strings on substitution). `application/json`.
    Json(Template),
    /// `application/x-www-form-urlencoded`: names are percent-encoded, values render so.
    Form(Vec<(String, Template)>),
    /// As it is; content type from `headers`, else `text/plain; charset=utf-8`.
    Text(Template),
}

/// Where a captured value comes from.
#[derive(Debug, Clone)]
pub struct Capture {
    /// The variable it is kept in.
    pub variable: String,
    /// The slot of that variable, for [`crate::UserScope`].
    pub slot: Slot,
    /// The place in the answer (or request).
    pub source: CaptureSource,
}

/// The place that a capture reads.
#[derive(Debug, Clone)]
pub enum CaptureSource {
    /// All matches of an RFC 9535 JSON path in the body, as a list of strings. An empty body or no
    /// match gives an empty list.
    JsonPath(Box<serde_json_path::JsonPath>),
    /// As above, for a path that itself names variables: rendered and compiled per answer.
    JsonPathTemplate(Template),
    /// A response header, by lower-case name.
    Header(String),
    /// A cookie set by the answer.
    Cookie(String),
    /// The first group of a regular expression over the body.
    Regex(Box<regex::Regex>),
    /// The rendered path of this request (`request.path`).
    RequestPath,
}

/// A single request measured beside the load.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Sent by user 0's variables, on its own connection.
    pub request: Request,
    /// Planned sends are this far apart.
    pub every: Duration,
}

/// What a session carries from one end to the other.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Transfer {
    /// Where to, or where from.
    pub place: String,
    /// Its size, above zero.
    pub bytes: u64,
    /// The size of its chunks but, perhaps, the last; above zero and at most `bytes`.
    pub chunk_bytes: u64,
}

/// A judgement on the server, as k6 spells it: `response_time: ["p(95) < 300ms"]`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Threshold {
    /// What is judged.
    pub metric: Metric,
    /// `None` = all steps.
    pub step: Option<String>,
    /// Which figure of it.
    pub aggregate: Aggregate,
    /// The comparison that must hold.
    pub comparison: Comparison,
    /// Milliseconds for times, a fraction for rates, per second for throughput.
    pub limit: f64,
    /// As written.
    pub text: String,
}

/// What a threshold judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// From the planned send where there is a plan.
    ResponseTime,
    /// From the actual send.
    ServiceTime,
    /// Errors ÷ (transactions + errors).
    ErrorRate,
    /// Transactions per second in the hold.
    Throughput,
}

/// A figure of a metric.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// `p(N)`, 0 < N < 100.
    Percentile(f64),
    /// `avg` or `mean`.
    Mean,
    /// `min`.
    Min,
    /// `max`.
    Max,
    /// `med`.
    Median,
    /// `rate`.
    Rate,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A CSV of published figures: its name and its text, `#` lines being its source.
#[derive(Debug, Clone)]
pub struct Published {
    /// File name without folder.
    pub name: String,
    /// The whole file.
    pub text: String,
}

impl Workload {
    /// The same workload with waits, pace, and probe interval divided by `speed`, a positive
    /// number.
    #[must_use]
    pub fn at_speed(&self, speed: f64) -> Self {
        let mut workload = self.clone();
        for step in workload.setup.iter_mut().chain(&mut workload.session.steps) {
            step.wait = step.wait.at_speed(speed);
        }
        workload.session.pace = workload.session.pace.map(|pace| divide(pace, speed));
        if let Some(probe) = &mut workload.probe {
            probe.every = divide(probe.every, speed);
        }
        workload
    }

    /// The slot of a variable.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.variables
            .iter()
            .position(|v| v == name)
            .map(|i| i as Slot)
    }
}

impl Wait {
    /// The mean of its distribution, before the cut of its tail.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match *self {
            Self::None => Duration::ZERO,
            Self::Constant(d) | Self::Exponential(d) => d,
            Self::Uniform(low, high) => (low + high) / 2,
            Self::Lognormal(median, sigma) => {
                let mean = median.as_secs_f64() * (sigma * sigma / 2.0).exp();
                Duration::try_from_secs_f64(mean).unwrap_or(Duration::MAX)
            }
        }
    }

    fn at_speed(self, speed: f64) -> Self {
        match self {
            Self::None => Self::None,
            Self::Constant(d) => Self::Constant(divide(d, speed)),
            Self::Uniform(low, high) => Self::Uniform(divide(low, speed), divide(high, speed)),
            Self::Exponential(mean) => Self::Exponential(divide(mean, speed)),
            Self::Lognormal(median, sigma) => Self::Lognormal(divide(median, speed), sigma),
        }
    }
}

fn divide(time: Duration, speed: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() / speed).unwrap_or(Duration::MAX)
}
