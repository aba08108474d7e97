//! The exported figures of a run add up to those of its report, during the run and afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_archive::{Kind, MeasureName, Outcome, Run, RunWriter, Series};
use lab_export::{Finished, Frame, Source, Value};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/workload")
}

fn finished(run: &Run) -> Vec<Finished> {
    let trial = |trial: &lab_archive::TrialData| Finished {
        id: trial.record.id,
        label: format!("trial {}", trial.record.id),
        started: trial.record.started.clone(),
        is_valid: trial.record.id == 1,
    };
    run.trials.iter().map(trial).collect()
}

fn all(source: &mut Source) -> Vec<Frame> {
    std::iter::from_fn(|| source.frame().unwrap()).collect()
}

/// Sums of a trial by metric and labels: from the last frame, and added up over all frames.
type Sums = BTreeMap<String, (u64, u64)>;

fn sums(frames: &[Frame], trial: u32) -> Sums {
    let mut sums = Sums::new();
    for frame in frames.iter().filter(|frame| frame.of.trial == trial) {
        for figure in &frame.figures {
            let (all, new) = match &figure.value {
                Value::Gauge(_) => continue,
                Value::Count(all, new) => (*all, *new),
                Value::Times(all, new) => (all.count(), new.count()),
            };
            let key = format!("{}{:?}", figure.metric.name, figure.labels);
            let sum = sums.entry(key).or_default();
            assert!(sum.0 <= all, "sums only grow");
            *sum = (all, sum.1 + new);
        }
    }
    sums
}

fn of_metric(sums: &Sums, part: &str) -> u64 {
    let of = sums.iter().filter(|(key, _)| key.contains(part));
    of.map(|(_, (all, _))| all).sum()
}

#[test]
fn sums_of_a_finished_run_are_those_of_its_archive() {
    let run = Run::open(&golden()).unwrap();
    let frames = all(&mut Source::finished(&golden(), finished(&run)).unwrap());
    assert_eq!(run.trials.len(), 2);
    for trial in &run.trials {
        let sums = sums(&frames, trial.record.id);
        assert!(sums.values().all(|(all, added)| all == added), "{sums:?}");
        let lines = || {
            trial
                .windows
                .iter()
                .flat_map(|window| window.steps.values())
        };
        let ok: u64 = lines().map(|line| line.ok).sum();
        let errors: u64 = lines().map(lab_counts::StepCounts::failed).sum();
        assert!(ok > 0);
        assert_eq!(of_metric(&sums, "(\"outcome\", \"ok\")"), ok);
        assert_eq!(of_metric(&sums, "plimsoll_requests"), ok + errors);
        let is_response = |series: Series| {
            matches!(
                series,
                Series::Step {
                    outcome: Outcome::Ok,
                    kind: Kind::Response,
                    ..
                }
            )
        };
        let hlog = trial.hlog.iter().filter(|one| is_response(one.series));
        let times: u64 = hlog.map(|one| one.histogram().len()).sum();
        assert_eq!(of_metric(&sums, "plimsoll_response_time"), times);
        let cycles: u64 = trial
            .windows
            .iter()
            .map(|window| window.counts.cycles)
            .sum();
        assert_eq!(of_metric(&sums, "plimsoll_sessions"), cycles);
    }
}

#[test]
fn frames_have_the_times_at_which_they_were_measured() {
    let run = Run::open(&golden()).unwrap();
    let frames = all(&mut Source::finished(&golden(), finished(&run)).unwrap());
    for trial in &run.trials {
        let of: Vec<&Frame> = frames
            .iter()
            .filter(|frame| frame.of.trial == trial.record.id)
            .collect();
        let began: jiff::Timestamp = trial.record.started.parse().unwrap();
        assert_eq!(
            of[0].at_ms,
            began.as_millisecond(),
            "zeros, where sums begin"
        );
        let (end, before) = of.split_last().unwrap();
        let last = before.last().unwrap();
        let length = trial.windows.last().unwrap().end_ms;
        assert!(((last.at_ms - of[0].at_ms) as f64 - length).abs() <= 0.5);
        assert!(end.is_end && before.iter().all(|frame| !frame.is_end));
        assert_eq!(end.at_ms, last.at_ms + 1);
        // Windows of this run are 12 ms long; the last frame has no fixed time.
        let apart = before[..before.len() - 1].windows(2);
        assert!(
            apart
                .into_iter()
                .all(|two| two[1].at_ms - two[0].at_ms >= 1000)
        );
        let valid = end.figures.last().unwrap();
        assert_eq!(valid.metric.name, "plimsoll_trial_valid");
        assert_eq!(
            valid.value,
            Value::Gauge(f64::from(u8::from(trial.record.id == 1)))
        );
    }
}

