//! A simulated generator: users with or without a pace against a server with a fixed response time. Every figure of the
//! trial follows from the same events, so that a fault has all its effects of a real trial.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_archive::{
    Clocks, GeneratorHealth, Kind, LatenessLine, LimitsReached, Outcome, RunWriter, Series,
    TrialEnd, TrialRecord, TrialWriter, Unanswered, Used, WindowLine,
};
use lab_counts::{ErrorClass, StepCounts, WindowCounts};
use lab_study::plan::Trial;

use crate::support::{Made, empty};

/// Interval of the loop lag's samples, ms.
const LAG_EVERY: f64 = 10.0;
/// Usual wake-up time of a loop, ms.
const WAKE_UP: f64 = 0.05;

/// The faults of a trial. The default is none.
pub(crate) struct Faults {
    /// Each send is late by this much, ms.
    pub(crate) late: f64,
    /// Each read is late by this much, ms.
    pub(crate) read_late: f64,
    /// Start and end of the loop's stalls, ms.
    pub(crate) stalls: Vec<(f64, f64)>,
    /// Each nth send is dropped, up to a moment, ms.
    pub(crate) drops_every: usize,
    pub(crate) drops_until: f64,
    /// Each nth request goes to the last step instead of its own.
    pub(crate) swaps_every: usize,
    /// Each nth request is sent twice.
    pub(crate) doubles_every: usize,
    /// Each nth cycle skips the second step.
    pub(crate) omits_every: usize,
    /// Waits as lasted ÷ as planned.
    pub(crate) waits: f64,
    /// Response time of the server, ms.
    pub(crate) answer: f64,
    /// Each nth request fails.
    pub(crate) fails_every: usize,
    /// Each nth step finds its list empty.
    pub(crate) skips_every: usize,
    /// The server stops responding to requests from here on, ms.
    pub(crate) hangs_from: f64,
    /// Number of users that it stops responding to.
    pub(crate) hangs_users: u32,
    /// Windows that end between these are lost, ms.
    pub(crate) loses: Option<(f64, f64)>,
    /// Histograms of these windows are lost, ms.
    pub(crate) loses_times: Option<(f64, f64)>,
    /// Times as recorded ÷ as they were.
    pub(crate) times: f64,
    /// Loops that reached their bound.
    pub(crate) cut_off: u64,
    /// Requests sent again.
    pub(crate) resent: u64,
    /// Counters are sampled until here, ms.
    pub(crate) sampled_to: f64,
    /// Values of counters in each row.
    pub(crate) counters: BTreeMap<&'static str, f64>,
    /// Further changes of the record.
    pub(crate) record: Box<dyn Fn(&mut TrialRecord)>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            late: 0.1,
            read_late: 0.0,
            stalls: Vec::new(),
            drops_every: usize::MAX,
            drops_until: f64::INFINITY,
            swaps_every: usize::MAX,
            doubles_every: usize::MAX,
            omits_every: usize::MAX,
            waits: 1.0,
            answer: 20.0,
            fails_every: usize::MAX,
            skips_every: usize::MAX,
            hangs_from: f64::INFINITY,
            hangs_users: u32::MAX,
            loses: None,
            loses_times: None,
            times: 1.0,
            cut_off: 0,
            resent: 0,
            sampled_to: f64::INFINITY,
            counters: BTreeMap::new(),
            record: Box::new(|_| {}),
        }
    }
}

/// What a window counts of a step.
#[derive(Default)]
struct Counted {
    line: StepCounts,
    ok: Vec<f64>,
    failed: Vec<f64>,
}

#[derive(Default)]
struct Window {
    steps: BTreeMap<u16, Counted>,
    lateness: Vec<f64>,
    lag: Vec<f64>,
    cycles: u64,
    overruns: u64,
}

struct Simulation<'a> {
    trial: &'a Trial,
    faults: &'a Faults,
    windows: Vec<Window>,
    end: f64,
    sends: usize,
    unanswered: Unanswered,
}

