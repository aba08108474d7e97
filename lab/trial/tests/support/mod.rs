//! A fully artificial run, written by the archive's own writer: the input of the tests.
#![allow(dead_code, reason = "each test program uses a part of it")]

mod counters;
mod histograms;
mod stages;
mod transactions;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use lab_archive::{
    DuetRecord, Environment, ErrorExample, GeneratorHealth, Kind, LatenessLine, Manifest,
    MeasureName, Outcome, Pinning, RawBaseline, Run, RunWriter, Series, SlowestLine, TrialEnd,
    TrialRecord, TrialWriter, Unanswered, WindowLine,
};
use lab_counts::{ErrorClass, StepCounts, WindowCounts};
use lab_plan::Side;
use lab_study::plan::{HowEnded, LoadKind, Plan, PlanOptions, SearchEnd, Trial, plan};
use lab_study::{Files, load_study};
use lab_trial::model::{CheckOutcome, TrialAnalysis};
use lab_trial::{Input, alone, planned, step_names};

pub(crate) use histograms::empty;
use histograms::{histogram, parts};

pub(crate) const STUDY: &str = "\
study: tiny
title: A tiny service at 100 and 200 users
about: Made up in every number.
workload: tiny
matrix: { users: [100, 200] }
system: { groupware: { http_threads: 2 } }
load: { users: \"{{ users }}\", ramp: 6s, hold: 4 cycles }
order: listed
thresholds:
  response_time: [\"p(95) < 300ms\"]
  error_rate: [\"rate < 1%\"]
published: [load.csv, steps.csv]
";

pub(crate) const WORKLOAD: &str = "\
workload: tiny
user: { name: \"user{{ index }}\" }
session:
  pace: 6s
  steps:
    - step: Log in
      wait: 200ms..400ms
      request: POST /login
    - step: Read
      wait: 500ms..1500ms
      requests: [GET /a, GET /b]
    - step: Write
      wait: 500ms..1500ms
      request: PUT /c
";

pub(crate) const LOAD_CSV: &str = "\
# A report of long ago.
users,transactions,tps,response_mean_ms,elapsed,cpu_percent,disk_split_io_per_s
100,1800,65,20.5,27s,40,1
300,5400,190,60.5,27s,90,2
";

pub(crate) const STEPS_CSV: &str = "\
# Mean response per step, ms.
step,users_100,users_200
Log in,10,20
Read,30.5,61
Remove,5,5
";

/// Properties of an artificial trial. The default is a healthy one.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// The part of the planned requests that was sent.
    pub(crate) delivered: f64,
    /// The same for the first step alone, in addition.
    pub(crate) first_step: f64,
    /// The same for the steps at these indexes.
    pub(crate) short_steps: Option<(std::ops::Range<usize>, f64)>,
    /// Response time of the first step; the others take two and three times as long.
    pub(crate) response_us: u64,
    pub(crate) late_us: u64,
    /// Waits as lasted ÷ as planned.
    pub(crate) wait: f64,
    /// Every n-th request fails; 0 = none.
    pub(crate) fails_every: u64,
    pub(crate) fails_with: ErrorClass,
    /// Every n-th step is skipped in addition, or dropped since a request before it failed; 0 = none.
    pub(crate) skips_every: u64,
    pub(crate) skips_after_failures: bool,
    /// This many sends of the hold are this late (µs).
    pub(crate) late_few: (u64, u64),
    /// The part of the ramp's requests with responses only in the hold.
    pub(crate) delayed: f64,
    /// The part of the ramp's requests that is sent, and how much longer they take (µs).
    pub(crate) ramp: (f64, u64),
    pub(crate) run_queue: f64,
    /// Whether the kernel reports scheduling times.
    pub(crate) scheduling: bool,
    pub(crate) stale_retries: u64,
    pub(crate) unanswered: Option<(u64, f64)>,
    /// The probe has a response once a window until then (ms), and every n-th time it fails; 0 = never.
    pub(crate) probe: Option<(u64, u64)>,
    pub(crate) raw: Option<RawBaseline>,
    /// Sessions of each window as transactions: completed, failed; and those unfinished at the end.
    pub(crate) sessions: Option<[u64; 3]>,
    /// Time of each session of a sequence.
    pub(crate) session_us: u64,
    pub(crate) cpu_max: f64,
    /// In a duet, whether both trials may use the same cores.
    pub(crate) together: bool,
    pub(crate) overruns: u64,
    pub(crate) setup_errors: u64,
    /// Whether counters were sampled.
    pub(crate) monitored: bool,
    /// A second of windows in the hold is missing.
    pub(crate) gap: bool,
    /// The histograms of the hold's last windows are missing.
    pub(crate) loses_histograms: bool,
    /// This many windows are delivered this late (ms); the others at once. `None`: not recorded.
    pub(crate) held_up: Option<(usize, f64)>,
    pub(crate) elapsed: f64,
    pub(crate) end: TrialEnd,
    /// No windows, no counters at all.
    pub(crate) empty: bool,
    /// The first part of the hold takes ten times as long.
    pub(crate) slow_start_ms: u64,
    /// The part of its planned requests that the stage at this index had.
    pub(crate) short_stage: Option<(usize, f64)>,
    /// Response times grow through the trial.
    pub(crate) climbs: bool,
    /// CPU of the system in the hold, if not the usual; 100 = one core.
    pub(crate) system_cpu: Option<f64>,
    /// The part of the planned sessions that began, for arrivals and sequences.
    pub(crate) began: f64,
    /// Users, or sessions in progress, at the end of the hold ÷ at its start.
    pub(crate) piles_up: f64,
    /// Sessions turned away in a window of the hold.
    pub(crate) turned_away: u64,
    /// Service time ÷ response time, if the two differ.
    pub(crate) service: Option<f64>,
    /// Whether responses of the first step are streams of two events: after 0.6 of its time, and at its end.
    pub(crate) events: bool,
    /// The number in each response of the second step, in thousandths; ten times as much in the last.
    pub(crate) queued: Option<u64>,
    /// Whether requests begin traces: the slowest of each window is recorded.
    pub(crate) traced: bool,
    /// Lag of the generator's loop (µs), if sampled.
    pub(crate) loop_lag_us: Option<u64>,
    /// The planned trial that it repeats: that one is created before it.
    pub(crate) attempt_of: Option<u32>,
    /// When it began.
    pub(crate) started: Option<&'static str>,
    /// Environment of the trial.
    pub(crate) circumstances: lab_archive::TrialEnvironment,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            delivered: 1.0,
            first_step: 1.0,
            short_steps: None,
            response_us: 4_000,
            late_us: 150,
            wait: 1.0,
            fails_every: 0,
            fails_with: ErrorClass::Status,
            skips_every: 0,
            skips_after_failures: false,
            late_few: (0, 0),
            delayed: 0.0,
            ramp: (1.0, 0),
            run_queue: 0.004,
            scheduling: true,
            stale_retries: 0,
            unanswered: Some((0, 0.0)),
            probe: None,
            raw: None,
            sessions: None,
            session_us: 80_000,
            cpu_max: 0.31,
            together: false,
            overruns: 0,
            setup_errors: 0,
            monitored: true,
            gap: false,
            loses_histograms: false,
            held_up: None,
            elapsed: 1.0,
            end: TrialEnd::Complete,
            empty: false,
            slow_start_ms: 0,
            short_stage: None,
            climbs: false,
            system_cpu: None,
            began: 1.0,
            piles_up: 1.0,
            turned_away: 0,
            service: None,
            events: false,
            queued: None,
            traced: false,
            loop_lag_us: None,
            attempt_of: None,
            started: None,
            circumstances: Default::default(),
        }
    }
}

impl Shape {
    /// Returns the response time of the first step in a window that begins at `start_ms`.
    fn response_at(&self, start_ms: u64, ramp_ms: u64) -> u64 {
        let slow = start_ms >= ramp_ms && start_ms < ramp_ms + self.slow_start_ms;
        let climbed = if self.climbs { start_ms } else { 0 };
        self.response_us * if slow { 10 } else { 1 } + climbed
    }
}

/// A run to be created.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) study: String,
    pub(crate) workload: String,
    pub(crate) load_csv: String,
    pub(crate) steps_csv: String,
    pub(crate) speed: f64,
    pub(crate) overrides: Vec<(String, String)>,
    /// One per trial of the plan, in order, then repeats; trials beyond are not run.
    pub(crate) shapes: Vec<Shape>,
    /// For a search: the users of each trial, in order, and the index of its cell.
    pub(crate) searched: Vec<(usize, u32)>,
    /// How it ended, if its plan has that.
    pub(crate) ended: Option<HowEnded>,
}

