//! The archive as others use it: what is written reads back, damage is named, runs resume.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_archive::{
    ArchiveError, Clocks, Environment, ErrorExample, GeneratorHealth, Kind, LatenessLine,
    LimitsReached, Manifest, OtherProgram, Outcome, Pinning, Run, RunWriter, Series, SlowestLine,
    StartingState, Throttled, TrialEnd, TrialEnvironment, TrialRecord, TrialWriter, Used, Warning,
    WindowLine,
};
use lab_counts::{ErrorClass, StepCounts, WindowCounts};
use proptest::prelude::*;
use serde_json::json;

const STEP: Series = Series::Step {
    step: 1,
    outcome: Outcome::Ok,
    kind: Kind::Response,
};

pub(crate) fn manifest() -> Manifest {
    Manifest {
        schema: lab_archive::ARCHIVE_SCHEMA.to_owned(),
        study: "calendar-load".to_owned(),
        title: "Calendar at three levels".to_owned(),
        file_hash: "blake3:00ff".to_owned(),
        seed: 7,
        speed: 60.0,
        overrides: vec![("load.hold".to_owned(), "1m".to_owned())],
        started: "2026-01-05T10:00:00Z".to_owned(),
        environment: Environment {
            kernel: "6.12.0".to_owned(),
            cpu: "Example CPU".to_owned(),
            cores: 2,
            memory_mb: 4096,
            os: "Debian GNU/Linux 13".to_owned(),
            data_filesystem: "ext4".to_owned(),
            plimsoll_version: "0.1.0".to_owned(),
            pinning: Pinning {
                generator: vec![0],
                system: vec![1],
                shared: false,
            },
        },
        steps: ["Log in", "Read", lab_archive::PROBE]
            .map(str::to_owned)
            .into(),
        transactions: ["session", "Pay", "Visit"].map(str::to_owned).into(),
        measures: Vec::new(),
        files: ["study.yaml", "published/a.csv"].map(str::to_owned).into(),
    }
}

pub(crate) fn files() -> Vec<(String, Vec<u8>)> {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    vec![
        file("study.yaml", "study: calendar-load\n"),
        file("published/a.csv", "users,ms\n1,2\n"),
    ]
}

fn circumstances() -> TrialEnvironment {
    TrialEnvironment {
        starting_state: Some(StartingState {
            data_bytes: 1 << 40,
            data_files: 3,
            kernel_settings: BTreeMap::from([("vm.swappiness".to_owned(), "60".to_owned())]),
            ..StartingState::default()
        }),
        clocks: Some(Clocks {
            wall_start_ms: 1_767_607_260_000,
            wall_end_ms: 1_767_607_320_001,
            monotonic_ms: 60_001.25,
        }),
        others_during: vec![OtherProgram {
            name: "rustc".to_owned(),
            cpu_percent: 45.5,
        }],
        limits: LimitsReached {
            ports: Some(Used {
                most: 900,
                limit: 28_232,
            }),
            system_throttled: Some(Throttled { periods: 2, ms: 70 }),
            ..LimitsReached::default()
        },
        ..TrialEnvironment::default()
    }
}

pub(crate) fn record(id: u32) -> TrialRecord {
    TrialRecord {
        schema: lab_archive::TRIAL_SCHEMA.to_owned(),
        id,
        duet: None,
        attempt_of: None,
        started: "2026-01-05T10:01:00Z".to_owned(),
        end: TrialEnd::Complete,
        ramp_ms: 12_000,
        hold_ms: 48_000,
        elapsed_ms: 60_001,
        provision_ms: 900,
        setup_ms: 5_000,
        setup_transactions: 42,
        setup_errors: 1,
        error_examples: vec![ErrorExample {
            t_ms: 17,
            step: "Read".to_owned(),
            class: ErrorClass::Status,
            detail: "503, \"busy\"\n".to_owned(),
            trace: None,
        }],
        unanswered: None,
        raw: None,
        profile: None,
        waits: None,
        generator: GeneratorHealth {
            nice: Some(-20),
            workers: 1,
            cpu_fraction: Some(0.25),
            run_queue_delay_fraction: Some(0.0),
            cpu_fraction_max: Some(0.0),
            rss_mb_max: 0.0,
        },
        start_data_bytes: 1 << 40,
        environment: circumstances(),
        system_settings: BTreeMap::from([("http_threads".to_owned(), "80".to_owned())]),
        warnings: vec![Warning::SharedCore],
        notes: vec!["Mailboxes are not padded.".to_owned()],
    }
}

