//! The current trial: sums, quantiles, and the time course of its archived data so far. Nothing here is judged: the
//! trial may still be invalid.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use lab_archive::{ErrorExample, Growth, Interval, Kind, Manifest, Outcome, Series, WindowLine};
use lab_counts::ErrorCounts;
use lab_stats::exponential::Exponential;

use crate::series::{Counters, Load};

/// Most examples of errors, and most of one class of a step, so that others have room.
const EXAMPLES: usize = 30;
const EXAMPLES_ALIKE: usize = 5;
/// Time span of the current figures.
const HORIZON_MS: f64 = 5_000.0;

/// Separates the name of a part of the system from that of its counter.
const OF: char = '/';

/// Displayed counters, by their columns; those of a remote part of the system have its name as prefix.
pub(crate) const COUNTERS: [&str; 7] = [
    "host.cpu_percent",
    "system.cpu_percent",
    "generator.cpu_percent",
    "system.rss_mb",
    "host.disk_transfers_per_s",
    "host.network_kb_per_s",
    "host.cpu_others_percent",
];

/// A current trial.
#[derive(Debug, Default)]
pub struct Trial {
    /// Its number in the archive.
    pub id: u32,
    /// The trial of the plan that it repeats.
    pub attempt_of: Option<u32>,
    /// Trials of the plan.
    pub of: u32,
    /// Its levels in words.
    pub label: String,
    /// Users at the top of its ramp.
    pub users: u32,
    /// Cores of its system's host, if it is not the generator's machine.
    pub system_cores: Option<u32>,
    /// Length of its ramp.
    pub ramp_ms: u64,
    /// Length of its hold.
    pub hold_ms: u64,
    /// Its phase, as the archive names it; empty before the first.
    pub phase: String,
    /// The reason of a wait, or the progress of its setup; empty otherwise.
    pub doing: String,
    /// Steps of its session.
    pub steps: Vec<Step>,
    /// The probe, if there is one.
    pub probe: Option<Step>,
    /// Transactions of its session, without the think times within them.
    pub transactions: Vec<Step>,
    /// Numbers in responses, in the manifest's order.
    pub measures: Vec<Measure>,
    /// End of the last window on the trial's clock.
    pub elapsed_ms: f64,
    /// Sessions started.
    pub sessions: u64,
    pub(crate) load: Load,
    pub(crate) counters: Counted,
    /// Counters of its parts on machines of their own.
    pub(crate) parts: Vec<PartCounted>,
    /// True if the archive's columns were searched for such parts.
    knows_parts: bool,
    pub(crate) lateness: Option<Histogram<u64>>,
    /// Ramp included.
    pub(crate) all_lateness: Exponential,
    pub(crate) examples: Vec<ErrorExample>,
    recent: VecDeque<Recent>,
    holds: bool,
}

/// The counters of a machine.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) course: Counters,
    /// Indices of [`COUNTERS`] among the archive's columns.
    columns: Option<[Option<usize>; COUNTERS.len()]>,
    /// The newest value of each of [`COUNTERS`].
    pub(crate) newest: [Option<f64>; COUNTERS.len()],
}

/// The counters of the machine of a part of the system.
#[derive(Debug)]
pub(crate) struct PartCounted {
    pub(crate) name: String,
    /// The cores of that machine.
    pub(crate) cores: Option<u32>,
    pub(crate) counted: Counted,
}

impl Counted {
    /// Adds samples; `begin` is the prefix of the relevant names.
    fn grow(&mut self, begin: &str, growth: &Growth) {
        let find = |name: &str| {
            let of = |column: &String| column.strip_prefix(begin) == Some(name);
            growth.columns.iter().position(of)
        };
        let columns = *self.columns.get_or_insert_with(|| COUNTERS.map(find));
        for (t_ms, row) in &growth.rows {
            let values = columns.map(|at| row.get(at?).copied().flatten());
            self.course.take(*t_ms, &values);
            self.newest = values;
        }
    }
}

/// A step of the session, or the probe; or a transaction, which is counted like a request.
#[derive(Debug)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Answered requests, ramp included.
    pub ok: u64,
    /// Failed ones by class, ramp included.
    pub errors: ErrorCounts,
    /// Response times in µs since the start of the hold; before it, since the start of the ramp.
    pub times: Histogram<u64>,
    /// Response times in µs, ramp included.
    pub all_times: Histogram<u64>,
}