impl Default for Made {
    fn default() -> Self {
        let slower = Shape {
            response_us: 9_000,
            ..Shape::default()
        };
        Self {
            study: STUDY.to_owned(),
            workload: WORKLOAD.to_owned(),
            load_csv: LOAD_CSV.to_owned(),
            steps_csv: STEPS_CSV.to_owned(),
            speed: 1.0,
            overrides: Vec::new(),
            shapes: vec![Shape::default(), slower],
            searched: Vec::new(),
            ended: Some(HowEnded::Finished),
        }
    }
}

struct Map(Vec<(String, String)>);

impl Files for Map {
    fn read(&self, path: &str) -> Result<Vec<u8>, io::Error> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, text)| text.clone().into_bytes())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Made {
    /// Creates the default run with both trials in this shape.
    pub(crate) fn both(shape: &Shape) -> Self {
        Self {
            shapes: vec![shape.clone(), shape.clone()],
            ..Self::default()
        }
    }

    /// Returns its trials, each judged by itself.
    pub(crate) fn trials(&self) -> Vec<TrialAnalysis> {
        judged(&self.run())
    }

    /// Adds the trials of a search to its plan, as the conductor does when it chooses them.
    fn search(&self, plan: &mut Plan, workload: &lab_study::Workload) {
        let workload = workload.at_speed(self.speed);
        for (block, (cell, users)) in (0_u32..).zip(&self.searched) {
            let trial = plan.search_trial(
                std::slice::from_ref(&workload),
                *cell,
                *users,
                (block + 1, block),
            );
            plan.trials.push(trial.unwrap());
        }
        let end = |how| SearchEnd { how, users: None };
        let cells = plan.search.iter().flat_map(|search| &search.cells);
        plan.search_ended = cells.filter_map(|_| self.ended.map(end)).collect();
    }

    /// Returns the plan of the study as written.
    pub(crate) fn planned(&self) -> Plan {
        self.load().1
    }

    pub(crate) fn load(&self) -> (lab_study::Loaded, Plan) {
        let files = Map(vec![
            ("tiny.study.yaml".to_owned(), self.study.clone()),
            ("tiny.workload.yaml".to_owned(), self.workload.clone()),
            ("load.csv".to_owned(), self.load_csv.clone()),
            ("steps.csv".to_owned(), self.steps_csv.clone()),
        ]);
        let loaded = load_study("tiny.study.yaml", &files, &self.overrides)
            .unwrap_or_else(|error| panic!("{:?}", error.problems()));
        let options = PlanOptions {
            speed: self.speed,
            seed: None,
        };
        let mut planned = plan(&loaded.study, &options).unwrap();
        self.search(&mut planned, &loaded.study.workload);
        (loaded, planned)
    }

    /// Writes the archive and reads it back.
    pub(crate) fn run(&self) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let (loaded, planned) = self.load();
        let mut manifest = manifest(&planned, &self.overrides);
        if self.shapes.iter().any(|shape| shape.queued.is_some()) {
            manifest.measures.push(MeasureName {
                step: 1,
                name: "queued".to_owned(),
                unit: "messages".to_owned(),
            });
        }
        let json = serde_json::to_value(&planned).unwrap();
        let dir = folder.path().join("run");
        let writer = RunWriter::create(&dir, &manifest, &json, &loaded.files).unwrap();
        let mut shapes = self.shapes.iter();
        for (trial, shape) in planned.trials.iter().zip(shapes.by_ref()) {
            write_trial(&writer, trial, shape);
        }
        // Shapes beyond the plan are of attempts; others are of levels that a study excluded.
        let attempts = shapes.filter(|shape| shape.attempt_of.is_some());
        for (id, shape) in (planned.trials.len() as u32 + 1..).zip(attempts) {
            let of = planned
                .trials
                .iter()
                .find(|one| Some(one.id) == shape.attempt_of);
            let trial = Trial {
                id,
                ..of.expect("a trial of the plan").clone()
            };
            write_trial(&writer, &trial, shape);
        }
        Run::open(&dir).unwrap()
    }
}