fn window(start_ms: f64, ok: u64) -> WindowLine {
    WindowLine {
        start_ms,
        end_ms: start_ms + 200.0,
        counts: WindowCounts {
            users: 10,
            cycles: ok / 2,
            ..WindowCounts::default()
        },
        lateness: LatenessLine {
            count: ok,
            sum_us: 3 * ok,
            max_us: 9,
        },
        steps: BTreeMap::from([(
            1,
            StepCounts {
                ok,
                errors: [(ErrorClass::Timeout, 2)].into_iter().collect(),
                hops: ok / 2,
                waits: ok + 2,
                wait_sum_us: 1_000 * ok,
                bytes: 512 * ok,
                plain_bytes: (ok > 2).then_some(4096 * ok),
                ..StepCounts::default()
            },
        )]),
        ..WindowLine::default()
    }
}

fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 60_000_000, 3).unwrap();
    values.iter().for_each(|v| histogram.saturating_record(*v));
    histogram
}

pub(crate) fn create(dir: &Path) -> RunWriter {
    RunWriter::create(dir, &manifest(), &json!({"trials": [{"id": 1}]}), &files()).unwrap()
}

fn resume(dir: &Path) -> Result<RunWriter, ArchiveError> {
    RunWriter::open_for_resume(dir, &manifest(), &json!({"trials": [{"id": 1}]}), &files())
}

pub(crate) fn fill(mut trial: TrialWriter, id: u32) {
    trial
        .monitor_header(&["host.cpu_percent".to_owned(), "odd, \"name\"".to_owned()])
        .unwrap();
    for i in 0..3u32 {
        let start = Duration::from_millis(u64::from(i) * 200);
        let end = start + Duration::from_millis(200);
        trial
            .histogram(STEP, start, end, &histogram(&[100, 2_000, u64::from(i)]))
            .unwrap();
        trial
            .histogram(Series::Lateness, start, end, &histogram(&[]))
            .unwrap();
        trial
            .monitor_row(f64::from(i) * 200.0, &[Some(0.1 + f64::from(i)), None])
            .unwrap();
        trial.window(&window(f64::from(i) * 200.0, 3)).unwrap();
    }
    fs::write(trial.output_path(), "listening\n").unwrap();
    trial.finish(&record(id)).unwrap();
}

fn one_trial(dir: &Path) {
    fill(create(dir).trial(1).unwrap(), 1);
}

#[test]
fn a_run_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("new/run");
    one_trial(&dir);
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.manifest, manifest());
    assert_eq!(run.plan, json!({"trials": [{"id": 1}]}));
    assert_eq!(run.files, files());
    assert_eq!(run.incomplete, Vec::<u32>::new());
    let [trial] = &run.trials[..] else {
        panic!("one trial")
    };
    assert_eq!(trial.record, record(1));
    assert_eq!(trial.windows, [0.0, 200.0, 400.0].map(|t| window(t, 3)));
    assert_eq!(trial.hlog.len(), 3, "an empty histogram takes no line");
    let last = trial.series(STEP).last().unwrap();
    assert_eq!((last.start_ms, last.end_ms), (400, 600));
    assert_eq!(last.histogram(), histogram(&[100, 2_000, 2]));
    assert_eq!(trial.monitor.columns, ["host.cpu_percent", "odd, \"name\""]);
    assert_eq!(trial.monitor.rows[1], (200.0, vec![Some(1.1), None]));
    let cpu: Vec<_> = trial.monitor.series("host.cpu_percent").collect();
    assert_eq!(cpu, [(0.0, 0.1), (200.0, 1.1), (400.0, 2.1)]);
    assert_eq!(run.output(1).unwrap().as_deref(), Some(&b"listening\n"[..]));
}