/// A number in the responses of a step.
#[derive(Debug)]
pub struct Measure {
    /// The step, by its number.
    pub step: u16,
    /// Its name.
    pub name: String,
    /// Its unit; empty for a plain number.
    pub unit: String,
    /// In thousandths, since the start of the hold; before it, since the start of the ramp.
    pub numbers: Histogram<u64>,
    /// Ramp included.
    pub all_numbers: Exponential,
}

#[derive(Debug)]
struct Recent {
    start_ms: f64,
    end_ms: f64,
    answered: u64,
    failed: u64,
}

impl Step {
    fn new(name: &str) -> Self {
        let histogram = || Histogram::new(3).expect("three digits are allowed");
        Self {
            name: name.to_owned(),
            ok: 0,
            errors: ErrorCounts::default(),
            times: histogram(),
            all_times: histogram(),
        }
    }

    /// Failed requests.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.total()
    }
}

impl Trial {
    /// A trial that starts, with the steps of the run by number, of which the last may be the probe, and their
    /// measures.
    pub(crate) fn new(id: u32, manifest: &Manifest) -> Self {
        let steps = manifest.steps.as_slice();
        let (names, probe) = match steps.split_last() {
            Some((last, names)) if last == lab_archive::PROBE => (names, Some(Step::new(last))),
            _ => (steps, None),
        };
        let measures = manifest.measures.iter().map(|measure| Measure {
            step: measure.step,
            name: measure.name.clone(),
            unit: measure.unit.clone(),
            numbers: Histogram::new(3).expect("three digits are allowed"),
            all_numbers: Exponential::numbers(),
        });
        Self {
            id,
            measures: measures.collect(),
            transactions: manifest
                .transactions
                .iter()
                .map(|name| Step::new(name))
                .collect(),
            steps: names.iter().map(|name| Step::new(name)).collect(),
            probe,
            ..Self::default()
        }
    }

    /// Adds new data of the archive.
    pub(crate) fn grow(&mut self, growth: Growth) {
        for window in &growth.windows {
            self.window(window);
        }
        if !growth.columns.is_empty() {
            self.counted(&growth);
        }
        for interval in growth.intervals {
            self.interval(interval);
        }
    }

    fn counted(&mut self, growth: &Growth) {
        if !std::mem::replace(&mut self.knows_parts, true) {
            for column in &growth.columns {
                if let Some((name, _)) = column.split_once(OF) {
                    self.part(name);
                }
            }
        }
        self.counters.grow("", growth);
        for part in &mut self.parts {
            part.counted.grow(&format!("{}{OF}", part.name), growth);
        }
    }

    /// A part of the system on a machine of its own, by its name.
    pub(crate) fn part(&mut self, name: &str) -> &mut PartCounted {
        let known = self.parts.iter().position(|part| part.name == name);
        let at = known.unwrap_or_else(|| {
            self.parts.push(PartCounted {
                name: name.to_owned(),
                cores: None,
                counted: Counted::default(),
            });
            self.parts.len() - 1
        });
        &mut self.parts[at]
    }

    fn window(&mut self, window: &WindowLine) {
        let (mut answered, mut failed) = (0, 0);
        for (number, line) in &window.steps {
            let number = usize::from(*number);
            let is_probe = number == self.steps.len();
            let step = self.steps.get_mut(number).or(self.probe.as_mut());
            let Some(step) = step else { continue };
            step.ok += line.ok;
            step.errors += line.errors;
            if !is_probe {
                answered += line.ok;
                failed += line.failed();
            }
        }
        for (number, line) in &window.transactions {
            if let Some(transaction) = self.transactions.get_mut(usize::from(*number)) {
                transaction.ok += line.ok;
                transaction.errors += line.errors;
            }
        }
        self.elapsed_ms = self.elapsed_ms.max(window.end_ms);
        self.sessions += window.counts.cycles;
        self.load.window(window, answered, failed);
        self.recent.push_back(Recent {
            start_ms: window.start_ms,
            end_ms: window.end_ms,
            answered,
            failed,
        });
        let from = window.end_ms - HORIZON_MS;
        while self.recent.front().is_some_and(|one| one.end_ms <= from) {
            self.recent.pop_front();
        }
    }

