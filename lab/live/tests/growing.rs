//! The live view of a run shows what its report will show: the same counts, on the page and in the metrics.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lab_analysis::{Analysis, analyse};
use lab_archive::{MeasureName, Outcome, Run, RunWriter, Series};
use lab_counts::{ErrorClass, StepCounts};
use lab_live::{Analyse, Controls, Mode, Watch, metrics, page, parts};
use lab_study::present_plan;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/workload")
}

fn analysed(dir: &Path) -> Result<Analysis, String> {
    let run = Run::open(dir).map_err(|error| error.to_string())?;
    let plan = present_plan(run.plan, &run.files, &run.manifest.overrides);
    let plan = plan.map_err(|error| error.to_string())?;
    analyse(&Run { plan, ..run }).map_err(|error| error.to_string())
}

fn analyser() -> Analyse {
    Box::new(analysed)
}

#[expect(clippy::disallowed_methods, reason = "a test's own clock")]
fn now() -> Instant {
    Instant::now()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The golden archive during its second trial; the lines are its log.
fn under_way(lines: &[serde_json::Value]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&golden(), folder.path());
    let trials = folder.path().join("trials");
    fs::rename(trials.join("002"), trials.join("002.partial")).unwrap();
    fs::remove_file(trials.join("002.partial/trial.json")).unwrap();
    log(folder.path(), lines);
    folder
}

fn log(dir: &Path, lines: &[serde_json::Value]) {
    let path = dir.join("events.jsonl");
    let mut text = fs::read_to_string(&path).unwrap_or_default();
    for line in lines {
        let mut line = line.clone();
        line["at"] = "2026-11-22T10:00:00Z".into();
        text.push_str(&format!("{line}\n"));
    }
    fs::write(&path, text).unwrap();
}

fn begun() -> Vec<serde_json::Value> {
    let planned = &analysed(&golden()).unwrap().trials[1];
    vec![
        serde_json::json!({ "event": "run_started", "pid": std::process::id(), "trials": 2,
            "completed": 0, "planned_ms": 9000 }),
        serde_json::json!({ "event": "trial_done", "trial": 1, "end": { "how": "complete" },
            "transactions": 1, "errors": 0, "took_ms": 1, "failed": [] }),
        serde_json::json!({ "event": "trial_started", "trial": 2, "of": 2, "cell": planned.cell,
            "control": false, "users": planned.users, "ramp_ms": planned.ramp_ms,
            "hold_ms": planned.hold_ms }),
        serde_json::json!({ "event": "phase", "phase": "hold" }),
        serde_json::json!({ "event": "failed", "example": { "t_ms": 1500, "step": "<script>",
            "class": "status", "detail": "503 \u{202e}</code><script>alert(1)</script>" } }),
    ]
}

#[test]
fn a_trial_under_way_has_the_counts_that_its_report_will_have() {
    let report = &analysed(&golden()).unwrap().trials[1];
    let folder = under_way(&begun());
    let mut watch = Watch::open(folder.path(), analyser(), None).unwrap();
    assert_eq!(
        watch.state().mode,
        Mode::Unknown,
        "nothing is read before a look"
    );
    watch.look(now()).unwrap();
    assert_eq!(watch.state().mode, Mode::Running);
    assert_eq!(watch.analysis().unwrap().trials.len(), 1);
    let trial = watch.state().trial.as_ref().unwrap();
    assert_eq!(trial.label, report.label);
    assert_eq!(
        (trial.answered(), trial.failed()),
        (report.transactions, report.errors)
    );
    assert_eq!(trial.times().len() + dropped(report), report.transactions);
    let text = metrics(&watch);
    let sum: u64 = text
        .lines()
        .filter(|line| line.starts_with("plimsoll_response_time_seconds_count"))
        .filter(|line| !line.contains("step=\"probe\""))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    assert_eq!(sum, report.transactions);
    assert!(text.ends_with("# EOF\n"));
    assert!(!text.contains("quantile"), "quantiles don't add up");
}