fn step_line() -> impl Strategy<Value = StepCounts> {
    let class = prop_oneof![
        Just(ErrorClass::Status),
        Just(ErrorClass::Timeout),
        Just(ErrorClass::Connect),
        Just(ErrorClass::Reset),
        Just(ErrorClass::Check)
    ];
    let errors = proptest::collection::btree_map(class, 1u64..1 << 60, 0..3);
    let counts = (any::<[u64; 5]>(), any::<Option<u64>>(), errors);
    counts.prop_map(
        |([ok, skipped, waits, wait_sum_us, bytes], plain_bytes, errors)| StepCounts {
            ok,
            errors: errors.into_iter().collect(),
            hops: skipped / 2,
            redirects: waits / 2,
            retries: bytes / 3,
            cut_off: ok / 7,
            skipped,
            waits,
            wait_sum_us,
            bytes,
            plain_bytes,
            ..StepCounts::default()
        },
    )
}

fn window_line() -> impl Strategy<Value = WindowLine> {
    let lines = || proptest::collection::btree_map(0u16..3, step_line(), 0..3);
    let all = (any::<[u32; 4]>(), any::<[u64; 10]>(), lines(), lines());
    all.prop_map(|(a, b, steps, transactions)| WindowLine {
        start_ms: f64::from(a[0]) / 8.0,
        end_ms: f64::from(a[1]) / 8.0,
        handed_over_ms: a[3].is_multiple_of(2).then(|| f64::from(a[3]) / 8.0),
        counts: WindowCounts {
            users: a[2],
            cycles: b[0],
            waiting: b[8],
            connects: b[5],
            stale_retries: b[6],
            ..WindowCounts::default()
        },
        lateness: LatenessLine {
            count: b[2],
            sum_us: b[3],
            max_us: b[4],
        },
        steps,
        transactions,
        slowest: a[3].is_multiple_of(3).then(|| SlowestLine {
            step: 1,
            response_ms: f64::from(a[2]) / 8.0,
            trace: "cd".to_owned(),
        }),
    })
}

fn noted() -> impl Strategy<Value = Warning> {
    let text = || "\\PC*";
    prop_oneof![
        Just(Warning::NotPinned),
        proptest::option::of(text()).prop_map(|part| Warning::RanElsewhere { part }),
        (text(), text(), text()).prop_map(|(name, wanted, in_force)| Warning::KernelMade {
            name,
            wanted,
            in_force,
        }),
        (text(), any::<[u64; 2]>(), text()).prop_map(|(server, [asked, missing], problem)| {
            Warning::ExporterMissed {
                server,
                asked,
                missing,
                problem,
            }
        }),
        any::<u64>().prop_map(|after_us| Warning::RequestTimeout {
            after_us,
            bounds: after_us % 2 == 0,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_written_reads_back(
        windows in proptest::collection::vec(window_line(), 0..6),
        rows in proptest::collection::vec(
            (0u32.., proptest::collection::vec(proptest::option::of(-1e12..1e12), 2)), 0..6),
        notes in proptest::collection::vec("\\PC*", 0..3),
        noted in proptest::collection::vec(noted(), 0..3),
        values in proptest::collection::vec(0u64..60_000_000, 1..50),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let writer = create(dir.path());
        let mut trial = writer.trial(3).unwrap();
        trial.monitor_header(&["a".to_owned(), "b".to_owned()]).unwrap();
        for (t, row) in &rows {
            trial.monitor_row(f64::from(*t), row).unwrap();
        }
        for line in &windows {
            trial.window(line).unwrap();
        }
        let hour = Duration::from_secs(3600);
        trial.histogram(STEP, hour, 2 * hour, &histogram(&values)).unwrap();
        let mut facts = record(3);
        facts.notes = notes;
        facts.warnings = noted;
        facts.end = TrialEnd::SystemFailed { message: "it died\nlast line".to_owned() };
        trial.finish(&facts).unwrap();

        let read = Run::open(dir.path()).unwrap().trials.remove(0);
        prop_assert_eq!(read.record, facts);
        prop_assert_eq!(read.windows, windows);
        let expected: Vec<_> = rows.into_iter().map(|(t, row)| (f64::from(t), row)).collect();
        prop_assert_eq!(read.monitor.rows, expected);
        prop_assert_eq!(read.hlog[0].histogram(), histogram(&values));
    }
}

/// Every file of the archive, relative to it.
fn all_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_files(&path))
        } else {
            found.push(path)
        }
    }
    found
}