    fn interval(&mut self, interval: Interval) {
        if !self.holds && interval.start_ms + 1 >= self.ramp_ms {
            self.holds = true;
            let steps = self.steps.iter_mut().chain(&mut self.probe);
            let all = steps.chain(&mut self.transactions);
            all.for_each(|step| step.times.clear());
            let measures = self.measures.iter_mut();
            measures.for_each(|measure| measure.numbers.clear());
            self.lateness = None;
        }
        match interval.series {
            Series::Step {
                step,
                outcome: Outcome::Ok,
                kind: Kind::Response,
            } => {
                let number = usize::from(step);
                let is_probe = number == self.steps.len();
                let Some(step) = self.steps.get_mut(number).or(self.probe.as_mut()) else {
                    return;
                };
                interval.add_to(&mut step.times);
                interval.add_to(&mut step.all_times);
                if !is_probe {
                    self.load.times(interval);
                }
            }
            Series::Transaction {
                transaction,
                outcome: Outcome::Ok,
                elapsed: false,
            } => {
                if let Some(one) = self.transactions.get_mut(usize::from(transaction)) {
                    interval.add_to(&mut one.times);
                    interval.add_to(&mut one.all_times);
                }
            }
            Series::Lateness => {
                let new = || Histogram::new(3).expect("three digits are allowed");
                interval.add_to(self.lateness.get_or_insert_with(new));
                self.all_lateness.add_us(&interval.counts());
            }
            Series::Measure { step, place } => {
                let mut of_step = self.measures.iter_mut().filter(|one| one.step == step);
                if let Some(measure) = of_step.nth(usize::from(place)) {
                    interval.add_to(&mut measure.numbers);
                    measure.all_numbers.add_thousandths(&interval.counts());
                }
            }
            _ => {}
        }
    }

    /// Answered requests, ramp included, without those of the probe.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.steps.iter().map(|step| step.ok).sum()
    }

    /// Failed ones.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.steps.iter().map(Step::failed).sum()
    }

    /// Answered and failed requests per second over the last seconds.
    #[must_use]
    pub fn rates(&self) -> Option<(f64, f64)> {
        let (first, last) = self.recent.front().zip(self.recent.back())?;
        let seconds = (last.end_ms - first.start_ms) / 1e3;
        let per_s = |count: u64| lab_stats::ratio(count as f64, seconds);
        let answered = self.recent.iter().map(|one| one.answered).sum();
        let failed = self.recent.iter().map(|one| one.failed).sum();
        per_s(answered).zip(per_s(failed))
    }

    /// Response times in µs of all steps together, since the start of the hold or, before it, of the ramp.
    #[must_use]
    pub fn times(&self) -> Histogram<u64> {
        let mut sum = Histogram::new(3).expect("three digits are allowed");
        for step in &self.steps {
            // It resizes itself.
            let _ = sum.add(&step.times);
        }
        sum
    }

    /// Returns true if its times are of the hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Users in a session at the end of the last window.
    #[must_use]
    pub fn users_now(&self) -> u32 {
        self.load.stretches().last().map_or(0, |last| last.users)
    }

    /// Time to the end of its hold; `None` before its ramp.
    #[must_use]
    pub fn left_ms(&self) -> Option<f64> {
        let is_on = matches!(&*self.phase, "ramp" | "hold");
        is_on.then(|| ((self.ramp_ms + self.hold_ms) as f64 - self.elapsed_ms).max(0.0))
    }

    /// Stores it, unless an equal one exists. Examples aren't counted: the log has few of the failures.
    pub(crate) fn example(&mut self, example: ErrorExample) {
        let mut of_kind = 0;
        for one in &self.examples {
            if one.step == example.step && one.class == example.class {
                if one.detail == example.detail {
                    return;
                }
                of_kind += 1;
            }
        }
        if self.examples.len() < EXAMPLES && of_kind < EXAMPLES_ALIKE {
            self.examples.push(example);
        }
    }
}