/// Returns a study of users with constant waits.
pub(crate) fn study(pace: &str) -> Made {
    Made {
        workload: format!(
            "workload: tiny
user: {{ name: \"user{{{{ index }}}}\" }}
session:
{pace}  steps:
    - step: Log in
      wait: 300ms
      request: POST /login
    - step: Read
      wait: 700ms
      requests: [GET /a, GET /b]
    - step: Write
      wait: 1s
      request: PUT /c
"
        ),
        overrides: vec![
            ("matrix.users".to_owned(), "[100]".to_owned()),
            ("load.hold".to_owned(), "24s".to_owned()),
        ],
        ..Made::default()
    }
}

/// Simulates the only trial of a study and writes it.
pub(crate) fn write(writer: &RunWriter, trial: &Trial, pace: Option<f64>, faults: &Faults) {
    let mut out = writer.trial(trial.id).unwrap();
    let end = (trial.load.ramp_ms + trial.load.hold_ms) as f64;
    let windows = (end / trial.load.window_ms as f64).ceil() as usize;
    let mut simulation = Simulation {
        trial,
        faults,
        windows: (0..windows).map(|_| Window::default()).collect(),
        end,
        sends: 0,
        unanswered: Unanswered {
            count: 0,
            oldest_ms: 0.0,
        },
    };
    for user in 0..trial.load.users {
        simulation.user(user, pace);
    }
    simulation.sample_lag();
    simulation.write_windows(&mut out);
    monitor(&mut out, trial, faults);
    let mut record = record(trial, simulation.unanswered);
    (faults.record)(&mut record);
    out.finish(&record).unwrap();
}

impl Simulation<'_> {
    /// Returns when the loop handles an event that is due at `at`.
    fn held(&self, at: f64) -> f64 {
        let stalls = self.faults.stalls.iter();
        let mut within = stalls.filter(|(from, to)| (*from..*to).contains(&at));
        within.next().map_or(at, |(_, to)| *to)
    }

    fn window(&mut self, at: f64) -> Option<&mut Window> {
        let at = (at / self.trial.load.window_ms as f64) as usize;
        self.windows.get_mut(at)
    }

    fn step(&mut self, at: f64, step: usize) -> Option<&mut Counted> {
        let steps = &mut self.window(at)?.steps;
        Some(steps.entry(step as u16).or_default())
    }

    fn user(&mut self, user: u32, pace: Option<f64>) {
        let load = &self.trial.load;
        let mut due = load.ramp_ms as f64 * f64::from(user) / f64::from(load.users);
        for cycle in 0.. {
            let Some(window) = self.window(due) else {
                return;
            };
            window.cycles += 1;
            let omits = (cycle + 1) % self.faults.omits_every == 0;
            let Some(done) = self.cycle((user, due), omits) else {
                return;
            };
            due = match pace {
                Some(pace) if done > due + pace => {
                    self.window(done)
                        .into_iter()
                        .for_each(|one| one.overruns += 1);
                    done
                }
                Some(pace) => due + pace,
                None => done,
            };
        }
    }

    /// Returns the end of the cycle; `None` if the trial ends before.
    fn cycle(&mut self, (user, from): (u32, f64), omits: bool) -> Option<f64> {
        let mut now = from;
        for (step, (wait, requests)) in [(300.0, 1), (700.0, 2), (1000.0, 1)]
            .into_iter()
            .enumerate()
        {
            if omits && step == 1 {
                continue;
            }
            let due = now + wait * self.faults.waits;
            let send = self.held(due + self.faults.late);
            let counted = self.step(send, step)?;
            counted.line.waits += 1;
            counted.line.wait_sum_us += (1000.0 * (send - now)) as u64;
            self.window(send)?.lateness.push(send - due);
            now = send;
            for _ in 0..requests {
                self.sends += 1;
                now = self.request(user, step, now)?;
            }
        }
        Some(now)
    }

    /// Returns when its response is read; `None` if the trial ends before.
    fn request(&mut self, user: u32, step: usize, send: f64) -> Option<f64> {
        let is_each = |every: usize| self.sends.is_multiple_of(every);
        let Faults {
            drops_every,
            doubles_every,
            fails_every,
            skips_every,
            ..
        } = *self.faults;
        let drops = is_each(drops_every) && send < self.faults.drops_until;
        let (doubles, swaps) = (is_each(doubles_every), is_each(self.faults.swaps_every));
        let (fails, skips) = (is_each(fails_every), is_each(skips_every));
        if drops {
            return Some(send);
        }
        if skips {
            self.step(send, step)?.line.skipped += 1;
            return Some(send);
        }
        let read = self.held(send + self.faults.answer + self.faults.read_late);
        let hangs = send >= self.faults.hangs_from && user < self.faults.hangs_users;
        if hangs || read >= self.end {
            self.unanswered.count += 1;
            let age = self.end - send;
            self.unanswered.oldest_ms = self.unanswered.oldest_ms.max(age);
            return None;
        }
        let took = (read - send) * self.faults.times;
        let counted = self.step(read, if swaps { 2 } else { step })?;
        if fails {
            counted.line.errors[ErrorClass::Status] += 1;
            counted.failed.push(took);
        } else {
            let times = if doubles { 2 } else { 1 };
            counted.line.ok += times;
            counted.ok.extend(vec![took; times as usize]);
        }
        Some(read)
    }

    fn sample_lag(&mut self) {
        let mut at = LAG_EVERY;
        while at < self.end {
            let lag = self.held(at) + self.faults.read_late + WAKE_UP - at;
            self.window(at)
                .into_iter()
                .for_each(|one| one.lag.push(lag));
            at += LAG_EVERY;
        }
    }

    fn write_windows(&self, out: &mut TrialWriter) {
        let length = self.trial.load.window_ms as f64;
        let within = |span: Option<(f64, f64)>, at: f64| {
            span.is_some_and(|(from, to)| at > from && at <= to)
        };
        for (number, window) in self.windows.iter().enumerate() {
            let start = number as f64 * length;
            let end = (start + length).min(self.end);
            if within(self.faults.loses, end) {
                continue;
            }
            if !within(self.faults.loses_times, end) {
                self.write_times(out, window, (start, end));
            }
            let risen = end / self.trial.load.ramp_ms as f64;
            let users = f64::from(self.trial.load.users) * risen.min(1.0);
            let steps = window.steps.iter();
            let mut line = WindowLine {
                start_ms: start,
                end_ms: end,
                handed_over_ms: Some(self.held(end) + 1.0),
                counts: WindowCounts {
                    users: users.ceil() as u32,
                    cycles: window.cycles,
                    overruns: window.overruns,
                    ..WindowCounts::default()
                },
                lateness: LatenessLine {
                    count: window.lateness.len() as u64,
                    sum_us: (window.lateness.iter().sum::<f64>() * 1000.0) as u64,
                    max_us: (window.lateness.iter().copied().fold(0.0, f64::max) * 1000.0) as u64,
                },
                steps: steps.map(|(step, of)| (*step, of.line.clone())).collect(),
                ..WindowLine::default()
            };
            if number == self.windows.len() / 2 {
                line.counts.stale_retries = self.faults.resent;
                let first = line.steps.entry(0).or_default();
                first.cut_off = self.faults.cut_off;
            }
            out.window(&line).unwrap();
        }
    }

    fn write_times(&self, out: &mut TrialWriter, window: &Window, (start, end): (f64, f64)) {
        let mut write = |series, times: &[f64]| {
            if !times.is_empty() {
                let span = [start, end].map(|at| Duration::from_millis(at as u64));
                out.histogram(series, span[0], span[1], &histogram(times))
                    .unwrap();
            }
        };
        for (step, counted) in &window.steps {
            for (outcome, times) in [
                (Outcome::Ok, &counted.ok),
                (Outcome::Error, &counted.failed),
            ] {
                let (step, kind) = (*step, Kind::Response);
                let series = Series::Step {
                    step,
                    outcome,
                    kind,
                };
                write(series, times);
            }
        }
        write(Series::Lateness, &window.lateness);
        write(Series::Loop, &window.lag);
    }
}

fn histogram(times_ms: &[f64]) -> Histogram<u64> {
    let mut histogram = empty();
    for ms in times_ms {
        histogram.record(((ms * 1000.0) as u64).max(1)).unwrap();
    }
    histogram
}

/// Writes a row of counters each 400 ms.
fn monitor(out: &mut TrialWriter, trial: &Trial, faults: &Faults) {
    let usual = BTreeMap::from([
        ("host.cpu_percent", 20.0),
        ("host.cpu_steal_percent", 0.0),
        ("host.pressure_memory_some_percent", 0.0),
        ("system.cpu_percent", 10.0),
        ("generator.cpu_percent", 6.0),
    ]);
    let names: Vec<String> = usual.keys().map(|name| (*name).to_owned()).collect();
    out.monitor_header(&names).unwrap();
    let end = trial.load.ramp_ms + trial.load.hold_ms;
    for at in (0..=end).step_by(400) {
        let value =
            |(name, value): (&&str, &f64)| Some(*faults.counters.get(name).unwrap_or(value));
        let row: Vec<Option<f64>> = usual.iter().map(value).collect();
        if at as f64 <= faults.sampled_to {
            out.monitor_row(at as f64, &row).unwrap();
        }
    }
}

fn record(trial: &Trial, unanswered: Unanswered) -> TrialRecord {
    let length = trial.load.ramp_ms + trial.load.hold_ms;
    let mut record = TrialRecord {
        schema: String::new(),
        id: trial.id,
        profile: None,
        waits: None,
        attempt_of: None,
        duet: None,
        started: "2026-01-05T10:00:00Z".to_owned(),
        end: TrialEnd::Complete,
        ramp_ms: trial.load.ramp_ms,
        hold_ms: trial.load.hold_ms,
        elapsed_ms: length,
        provision_ms: 0,
        setup_ms: 0,
        setup_transactions: 0,
        setup_errors: 0,
        error_examples: Vec::new(),
        unanswered: Some(unanswered),
        raw: None,
        generator: GeneratorHealth {
            nice: None,
            workers: 1,
            cpu_fraction: Some(0.1),
            run_queue_delay_fraction: Some(0.004),
            cpu_fraction_max: Some(0.2),
            rss_mb_max: 40.0,
        },
        start_data_bytes: 0,
        environment: lab_archive::TrialEnvironment::default(),
        system_settings: BTreeMap::new(),
        warnings: Vec::new(),
        notes: Vec::new(),
    };
    record.environment.clocks = Some(Clocks {
        wall_start_ms: 1_000_000,
        wall_end_ms: 1_000_000 + length as i64,
        monotonic_ms: length as f64,
    });
    record.environment.limits = LimitsReached {
        generator_open_files: Some(Used {
            most: 120,
            limit: 1024,
        }),
        ..LimitsReached::default()
    };
    record
}
