//! The time course of a trial as frames: current sums, times, and counters. Pure: the same growth gives the same
//! frames.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lab_archive::{Growth, Interval, Kind, Manifest, Outcome, Series, WindowLine};
use lab_counts::{ErrorClass, StepCounts};
use lab_stats::exponential::Exponential;

use crate::figure::{
    COUNTER, Figure, Frame, LATENESS, MEASURE, Metric, REQUESTS, RESPONSE_TIME, SESSIONS,
    TRANSACTION_TIME, TRANSACTIONS, TrialLabels, USERS, VALID, Value,
};

/// Shortest interval of frames, however short the trial's windows are.
const APART_MS: f64 = 1000.0;

/// A trial whose archive grows.
#[derive(Debug)]
pub struct Course {
    of: Arc<TrialLabels>,
    steps: Vec<Step>,
    /// Each is counted like a step.
    transactions: Vec<Step>,
    users: u32,
    sessions: Sum,
    lateness: Times,
    columns: Vec<Arc<str>>,
    newest: Vec<Option<f64>>,
    windows: VecDeque<WindowLine>,
    /// Number of windows with their histograms: a window's histograms directly follow it.
    settled: usize,
    intervals: VecDeque<Interval>,
    rows: VecDeque<(f64, Vec<Option<f64>>)>,
    told_ms: Option<f64>,
    over: Over,
}

/// Whether more data follows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Over {
    Not,
    /// All is read; true if it is valid, if known.
    Read(Option<bool>),
    Told,
}

/// A step, or a named transaction.
#[derive(Debug)]
struct Step {
    name: Arc<str>,
    is_transaction: bool,
    ok: Sum,
    errors: BTreeMap<ErrorClass, Sum>,
    times: Times,
    measures: Vec<Measure>,
}

/// A number in its responses.
#[derive(Debug)]
struct Measure {
    name: Arc<str>,
    unit: Arc<str>,
    numbers: Times,
}

/// A count since the start of the ramp, and since the last frame.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    all: u64,
    new: u64,
}

#[derive(Debug, Default)]
struct Times {
    all: Exponential,
    new: Exponential,
}

impl Sum {
    fn add(&mut self, count: u64) {
        self.all += count;
        self.new += count;
    }

    fn take(&mut self) -> Value {
        Value::Count(self.all, std::mem::take(&mut self.new))
    }
}

impl Times {
    fn numbers() -> Self {
        Self {
            all: Exponential::numbers(),
            new: Exponential::numbers(),
        }
    }

    fn add(&mut self, interval: &Interval) {
        let counts = interval.counts();
        self.all.add_us(&counts);
        self.new.add_us(&counts);
    }

    fn add_numbers(&mut self, interval: &Interval) {
        let counts = interval.counts();
        self.all.add_thousandths(&counts);
        self.new.add_thousandths(&counts);
    }

    fn take(&mut self) -> Value {
        let new = std::mem::replace(&mut self.new, self.all.emptied());
        Value::Times(Arc::new(self.all.clone()), Arc::new(new))
    }
}

impl Step {
    fn new(name: &str) -> Self {
        let none = |class| (class, Sum::default());
        Self {
            name: name.into(),
            is_transaction: false,
            ok: Sum::default(),
            errors: ErrorClass::ALL.map(none).into(),
            times: Times::default(),
            measures: Vec::new(),
        }
    }

    fn add(&mut self, line: &StepCounts) {
        self.ok.add(line.ok);
        for (class, count) in line.errors.iter() {
            self.errors.entry(class).or_default().add(count);
        }
    }

    /// Outcomes with a count of 0 are reported, too: a sum that starts with 1 has no increase.
    fn figures(&mut self, figures: &mut Vec<Figure>) {
        let outcome = |word: &'static str| vec![("outcome", word.into())];
        let (counts, times, label) = match self.is_transaction {
            true => (&TRANSACTIONS, &TRANSACTION_TIME, "transaction"),
            false => (&REQUESTS, &RESPONSE_TIME, "step"),
        };
        let step = (label, Arc::clone(&self.name));
        let mut put = |metric, mut labels: Vec<(&'static str, Arc<str>)>, value| {
            labels.push(step.clone());
            figures.push(Figure {
                metric,
                labels,
                value,
            });
        };
        put(counts, outcome("ok"), self.ok.take());
        for class in ErrorClass::ALL {
            let sum = self.errors.entry(class).or_default();
            put(counts, outcome(class.name()), sum.take());
        }
        put(times, Vec::new(), self.times.take());
        for measure in &mut self.measures {
            let labels = vec![
                ("measure", Arc::clone(&measure.name)),
                ("step", Arc::clone(&self.name)),
                ("unit", Arc::clone(&measure.unit)),
            ];
            figures.push(Figure {
                metric: &MEASURE,
                labels,
                value: measure.numbers.take(),
            });
        }
    }
}

impl Course {
    /// A trial without data yet, with the names of its steps and of their measures.
    #[must_use]
    pub fn new(of: TrialLabels, manifest: &Manifest) -> Self {
        let mut steps: Vec<Step> = manifest.steps.iter().map(|name| Step::new(name)).collect();
        for measure in &manifest.measures {
            if let Some(step) = steps.get_mut(usize::from(measure.step)) {
                step.measures.push(Measure {
                    name: measure.name.as_str().into(),
                    unit: measure.unit.as_str().into(),
                    numbers: Times::numbers(),
                });
            }
        }
        let transaction = |name: &String| Step {
            is_transaction: true,
            ..Step::new(name)
        };
        Self {
            of: Arc::new(of),
            steps,
            transactions: manifest.transactions.iter().map(transaction).collect(),
            users: 0,
            sessions: Sum::default(),
            lateness: Times::default(),
            columns: Vec::new(),
            newest: Vec::new(),
            windows: VecDeque::new(),
            settled: 0,
            intervals: VecDeque::new(),
            rows: VecDeque::new(),
            told_ms: None,
            over: Over::Not,
        }
    }