#[test]
fn a_file_cut_off_anywhere_is_named() {
    let dir = tempfile::tempdir().unwrap();
    one_trial(dir.path());
    let whole = Run::open(dir.path()).unwrap();
    let mut cuts = 0;
    for path in all_files(dir.path()) {
        let bytes = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            cuts += 1;
            match Run::open(dir.path()) {
                Err(e) => assert!(e.to_string().contains(&name), "{name} cut at {length}: {e}"),
                // The closing newline of JSON has no content; the system's output is not read.
                Ok(run) if name == "system.log" => assert_eq!(run, whole),
                Ok(run) => assert_eq!((run, length), (whole.clone(), bytes.len() - 1), "{name}"),
            }
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert!(cuts > 2_000, "{cuts} cuts");
    assert_eq!(Run::open(dir.path()).unwrap(), whole);
}

#[test]
fn a_missing_file_is_an_error_and_a_missing_record_an_incomplete_trial() {
    let dir = tempfile::tempdir().unwrap();
    one_trial(dir.path());
    let trial = dir.path().join("trials/001");
    for name in ["windows.jsonl", "steps.hlog", "monitor.csv"] {
        let bytes = fs::read(trial.join(name)).unwrap();
        fs::remove_file(trial.join(name)).unwrap();
        let error = Run::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        fs::write(trial.join(name), bytes).unwrap();
    }
    fs::remove_file(trial.join("trial.json")).unwrap();
    let run = Run::open(dir.path()).unwrap();
    assert_eq!((run.trials.len(), run.incomplete), (0, vec![1]));
}

/// Damages one file by replacing text in it and returns the error's words, without the folder.
fn error_after(name: &str, from: &str, to: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    one_trial(dir.path());
    let path = dir.path().join(name);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{name} has no {from}");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    let error = Run::open(dir.path()).unwrap_err().to_string();
    error.replace(dir.path().to_str().unwrap(), "RUN")
}

#[test]
fn damage_is_said_in_words() {
    let cases = [
        ("manifest.json", "plimsoll.archive/1", "plimsoll.archive/9"),
        ("manifest.json", "\"seed\": 7", "\"seed\": -7"),
        ("manifest.json", "published/a.csv", "../../../secret"),
        ("plan.json", "\"trials\"", "\"trial\""),
        ("files/study.yaml", "study", "studies"),
        (
            "trials/001/trial.json",
            "plimsoll.trial/1",
            "plimsoll.trial/2",
        ),
        ("trials/001/trial.json", "\"id\": 1", "\"id\": 2"),
        (
            "trials/001/windows.jsonl",
            "\"start_ms\":200.0",
            "\"start_ms\":20x.0",
        ),
        ("trials/001/windows.jsonl", "\"1\":{", "\"9\":{"),
        (
            "trials/001/steps.hlog",
            "Tag=01/ok/response,0.2",
            "Tag=09/ok/response,0.2",
        ),
        (
            "trials/001/steps.hlog",
            "Tag=01/ok/response,0.2",
            "Tag=01/ok/responses,.2",
        ),
        ("trials/001/steps.hlog", "HISTF", "HISTX"),
        ("trials/001/monitor.csv", "200,1.1", "200,x.1"),
        ("trials/001/monitor.csv", "200,1.1", "200,1,1"),
    ];
    let report: Vec<_> = cases
        .map(|(name, from, to)| error_after(name, from, to))
        .into();
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn an_archive_of_the_first_version_stays_readable() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/version-1");
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.manifest.study, "calendar-load");
    assert_eq!(run.trials.len(), 1);
    assert_eq!(run.incomplete, [2]);
    let trial = &run.trials[0];
    // What it did not record yet.
    let mut without = record(1);
    without.environment = TrialEnvironment::default();
    without.generator.nice = None;
    without.warnings.clear();
    assert_eq!(trial.record, without);
    let mut earlier = window(400.0, 3);
    for step in earlier.steps.values_mut() {
        (step.hops, step.plain_bytes) = (0, None);
    }
    assert_eq!(trial.windows[2], earlier);
    assert_eq!(
        trial.series(STEP).last().unwrap().histogram(),
        histogram(&[100, 2_000, 2])
    );
    assert_eq!(trial.monitor.rows[2], (400.0, vec![Some(2.1), None]));
}