pub(crate) fn manifest(plan: &Plan, overrides: &[(String, String)]) -> Manifest {
    let workload = &plan.question.workload;
    let mut steps = workload.steps.clone();
    steps.extend(workload.probe.then(|| lab_archive::PROBE.to_owned()));
    Manifest {
        schema: String::new(),
        study: plan.study.clone(),
        title: plan.title.clone(),
        file_hash: "blake3:00".to_owned(),
        seed: plan.seed,
        speed: plan.speed,
        overrides: overrides.to_vec(),
        started: "2026-01-05T10:00:00Z".to_owned(),
        environment: Environment {
            kernel: "6.12.0".to_owned(),
            cpu: "Example CPU at 3 GHz".to_owned(),
            cores: 2,
            memory_mb: 16_000,
            os: "Debian GNU/Linux 13".to_owned(),
            data_filesystem: "ext4".to_owned(),
            plimsoll_version: "0.1.0".to_owned(),
            pinning: Pinning {
                generator: vec![0],
                system: vec![1],
                shared: false,
            },
        },
        steps,
        transactions: workload.transactions.clone(),
        measures: Vec::new(),
        files: Vec::new(),
    }
}

fn write_trial(writer: &RunWriter, trial: &Trial, shape: &Shape) {
    let mut out = writer.trial(trial.id).unwrap();
    if !shape.empty {
        windows(&mut out, trial, shape);
    }
    if shape.monitored && !shape.empty {
        counters::monitor(&mut out, trial, shape);
    }
    let (ramp_ms, hold_ms) = (trial.load.ramp_ms, trial.load.hold_ms);
    let examples = (shape.fails_every > 0).then(|| ErrorExample {
        t_ms: 7_000,
        step: "Read".to_owned(),
        class: shape.fails_with,
        detail: "503 Service Unavailable: busy".to_owned(),
        trace: shape
            .traced
            .then(|| "0af7651916cd43dd8448eb211c80319c".to_owned()),
    });
    let threads = trial.cell.get("threads");
    let threads = threads.map_or_else(|| "2".to_owned(), lab_trial::format::level);
    out.finish(&TrialRecord {
        schema: String::new(),
        id: trial.id,
        profile: None,
        waits: None,
        attempt_of: shape.attempt_of,
        duet: trial.duet.map(|duet| DuetRecord {
            // Attempts run in pairs, too.
            partner: if duet.side == Side::Left {
                trial.id + 1
            } else {
                trial.id - 1
            },
            left: duet.side == Side::Left,
            pinning: Pinning {
                generator: vec![0],
                system: vec![0],
                shared: true,
            },
            together: shape.together,
            exchanges: 0,
            later_ms: Some(if duet.side == Side::Left { -0.25 } else { 0.25 }),
        }),
        started: shape
            .started
            .map_or_else(|| format!("2026-01-05T10:0{}:00Z", trial.id), str::to_owned),
        end: shape.end.clone(),
        ramp_ms,
        hold_ms,
        elapsed_ms: ((ramp_ms + hold_ms) as f64 * shape.elapsed).round() as u64,
        provision_ms: 100,
        setup_ms: 200,
        setup_transactions: 300,
        setup_errors: shape.setup_errors,
        error_examples: examples.into_iter().collect(),
        unanswered: shape
            .unanswered
            .map(|(count, oldest_ms)| Unanswered { count, oldest_ms }),
        raw: shape.raw.clone(),
        generator: GeneratorHealth {
            nice: None,
            workers: 1,
            cpu_fraction: shape.scheduling.then_some(shape.cpu_max / 2.0),
            run_queue_delay_fraction: shape.scheduling.then_some(shape.run_queue),
            cpu_fraction_max: shape.scheduling.then_some(shape.cpu_max),
            rss_mb_max: 40.0,
        },
        start_data_bytes: 1_000_000,
        environment: shape.circumstances.clone(),
        system_settings: BTreeMap::from([("http_threads".to_owned(), threads)]),
        warnings: Vec::new(),
        notes: vec!["Mailboxes are not padded.".to_owned()],
    })
    .unwrap();
}