    /// Adds new data of the archive.
    pub fn grow(&mut self, growth: Growth) {
        if self.columns.is_empty() {
            self.columns = growth.columns.iter().map(|name| (&**name).into()).collect();
        }
        if !growth.windows.is_empty() {
            self.settled = self.windows.len() + growth.windows.len() - 1;
        }
        self.windows.extend(growth.windows);
        self.intervals.extend(growth.intervals);
        self.rows.extend(growth.rows);
    }

    /// Ends it after all was read. `is_valid` is true if it is valid, if known.
    pub fn end(&mut self, is_valid: Option<bool>) {
        self.settled = self.windows.len();
        self.over = Over::Read(is_valid);
    }

    /// Returns true if all frames were returned.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.over == Over::Told
    }

    /// The next frame; `None` until more is read.
    pub fn frame(&mut self) -> Option<Frame> {
        if self.told_ms.is_none() && self.settled > 0 {
            return Some(self.told(0.0));
        }
        while self.settled > 0 {
            let window = self.windows.pop_front()?;
            self.settled -= 1;
            self.window(&window);
            let is_last = self.settled == 0 && self.over != Over::Not;
            let since = window.end_ms - self.told_ms.unwrap_or_default();
            if since >= APART_MS || is_last {
                return Some(self.told(window.end_ms));
            }
        }
        let Over::Read(is_valid) = self.over else {
            return None;
        };
        self.over = Over::Told;
        Some(self.last(is_valid))
    }

    fn window(&mut self, window: &WindowLine) {
        self.users = window.counts.users;
        self.sessions.add(window.counts.cycles);
        for (number, line) in &window.steps {
            if let Some(step) = self.steps.get_mut(usize::from(*number)) {
                step.add(line);
            }
        }
        for (number, line) in &window.transactions {
            if let Some(transaction) = self.transactions.get_mut(usize::from(*number)) {
                transaction.add(line);
            }
        }
        // Times of intervals are whole ms.
        let is_of = |interval: &Interval| interval.end_ms as f64 <= window.end_ms + 0.5;
        while self.intervals.front().is_some_and(is_of)
            && let Some(interval) = self.intervals.pop_front()
        {
            self.interval(&interval);
        }
        let is_of = |(at, _): &(f64, _)| *at <= window.end_ms;
        while self.rows.front().is_some_and(is_of)
            && let Some((_, row)) = self.rows.pop_front()
        {
            self.newest = row;
        }
    }

    fn interval(&mut self, interval: &Interval) {
        match interval.series {
            Series::Step {
                step,
                outcome: Outcome::Ok,
                kind: Kind::Response,
            } => {
                if let Some(step) = self.steps.get_mut(usize::from(step)) {
                    step.times.add(interval);
                }
            }
            Series::Transaction {
                transaction,
                outcome: Outcome::Ok,
                elapsed: false,
            } => {
                let transaction = self.transactions.get_mut(usize::from(transaction));
                if let Some(transaction) = transaction {
                    transaction.times.add(interval);
                }
            }
            Series::Measure { step, place } => {
                let step = self.steps.get_mut(usize::from(step));
                let place = usize::from(place);
                if let Some(measure) = step.and_then(|step| step.measures.get_mut(place)) {
                    measure.numbers.add_numbers(interval);
                }
            }
            Series::Lateness => self.lateness.add(interval),
            _ => {}
        }
    }

    fn told(&mut self, t_ms: f64) -> Frame {
        self.told_ms = Some(t_ms);
        let mut figures = vec![
            gauge(&USERS, Vec::new(), f64::from(self.users)),
            Figure {
                metric: &SESSIONS,
                labels: Vec::new(),
                value: self.sessions.take(),
            },
        ];
        let all = self.steps.iter_mut().chain(&mut self.transactions);
        all.for_each(|step| step.figures(&mut figures));
        figures.push(Figure {
            metric: &LATENESS,
            labels: Vec::new(),
            value: self.lateness.take(),
        });
        for (name, value) in self.columns.iter().zip(&self.newest) {
            if let Some(value) = value {
                figures.push(gauge(&COUNTER, vec![("name", Arc::clone(name))], *value));
            }
        }
        Frame {
            of: Arc::clone(&self.of),
            at_ms: self.of.began_ms + whole(t_ms),
            figures,
            is_end: false,
        }
    }

    /// The end of all its series, and the trial's outcome.
    fn last(&mut self, is_valid: Option<bool>) -> Frame {
        let t_ms = self.told_ms;
        let mut frame = match t_ms {
            Some(t_ms) => self.told(t_ms),
            None => Frame {
                of: Arc::clone(&self.of),
                at_ms: self.of.began_ms,
                figures: Vec::new(),
                is_end: true,
            },
        };
        frame.at_ms += 1;
        frame.is_end = true;
        if let Some(is_valid) = is_valid {
            let value = f64::from(u8::from(is_valid));
            frame.figures.push(gauge(&VALID, Vec::new(), value));
        }
        frame
    }
}

fn gauge(metric: &'static Metric, labels: Vec<(&'static str, Arc<str>)>, value: f64) -> Figure {
    Figure {
        metric,
        labels,
        value: Value::Gauge(value),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "times of a trial are small"
)]
fn whole(ms: f64) -> i64 {
    ms.round() as i64
}