#[test]
fn a_run_resumes_with_the_trials_that_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    one_trial(dir.path());
    {
        let writer = resume(dir.path()).unwrap();
        let mut killed = writer.trial(2).unwrap();
        killed.window(&window(0.0, 1)).unwrap();
    }
    assert!(dir.path().join("trials/002.partial").exists());
    assert_eq!(Run::open(dir.path()).unwrap().incomplete, [2]);
    let writer = resume(dir.path()).unwrap();
    assert!(!dir.path().join("trials/002.partial").exists());
    assert_eq!(
        writer.completed().unwrap().into_iter().collect::<Vec<_>>(),
        [1]
    );
    assert!(matches!(
        writer.trial(1),
        Err(ArchiveError::TrialComplete { id: 1, .. })
    ));
    fill(writer.trial(2).unwrap(), 2);
    drop(writer);
    let run = Run::open(dir.path()).unwrap();
    assert_eq!(
        run.trials.iter().map(|t| t.record.id).collect::<Vec<_>>(),
        [1, 2]
    );
}

/// The progress of an attempt at a trial before its run was killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    /// Its folder was made.
    Begun,
    /// Windows were written.
    Measured,
    /// It has its name, but not its record: a disk that lost the last write.
    WithoutRecord,
    Complete,
}

fn attempt(writer: &RunWriter, dir: &Path, id: u32, cut: Cut) {
    let mut trial = writer.trial(id).unwrap();
    match cut {
        Cut::Begun => {}
        Cut::Measured => trial.window(&window(0.0, 1)).unwrap(),
        Cut::WithoutRecord => {
            fill(trial, id);
            fs::remove_file(dir.join(format!("trials/{id:03}/trial.json"))).unwrap();
        }
        Cut::Complete => fill(trial, id),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]
    /// Whatever runs were killed at whatever trials: those that are missing are exactly those without
    /// a complete folder, they alone can be run, and then nothing is missing.
    #[test]
    fn a_resumed_run_lacks_what_has_no_complete_folder(
        lives in prop::collection::vec(
            prop::collection::vec((1_u32..=5, prop::sample::select(vec![
                Cut::Begun, Cut::Measured, Cut::WithoutRecord, Cut::Complete,
            ])), 0..4),
            1..4,
        ),
    ) {
        let dir = tempfile::tempdir().unwrap();
        drop(create(dir.path()));
        let mut complete = BTreeSet::new();
        for life in lives {
            let writer = resume(dir.path()).unwrap();
            prop_assert_eq!(&writer.completed().unwrap(), &complete);
            for (id, cut) in life {
                if complete.contains(&id) {
                    let refused = matches!(writer.trial(id), Err(ArchiveError::TrialComplete { .. }));
                    prop_assert!(refused);
                    continue;
                }
                attempt(&writer, dir.path(), id, cut);
                complete.extend((cut == Cut::Complete).then_some(id));
            }
        }
        let writer = resume(dir.path()).unwrap();
        let done = writer.completed().unwrap();
        prop_assert_eq!(&done, &complete);
        for id in (1..=5).filter(|id| !done.contains(id)) {
            fill(writer.trial(id).unwrap(), id);
        }
        drop(writer);
        let run = Run::open(dir.path()).unwrap();
        let ids: Vec<u32> = run.trials.iter().map(|trial| trial.record.id).collect();
        prop_assert_eq!(ids, [1, 2, 3, 4, 5]);
        prop_assert_eq!(run.incomplete, Vec::<u32>::new());
    }
}