/// The first windows of a kept run, with a number in the first step's responses.
fn measured() -> tempfile::TempDir {
    let run = Run::open(&golden()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut manifest = run.manifest.clone();
    manifest.measures.push(MeasureName {
        step: 0,
        name: "queued".to_owned(),
        unit: "messages".to_owned(),
    });
    let dir = folder.path().join("run");
    let writer = RunWriter::create(&dir, &manifest, &run.plan, &run.files).unwrap();
    let trial = &run.trials[0];
    let mut out = writer.trial(trial.record.id).unwrap();
    let mut numbers = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    numbers.record_n(2_000, 3).unwrap();
    numbers.record(7_000_000_000).unwrap();
    for window in trial.windows.iter().take(10) {
        let at = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let series = Series::Measure { step: 0, place: 0 };
        let (start, end) = (at(window.start_ms), at(window.end_ms));
        out.histogram(series, start, end, &numbers).unwrap();
        out.window(window).unwrap();
    }
    out.finish(&trial.record).unwrap();
    folder
}

#[test]
fn numbers_that_answers_tell_go_out_as_histograms() {
    let folder = measured();
    let dir = folder.path().join("run");
    let run = Run::open(&dir).unwrap();
    let frames = all(&mut Source::finished(&dir, finished(&run)).unwrap());
    let named = |figure: &&lab_export::Figure| figure.metric.name == "plimsoll_measure";
    let last = frames.iter().flat_map(|frame| &frame.figures).rfind(named);
    let figure = last.expect("a measure");
    let labels: Vec<(&str, &str)> = figure
        .labels
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    let step = run.manifest.steps[0].as_str();
    assert_eq!(
        labels,
        [("measure", "queued"), ("step", step), ("unit", "messages")]
    );
    let Value::Times(times, _) = &figure.value else {
        panic!("a histogram: {figure:?}");
    };
    assert_eq!((times.count(), times.zeros()), (40, 0));
    let bounds: Vec<(f64, u64)> = times.classic().collect();
    let up_to = |bound: f64| bounds.iter().rfind(|(at, _)| *at <= bound).unwrap().1;
    assert_eq!(
        (up_to(1.9), up_to(2.1), up_to(1e6), up_to(9e6)),
        (0, 30, 30, 40)
    );
    assert!((times.sum_s() / (30.0 * 2.0 + 10.0 * 7e6) - 1.0).abs() < 1e-3);
}

#[test]
fn named_transactions_are_told_beside_steps() {
    let run = Run::open(&golden()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut manifest = run.manifest.clone();
    manifest.transactions = vec!["session".to_owned(), "Checkout".to_owned()];
    let dir = folder.path().join("run");
    let writer = RunWriter::create(&dir, &manifest, &run.plan, &run.files).unwrap();
    let trial = &run.trials[0];
    let mut out = writer.trial(trial.record.id).unwrap();
    let mut times = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    times.record_n(2_000, 3).unwrap();
    for window in trial.windows.iter().take(10) {
        let at = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let (start, end) = (at(window.start_ms), at(window.end_ms));
        for elapsed in [false, true] {
            let series = Series::Transaction {
                transaction: 1,
                outcome: Outcome::Ok,
                elapsed,
            };
            out.histogram(series, start, end, &times).unwrap();
        }
        let mut window = window.clone();
        let counts = lab_counts::StepCounts {
            ok: 3,
            ..Default::default()
        };
        window.transactions.insert(1, counts);
        out.window(&window).unwrap();
    }
    out.finish(&trial.record).unwrap();
    let kept = Run::open(&dir).unwrap();
    let frames = all(&mut Source::finished(&dir, finished(&kept)).unwrap());
    let sums = sums(&frames, trial.record.id);
    let of = |part: &str| of_metric(&sums, part);
    assert_eq!(
        of("(\"outcome\", \"ok\"), (\"transaction\", \"Checkout\")"),
        30
    );
    assert_eq!(of("plimsoll_transactions["), 30, "the session has none");
    assert_eq!(of("plimsoll_transaction_time["), 30, "without think times");
}

/// An archive that is rewritten, in pieces, while a reader follows it.
struct Again {
    from: PathBuf,
    to: tempfile::TempDir,
}

impl Again {
    fn new() -> Self {
        let again = Self {
            from: golden(),
            to: tempfile::tempdir().unwrap(),
        };
        for name in ["plan.json", "manifest.json"] {
            fs::copy(again.from.join(name), again.to.path().join(name)).unwrap();
        }
        again
    }

    fn tell(&self, line: serde_json::Value) {
        let path = self.to.path().join("events.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, format!("{text}{line}\n")).unwrap();
    }

    /// The first `part` of 4 of each file, truncated anywhere.
    fn grow(&self, id: u32, part: usize) {
        let folder = self.to.path().join(format!("trials/{id:03}.partial"));
        fs::create_dir_all(&folder).unwrap();
        for name in ["windows.jsonl", "steps.hlog", "monitor.csv"] {
            let bytes = fs::read(self.from.join(format!("trials/{id:03}/{name}"))).unwrap();
            let length = bytes.len() * part / 4;
            fs::write(folder.join(name), &bytes[..length]).unwrap();
        }
    }

    fn publish(&self, id: u32) {
        let trials = self.to.path().join("trials");
        let name = format!("{id:03}");
        let from = self.from.join("trials").join(&name);
        fs::copy(
            from.join("trial.json"),
            trials.join(format!("{name}.partial/trial.json")),
        )
        .unwrap();
        fs::rename(trials.join(format!("{name}.partial")), trials.join(name)).unwrap();
    }
}

fn event(run: &Run, id: u32, what: &str) -> serde_json::Value {
    let trial = &run.trials[id as usize - 1].record;
    let mut line = match what {
        "trial_started" => serde_json::json!({ "trial": id, "of": 2, "cell": {}, "control": false,
            "users": 7, "ramp_ms": trial.ramp_ms, "hold_ms": trial.hold_ms }),
        "trial_done" => serde_json::json!({ "trial": id, "end": { "how": "complete" },
            "transactions": 1, "errors": 0, "took_ms": 1,
            "failed": if id == 1 { vec![] } else { vec!["waits: 3 %"] } }),
        _ => serde_json::json!({ "phase": what }),
    };
    line["event"] = if line["phase"].is_null() {
        what.into()
    } else {
        "phase".into()
    };
    line["at"] = trial.started.clone().into();
    line
}

#[test]
fn a_run_that_is_followed_is_told_as_one_that_is_over() {
    let run = Run::open(&golden()).unwrap();
    let archive = Again::new();
    let mut source = Source::growing(archive.to.path()).unwrap();
    let mut told = Vec::new();
    // The first trial in pieces; the second, as in a duet, at its end.
    archive.tell(event(&run, 1, "trial_started"));
    archive.tell(event(&run, 1, "ramp"));
    for part in 1..=4 {
        archive.grow(1, part);
        told.extend(all(&mut source));
    }
    archive.publish(1);
    archive.tell(event(&run, 1, "trial_done"));
    archive.tell(event(&run, 2, "trial_started"));
    archive.grow(2, 4);
    archive.publish(2);
    archive.tell(event(&run, 2, "trial_done"));
    told.extend(all(&mut source));

    let whole = all(&mut Source::finished(&golden(), finished(&run)).unwrap());
    for id in [1, 2] {
        assert_eq!(sums(&told, id), sums(&whole, id));
        let ends = |frames: &[Frame]| -> Vec<(i64, Value)> {
            let of = frames
                .iter()
                .filter(|frame| frame.of.trial == id && frame.is_end);
            of.map(|frame| (frame.at_ms, frame.figures.last().unwrap().value.clone()))
                .collect()
        };
        assert_eq!(ends(&told), ends(&whole));
    }
    assert!(told.is_sorted_by_key(|frame| frame.at_ms));
    assert_eq!(told[0].of.cell, "7 users");
}

#[test]
fn a_trial_that_is_given_up_ends_without_a_verdict() {
    let run = Run::open(&golden()).unwrap();
    let archive = Again::new();
    let mut source = Source::growing(archive.to.path()).unwrap();
    archive.tell(event(&run, 1, "trial_started"));
    archive.tell(event(&run, 1, "ramp"));
    archive.grow(1, 2);
    assert!(!all(&mut source).is_empty());
    archive.tell(
        serde_json::json!({ "event": "run_ended", "interrupted": true,
        "at": run.trials[0].record.started }),
    );
    let told = all(&mut source);
    let end = told.last().unwrap();
    assert!(end.is_end);
    let valid = |figure: &lab_export::Figure| figure.metric.name == "plimsoll_trial_valid";
    assert!(!end.figures.iter().any(valid));
}

#[test]
fn what_an_earlier_attempt_told_is_not_told_again() {
    let run = Run::open(&golden()).unwrap();
    let archive = Again::new();
    archive.tell(event(&run, 1, "trial_started"));
    archive.tell(event(&run, 1, "ramp"));
    archive.grow(1, 4);
    archive.publish(1);
    archive.tell(event(&run, 1, "trial_done"));
    let mut source = Source::growing(archive.to.path()).unwrap();
    assert_eq!(all(&mut source), []);
}
