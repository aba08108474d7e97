//! An archive read while it is written shows what a reader of the finished one finds.

use std::time::Duration;

use hdrhistogram::Histogram;
use lab_archive::{
    ARCHIVE_SCHEMA, ArchiveError, EventLine, EventLog, Follow, Happening, Kind, Manifest, Outcome,
    Run, RunWriter, Series, TrialRecord, WindowLine,
};
use proptest::prelude::*;
use serde_json::json;

const STEP: Series = Series::Step {
    step: 0,
    outcome: Outcome::Ok,
    kind: Kind::Response,
};

fn manifest() -> Manifest {
    let environment = json!({
        "kernel": "6.12", "cpu": "a CPU", "cores": 2, "memory_mb": 1000, "os": "an OS",
        "data_filesystem": "ext4", "plimsoll_version": "0.1.0",
        "pinning": { "generator": [0], "system": [1], "shared": false },
    });
    let manifest = json!({
        "schema": ARCHIVE_SCHEMA, "study": "s", "title": "A study", "file_hash": "sha256:0",
        "seed": 1, "speed": 1.0, "overrides": [], "started": "2026-11-22T10:00:00Z",
        "environment": environment, "steps": ["Read"], "files": [],
    });
    serde_json::from_value(manifest).unwrap()
}

fn record() -> TrialRecord {
    serde_json::from_value(json!({
        "schema": "", "id": 1, "started": "2026-11-22T10:00:01Z", "end": { "how": "complete" },
        "ramp_ms": 0, "hold_ms": 1000, "elapsed_ms": 1000, "provision_ms": 0, "setup_ms": 0,
        "setup_transactions": 0, "setup_errors": 0, "error_examples": [],
        "generator": { "workers": 1, "cpu_fraction": null, "run_queue_delay_fraction": null,
            "cpu_fraction_max": null, "rss_mb_max": 1.0 },
        "start_data_bytes": 0, "system_settings": {}, "notes": [],
    }))
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn looks_at_any_time_add_up_to_the_whole(looks in proptest::collection::vec(any::<bool>(), 1..30)) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let archive = RunWriter::create(&dir, &manifest(), &json!({}), &[]).unwrap();
        let mut trial = archive.trial(1).unwrap();
        trial.monitor_header(&["host.cpu_percent".to_owned()]).unwrap();
        let mut follow = Follow::open(&dir).unwrap();
        prop_assert_eq!(follow.under_way().unwrap(), Some(1));
        prop_assert!(follow.growth().unwrap().windows.is_empty());
        follow.begin(1);
        let (mut windows, mut intervals, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut look = |follow: &mut Follow| {
            let growth = follow.growth().unwrap();
            windows.extend(growth.windows);
            intervals.extend(growth.intervals);
            rows.extend(growth.rows);
        };
        for (number, is_look) in (0u32..).zip(&looks) {
            let (start, end) = (f64::from(number) * 100.0, f64::from(number + 1) * 100.0);
            let mut times = Histogram::new(3).unwrap();
            times.record(u64::from(number) + 1).unwrap();
            let at = |ms: f64| Duration::from_secs_f64(ms / 1e3);
            trial.monitor_row(start, &[Some(f64::from(number))]).unwrap();
            trial.histogram(STEP, at(start), at(end), &times).unwrap();
            let mut window = WindowLine { start_ms: start, end_ms: end, ..WindowLine::default() };
            window.counts.users = number;
            trial.window(&window).unwrap();
            if *is_look {
                look(&mut follow);
            }
        }
        // The folder gets its final name between two polls.
        trial.finish(&record()).unwrap();
        look(&mut follow);
        let run = Run::open(&dir).unwrap();
        prop_assert_eq!(&run.trials[0].windows, &windows);
        prop_assert_eq!(&run.trials[0].hlog, &intervals);
        prop_assert_eq!(&run.trials[0].monitor.rows, &rows);
        prop_assert_eq!(follow.under_way().unwrap(), None);
    }
}

#[test]
fn events_read_back_line_by_line_and_what_is_unknown_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    drop(RunWriter::create(&dir, &manifest(), &json!({}), &[]).unwrap());
    let mut follow = Follow::open(&dir).unwrap();
    assert_eq!(follow.events().unwrap(), []);
    let line = |text: &str| EventLine {
        at: "2026-11-22T10:00:00Z".to_owned(),
        what: Happening::Note {
            text: text.to_owned(),
        },
    };
    EventLog::open(&dir).unwrap().put(&line("one")).unwrap();
    assert_eq!(follow.events().unwrap(), [line("one")]);
    let path = dir.join("events.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(b"no JSON\n{\"at\":\"x\",\"event\":\"of a later version\",\"y\":1}\n{\"at\"");
    std::fs::write(&path, &bytes).unwrap();
    let seen = follow.events().unwrap();
    assert!(
        matches!(
            &seen[..],
            [EventLine {
                what: Happening::Unknown,
                ..
            }]
        ),
        "{seen:?}"
    );
    bytes.extend(b":\"2026-11-22T10:00:00Z\",\"event\":\"note\",\"text\":\"two\"}\n");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(follow.events().unwrap(), [line("two")]);
}

#[test]
fn what_is_no_archive_or_damaged_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let none = Follow::open(folder.path());
    assert!(matches!(none, Err(ArchiveError::NotAnArchive { .. })));
    let dir = folder.path().join("run");
    let archive = RunWriter::create(&dir, &manifest(), &json!({}), &[]).unwrap();
    drop(archive.trial(1).unwrap());
    let mut follow = Follow::open(&dir).unwrap();
    follow.begin(1);
    let windows = dir.join("trials/001.partial/windows.jsonl");
    std::fs::write(&windows, b"{\"start_ms\":\n").unwrap();
    let error = follow.growth().unwrap_err().to_string();
    assert!(error.contains("windows.jsonl"), "{error}");
}