#[test]
fn a_resume_with_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(create(dir.path()));
    let plan = json!({"trials": [{"id": 1}]});
    let words = |m: &Manifest, plan, files: &[(String, Vec<u8>)]| {
        let error = RunWriter::open_for_resume(dir.path(), m, plan, files).unwrap_err();
        error
            .to_string()
            .replace(dir.path().to_str().unwrap(), "RUN")
    };
    let mut other_seed = manifest();
    other_seed.seed = 8;
    let mut other_study = manifest();
    other_study.file_hash = "blake3:1234".to_owned();
    let mut other_speed = manifest();
    other_speed.speed = 1.5;
    let mut other_files = files();
    other_files[1].1.push(b'\n');
    let mut other_lines = files();
    other_lines[0].1 = b"study: made\r\n".to_vec();
    let report = [
        words(&other_seed, &plan, &files()),
        words(&manifest(), &plan, &other_lines),
        words(&other_study, &plan, &files()),
        words(&other_speed, &plan, &files()),
        words(&manifest(), &plan, &other_files),
        words(&manifest(), &json!({}), &files()),
    ];
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn a_plan_that_searches_grows_and_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let grown = |trials: &[u32], max: f64| json!({"search": {"max": max}, "trials": trials});
    let writer = RunWriter::create(dir.path(), &manifest(), &grown(&[], 0.05), &files()).unwrap();
    fill(writer.trial(1).unwrap(), 1);
    writer.replace_plan(&grown(&[1, 2], 0.05)).unwrap();
    assert_eq!(writer.plan().unwrap(), grown(&[1, 2], 0.05));
    assert!(
        writer.replace_plan(&json!({"trials": [1]})).is_err(),
        "a fixed plan stays"
    );
    drop(writer);
    let run = Run::open(dir.path()).unwrap();
    assert_eq!((run.plan, run.trials.len()), (grown(&[1, 2], 0.05), 1));
    assert_eq!(Run::open_trial(dir.path(), 2).unwrap().trials.len(), 0);
    assert_eq!(Run::open_trial(dir.path(), 1).unwrap().trials, run.trials);
    let resume = |plan| RunWriter::open_for_resume(dir.path(), &manifest(), &plan, &files());
    let other = resume(grown(&[], 0.1)).map(drop);
    assert!(
        matches!(other, Err(ArchiveError::Changed { .. })),
        "{other:?}"
    );
    assert!(resume(grown(&[], 0.05)).is_ok());
}

#[test]
fn folders_in_use_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let error = resume(dir.path()).unwrap_err();
    assert!(
        matches!(error, ArchiveError::NotAnArchive { .. }),
        "{error}"
    );
    let writer = create(dir.path());
    assert!(matches!(resume(dir.path()), Err(ArchiveError::Busy { .. })));
    drop(writer);
    let again = RunWriter::create(dir.path(), &manifest(), &json!({}), &files());
    assert!(matches!(again, Err(ArchiveError::NotEmpty { .. })));
    assert!(resume(dir.path()).is_ok());
}

/// `/dev/full` answers every write as a full disk does.
#[test]
fn a_full_disk_is_said_and_finished_trials_stay() {
    let dir = tempfile::tempdir().unwrap();
    let writer = create(dir.path());
    fill(writer.trial(1).unwrap(), 1);
    let mut trial = writer.trial(2).unwrap();
    let monitor = dir.path().join("trials/002.partial/monitor.csv");
    std::os::unix::fs::symlink("/dev/full", &monitor).unwrap();
    trial.monitor_header(&["a".to_owned()]).unwrap();
    let error = trial.window(&window(0.0, 1)).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.to_string().contains("monitor.csv"), "{error}");
    assert!(cause.contains("No space left"), "{cause}");
    assert!(trial.finish(&record(2)).is_err());
    drop(writer);
    let run = Run::open(dir.path()).unwrap();
    assert_eq!((run.trials.len(), run.incomplete), (1, vec![2]));
}

#[test]
fn rows_must_fit_their_header() {
    let dir = tempfile::tempdir().unwrap();
    let mut trial = create(dir.path()).trial(1).unwrap();
    assert!(trial.monitor_row(0.0, &[]).is_err(), "no header yet");
    trial.monitor_header(&["a".to_owned()]).unwrap();
    let second = trial.monitor_header(&["a".to_owned()]);
    assert!(second.is_err(), "a second header");
    assert!(
        trial.monitor_row(0.0, &[None, None]).is_err(),
        "too many values"
    );
    assert!(trial.monitor_row(f64::NAN, &[None]).is_err(), "no time");
    trial.monitor_row(1.0, &[Some(f64::INFINITY)]).unwrap();
    trial.finish(&record(1)).unwrap();
    let run = Run::open(dir.path()).unwrap();
    assert_eq!(run.trials[0].monitor.rows, [(1.0, vec![None])]);
}