/// Spreads the planned requests evenly over ramp and hold, each part as planned.
fn windows(out: &mut TrialWriter, trial: &Trial, shape: &Shape) {
    let prediction = trial.prediction.as_ref().unwrap();
    let (ramp, hold) = (trial.load.ramp_ms, trial.load.hold_ms);
    let sessions = match trial.load.kind {
        LoadKind::Sequence { sessions, .. } => Some(sessions),
        _ => None,
    };
    let in_hold = match sessions {
        Some(_) => 1.0,
        None => prediction.hold_transactions / prediction.transactions,
    };
    let delayed = (1.0 - in_hold) * shape.delayed;
    let (mut late_left, mut cycles, mut began) = (shape.late_few.0, 0.0_f64, 0.0_f64);
    let mut spent = vec![0.0_f64; prediction.steps.len()];
    let mut waited = spent.clone();
    let mut counter = 0_u64;
    let mut start = 0;
    while start < ramp + hold {
        let end = (start + trial.load.window_ms).min(if start < ramp { ramp } else { ramp + hold });
        let span = (end - start) as f64;
        let share = if start < ramp {
            (1.0 - in_hold - delayed) * shape.ramp.0 * span / ramp as f64
        } else if trial.load.stages.is_empty() {
            (in_hold + delayed) * span / hold as f64
        } else {
            stages::share(trial, shape, (start, end))
        };
        let slower_us = if start < ramp { shape.ramp.1 } else { 0 };
        let risen = (end as f64 / ramp as f64).min(1.0);
        let held = end.saturating_sub(ramp) as f64 / hold as f64;
        let users =
            (stages::under_way(trial) * risen * (1.0 + (shape.piles_up - 1.0) * held)) as u32;
        // The hold has four cycles.
        let begun = cycles.round();
        cycles += f64::from(users) * span / (hold as f64 / 4.0);
        if let Some(lag) = shape.loop_lag_us {
            let mut lags = empty();
            lags.record_n(lag, 20).unwrap();
            out.histogram(Series::Loop, ms(start), ms(end), &lags)
                .unwrap();
        }
        let mut line = WindowLine {
            start_ms: start as f64,
            end_ms: end as f64,
            counts: WindowCounts {
                users,
                stale_retries: if start == ramp {
                    shape.stale_retries
                } else {
                    0
                },
                overruns: if start < ramp {
                    0
                } else {
                    shape.overruns.min(1)
                },
                cycles: (cycles.round() - begun) as u64,
                ..WindowCounts::default()
            },
            handed_over_ms: shape.held_up.map(|(windows, late_ms)| {
                let number = (start / (end - start).max(1)) as usize;
                end as f64 + if number < windows { late_ms } else { 1.0 }
            }),
            ..WindowLine::default()
        };
        if let Some(sessions) = shape.sessions {
            let is_last = end == ramp + hold;
            transactions::write(out, &mut line, sessions, is_last);
        }
        let planned = stages::planned_sessions(trial, start < ramp);
        let of_part = span / if start < ramp { ramp } else { hold } as f64;
        let before = began.round();
        began += planned * shape.began * of_part;
        match trial.load.kind {
            LoadKind::Arrival { .. } => {
                line.counts.arrived = (began.round() - before) as u64;
                line.counts.dropped = if start == ramp { shape.turned_away } else { 0 };
            }
            LoadKind::Sequence { .. } => line.counts.cycles = (began.round() - before) as u64,
            LoadKind::Users => {}
        }
        let missing = shape.gap && (ramp + 5_000..ramp + 6_000).contains(&start);
        for (at, step) in prediction.steps.iter().enumerate() {
            let part = shape.delivered * stages::part_of_step(shape, at);
            let before = spent[at].round();
            spent[at] += step.requests as f64 * share * part;
            let requests = (spent[at].round() - before) as u64;
            let before = waited[at].round();
            waited[at] += step.waits as f64 * share * part;
            let waits = (waited[at].round() - before) as u64;
            let mut entry = StepCounts {
                waits,
                wait_sum_us: (step.mean_wait_ms * 1000.0 * shape.wait * waits as f64) as u64,
                bytes: requests * 500,
                ..StepCounts::default()
            };
            let mut ok = empty();
            let mut failed = empty();
            for _ in 0..requests {
                counter += 1;
                let us = (shape.response_at(start, ramp) + slower_us) * (at as u64 + 1)
                    + (counter * 7919 % 997) * 4;
                if shape.skips_every > 0 && counter.is_multiple_of(shape.skips_every) {
                    entry.not_reached += u64::from(shape.skips_after_failures);
                    entry.skipped += u64::from(!shape.skips_after_failures);
                } else if shape.fails_every > 0 && counter.is_multiple_of(shape.fails_every) {
                    entry.errors[shape.fails_with] += 1;
                    failed.record(us).unwrap();
                } else {
                    entry.ok += 1;
                    ok.record(us).unwrap();
                }
            }
            if missing {
                continue;
            }
            let lost = shape.loses_histograms && start + 2_000 > ramp + hold;
            if !lost {
                histogram(out, at, Outcome::Ok, start, end, &ok);
                histogram(out, at, Outcome::Error, start, end, &failed);
                if let Some(part) = shape.service {
                    parts(out, (at, Kind::Service), (start, end), &ok, part);
                }
                if let Some(queued) = shape.queued.filter(|_| at == 1) {
                    let mut numbers = empty();
                    numbers.record_n(queued, ok.len()).unwrap();
                    if end == ramp + hold {
                        numbers.record(10 * queued).unwrap();
                    }
                    let series = Series::Measure { step: 1, place: 0 };
                    out.histogram(series, ms(start), ms(end), &numbers).unwrap();
                }
                if shape.events && at == 0 {
                    parts(out, (at, Kind::FirstEvent), (start, end), &ok, 0.6);
                    parts(out, (at, Kind::BetweenEvents), (start, end), &ok, 0.4);
                }
            }
            let mut late = empty();
            let few = late_left.min(requests).min(u64::from(start >= ramp));
            late_left -= few;
            late.record_n(shape.late_us, requests - few).unwrap();
            late.record_n(shape.late_few.1, few).unwrap();
            if requests > 0 {
                out.histogram(Series::Lateness, ms(start), ms(end), &late)
                    .unwrap();
            }
            line.lateness = LatenessLine {
                count: line.lateness.count + requests,
                sum_us: line.lateness.sum_us + requests * shape.late_us,
                max_us: shape.late_us,
            };
            line.steps.insert(at as u16, entry);
        }
        if let Some((_, fails_every)) = shape.probe.filter(|(until, _)| end <= *until) {
            let number = start / trial.load.window_ms + 1;
            let failed = fails_every > 0 && number.is_multiple_of(fails_every);
            let class = shape.fails_with;
            let entry = StepCounts {
                ok: u64::from(!failed),
                errors: failed.then_some((class, 1)).into_iter().collect(),
                ..StepCounts::default()
            };
            line.steps.insert(prediction.steps.len() as u16, entry);
        }
        if let (Some(sessions), true) = (sessions, end == ramp + hold) {
            let mut took = empty();
            took.record_n(shape.session_us, u64::from(sessions))
                .unwrap();
            out.histogram(Series::Session, ms(start), ms(end), &took)
                .unwrap();
        }
        line.slowest = shape.traced.then(|| SlowestLine {
            step: 1,
            response_ms: (start % 7_000) as f64 / 10.0,
            trace: format!("{start:032x}"),
        });
        if !missing {
            out.window(&line).unwrap();
        }
        start = end;
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Returns the trials of a run, each judged by itself.
pub(crate) fn judged(run: &Run) -> Vec<TrialAnalysis> {
    let plan = lab_trial::plan(run).unwrap();
    let steps = step_names(&plan.question);
    let of = |data| {
        alone(&Input {
            manifest: &run.manifest,
            study: &plan.question,
            steps: &steps,
            planned: planned(&plan, data).unwrap(),
            find: plan.search.as_ref().map(|search| &search.find),
            data,
        })
    };
    run.trials.iter().map(|data| of(data).unwrap()).collect()
}

/// Returns the only trial of a run with this shape.
pub(crate) fn trial(shape: Shape) -> TrialAnalysis {
    let made = Made {
        shapes: vec![shape],
        ..Made::default()
    };
    made.trials().remove(0)
}

/// Returns the same trial, after comparing the outcome of one of its checks.
pub(crate) fn check(shape: Shape, name: &str, outcome: CheckOutcome) -> TrialAnalysis {
    let trial = trial(shape);
    let found = trial.checks.iter().find(|check| check.id.title() == name);
    let found = found.unwrap_or_else(|| panic!("no check {name}: {:#?}", trial.checks));
    assert_eq!(found.outcome, outcome, "{found:#?}");
    assert_eq!(
        found.advice.is_some(),
        outcome >= CheckOutcome::Warn,
        "{found:#?}"
    );
    trial
}