/// Transactions are counted as they arrive, and completed ones have their times.
#[test]
fn transactions_are_in_the_metrics_and_on_the_page() {
    let run = Run::open(&golden()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut manifest = run.manifest.clone();
    manifest.transactions = vec!["session".to_owned(), "Checkout".to_owned()];
    let dir = folder.path().join("run");
    let writer = RunWriter::create(&dir, &manifest, &run.plan, &run.files).unwrap();
    let mut trial = writer.trial(2).unwrap();
    let mut times = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    times.record_n(2_000, 3).unwrap();
    for window in run.trials[1].windows.iter().take(10) {
        let at = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let series = Series::Transaction {
            transaction: 1,
            outcome: Outcome::Ok,
            elapsed: false,
        };
        let (start, end) = (at(window.start_ms), at(window.end_ms));
        trial.histogram(series, start, end, &times).unwrap();
        let mut counts = StepCounts {
            ok: 3,
            ..StepCounts::default()
        };
        counts.errors[ErrorClass::Timeout] += 1;
        let mut window = window.clone();
        window.transactions.insert(1, counts);
        trial.window(&window).unwrap();
    }
    log(&dir, &begun());
    let mut watch = Watch::open(&dir, analyser(), None).unwrap();
    watch.look(now()).unwrap();
    let text = metrics(&watch);
    let has = |name: &str, labels: &str, value: u64| {
        let of = |line: &str| line.starts_with(name) && line.contains(labels);
        let line = text.lines().find(|line| of(line));
        let line = line.unwrap_or_else(|| panic!("{name} with {labels} in {text}"));
        assert_eq!(
            line.rsplit_once(' ').unwrap().1,
            value.to_string(),
            "{line}"
        );
    };
    let counter = "plimsoll_transactions_total{";
    has(counter, "transaction=\"Checkout\",outcome=\"ok\"", 30);
    has(counter, "transaction=\"Checkout\",outcome=\"timeout\"", 10);
    has(counter, "transaction=\"session\",outcome=\"ok\"", 0);
    let name = "plimsoll_transaction_time_seconds_count{";
    has(name, "transaction=\"Checkout\"", 30);
    let shown = parts(&watch).into_iter().find(|part| part.id == "steps");
    let shown = shown.unwrap().html;
    let (_, table) = shown.split_once("Named transactions").unwrap();
    let (_, row) = table.split_once("Checkout").unwrap();
    let row = row.split_once("</tr>").unwrap().0;
    assert!(row.contains(">30<") && row.contains(">10<"), "{row}");
}

/// Numbers in responses are on the page and in the metrics during the trial; for a finished trial, its validity.
#[test]
fn numbers_that_answers_tell_are_shown_as_they_come() {
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
    let mut trial = writer.trial(2).unwrap();
    let mut numbers = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    numbers.record_n(2_000, 3).unwrap();
    numbers.record(40_000).unwrap();
    for window in run.trials[1].windows.iter().take(10) {
        let at = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let series = Series::Measure { step: 0, place: 0 };
        let (start, end) = (at(window.start_ms), at(window.end_ms));
        trial.histogram(series, start, end, &numbers).unwrap();
        trial
            .histogram(Series::Lateness, start, end, &numbers)
            .unwrap();
        trial.window(window).unwrap();
    }
    log(&dir, &begun());
    let mut watch = Watch::open(&dir, analyser(), None).unwrap();
    watch.look(now()).unwrap();
    let text = metrics(&watch);
    let value = |name: &str, label: &str| -> String {
        let of = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains(label);
        let line = text.lines().find(of);
        let line = line.unwrap_or_else(|| panic!("{name} with {label} in {text}"));
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    let step = &run.manifest.steps[0];
    let own = format!("measure=\"queued\",step=\"{step}\",unit=\"messages\"");
    assert_eq!(value("plimsoll_measure_count", &own), "40");
    assert_eq!(
        value("plimsoll_measure_bucket", &format!("{own},le=\"16\"")),
        "30"
    );
    assert_eq!(
        value("plimsoll_lateness_seconds_count", "trial=\"2\""),
        "40"
    );
    assert_eq!(value("plimsoll_trial_valid", "trial=\"1\""), "1");
    let shown = parts(&watch).into_iter().find(|part| part.id == "steps");
    let shown = shown.unwrap().html;
    assert!(shown.contains("queued, messages"), "{shown}");
}

/// Responses of the ramp: times only cover the hold.
fn dropped(report: &lab_analysis::model::TrialAnalysis) -> u64 {
    let run = Run::open(&golden()).unwrap();
    let windows = &run.trials[1].windows;
    let probe = run.manifest.steps.iter().position(|step| step == "probe");
    let ramp = windows
        .iter()
        .filter(|one| one.start_ms + 1.0 < report.ramp_ms as f64);
    let steps = ramp.flat_map(|one| &one.steps);
    let ours = steps.filter(|(step, _)| Some(usize::from(**step)) != probe);
    ours.map(|(_, line)| line.ok).sum()
}

#[test]
fn the_page_grows_part_by_part_and_shows_hostile_words_as_words() {
    let folder = under_way(&begun());
    let controls = Controls {
        may_skip: true,
        ..Controls::default()
    };
    let mut watch = Watch::open(folder.path(), analyser(), Some(controls.clone())).unwrap();
    watch.look(now()).unwrap();
    let text = page(&watch);
    assert!(
        !text.contains("<script>alert") && !text.contains('\u{202e}'),
        "{text}"
    );
    assert!(text.contains("&lt;script&gt;alert"), "the example is there");
    assert!(text.contains("1 of 2 trials done"), "{text}");
    for act in ["pause", "skip", "stop"] {
        assert!(text.contains(&format!("value=\"{act}\"")), "{act}");
    }
    let before = parts(&watch);
    watch.look(now()).unwrap();
    assert_eq!(parts(&watch), before, "nothing happened, nothing changes");
    controls
        .pause
        .store(true, std::sync::atomic::Ordering::Relaxed);
    watch.look(now()).unwrap();
    let changed: Vec<&str> = parts(&watch)
        .iter()
        .zip(&before)
        .filter(|(new, old)| new.html != old.html)
        .map(|(new, _)| new.id)
        .collect();
    assert_eq!(changed, ["controls"]);
    log(
        folder.path(),
        &[serde_json::json!({ "event": "run_ended", "interrupted": true })],
    );
    watch.look(now()).unwrap();
    assert!(
        watch.controls().is_none(),
        "there is nothing to steer any more"
    );
    assert!(!page(&watch).contains("<form"));
}

/// The log has few of the failures: their number is shown by class, and not with an example.
#[test]
fn errors_that_are_alike_are_shown_once_and_not_counted() {
    let mut lines = begun();
    let failed = lines[4].clone();
    lines.extend([failed.clone(), failed]);
    let folder = under_way(&lines);
    let mut watch = Watch::open(folder.path(), analyser(), None).unwrap();
    watch.look(now()).unwrap();
    let shown = parts(&watch).into_iter().find(|part| part.id == "errors");
    let shown = shown.unwrap().html;
    assert_eq!(shown.matches("alert(1)").count(), 1, "{shown}");
    assert!(!shown.contains("alike"), "{shown}");
}

#[test]
fn a_run_whose_process_is_gone_says_so_after_a_while() {
    let mut lines = begun();
    // No process has this number.
    lines[0]["pid"] = u32::MAX.into();
    let folder = under_way(&lines);
    let mut watch = Watch::open(folder.path(), analyser(), None).unwrap();
    let start = now();
    watch.look(start).unwrap();
    assert_eq!(watch.state().mode, Mode::Running, "it was just heard");
    watch.look(start + Duration::from_secs(60)).unwrap();
    assert_eq!(watch.state().mode, Mode::Gone);
    assert!(page(&watch).contains("--resume"));
}

/// The safe line rises while the search runs: page and metrics have both lines.
#[test]
fn a_search_shows_both_lines_as_far_as_its_trials_tell() {
    let folder = tempfile::tempdir().unwrap();
    let search = golden().with_file_name("search");
    copy(&search, folder.path());
    let trials = Run::open(&search).unwrap().trials;
    for trial in &trials[trials.len() / 2..] {
        let name = format!("trials/{:03}", trial.record.id);
        fs::remove_dir_all(folder.path().join(name)).unwrap();
    }
    let mut watch = Watch::open(folder.path(), analyser(), None).unwrap();
    watch.look(now()).unwrap();
    let line = watch.analysis().unwrap().load_line.clone().unwrap();
    let text = metrics(&watch);
    let has = |line: String| assert!(text.contains(&line), "{line} in {text}");
    let of = |name: &str, value: String| {
        let study = &watch.state().manifest.study;
        let label = &watch.analysis().unwrap().load_lines[0].label;
        let run = watch.run();
        has(format!(
            "{name}{{run=\"{run}\",study=\"{study}\",cell=\"{label}\"}} {value}\n"
        ));
    };
    of("plimsoll_load_line_users", line.users.unwrap().to_string());
    let shown = parts(&watch).into_iter().find(|part| part.id == "lines");
    let shown = shown.unwrap().html;
    assert!(
        shown.contains("Half of the trials hold up to the load line"),
        "{shown}"
    );
    match line.safe {
        Some(safe) => {
            of("plimsoll_safe_line_users", safe.users.to_string());
            of("plimsoll_safe_line_ratio", safe.part.to_string());
            assert!(shown.contains("safe line, as far as"), "{shown}");
        }
        None => assert!(
            shown.contains("no number of users is shown to be safe"),
            "{shown}"
        ),
    }
}

#[test]
fn archives_without_a_log_are_shown_by_their_report() {
    let mut watch = Watch::open(&golden(), analyser(), None).unwrap();
    watch.look(now()).unwrap();
    assert_eq!(watch.state().mode, Mode::Ended);
    assert_eq!(watch.state().counts().0, 2);
    let text = page(&watch);
    assert!(text.contains("no log of events"), "{text}");
    assert!(text.contains("2 of 2 trials done"), "{text}");
}
