//! Any bytes as a file of an archive: it opens, or an error names the file; following it works, too.

use std::fs;
use std::path::Path;

use lab_archive::{Follow, Run};

const TRIAL: &str = "trials/001/trial.json";

/// An archive of version 1, as it is on disk.
const FILES: &[(&str, &[u8])] = &[
    (
        TRIAL,
        include_bytes!("../../../lab/archive/tests/fixtures/version-1/trials/001/trial.json"),
    ),
    (
        "files/study.yaml",
        include_bytes!("../../../lab/archive/tests/fixtures/version-1/files/study.yaml"),
    ),
    (
        "files/published/a.csv",
        include_bytes!("../../../lab/archive/tests/fixtures/version-1/files/published/a.csv"),
    ),
    (
        "manifest.json",
        include_bytes!("../../../lab/archive/tests/fixtures/version-1/manifest.json"),
    ),
    (
        "plan.json",
        include_bytes!("../../../lab/archive/tests/fixtures/version-1/plan.json"),
    ),
    (
        "trials/001/windows.jsonl",
        include_bytes!("../../../lab/archive/tests/fixtures/version-1/trials/001/windows.jsonl"),
    ),
    (
        "trials/001/steps.hlog",
        include_bytes!("../../../lab/archive/tests/fixtures/version-1/trials/001/steps.hlog"),
    ),
    (
        "trials/001/monitor.csv",
        include_bytes!("../../../lab/archive/tests/fixtures/version-1/trials/001/monitor.csv"),
    ),
    (
        "trials/001/threads.csv",
        b"t_ms,group,threads,wall_ms,on_cpu_ms,no_core_ms,lock_ms\n1000.000,http-*,4,4000.000000,1000.5,20,7\n",
    ),
    (
        "trials/001/latency.hlog",
        b"1.000,2.000,0.020,x\n",
    ),
    (
        "events.jsonl",
        b"{\"at\":\"2026-11-22T10:00:00Z\",\"event\":\"note\",\"text\":\"one\"}\n",
    ),
];

/// Makes the trial's record agree with the changed file's length, so that its content is read.
fn set_length(path: &Path, name: &str, length: usize) {
    let text = fs::read(path).expect("it is there");
    let mut record: serde_json::Value = serde_json::from_slice(&text).expect("the fixture is JSON");
    record["file_bytes"][name] = length.into();
    fs::write(path, record.to_string()).expect("written");
}

pub(crate) fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    let changed = usize::from(*choice) % FILES.len();
    let folder = tempfile::tempdir().expect("a folder");
    for below in ["trials/001", "files/published"] {
        fs::create_dir_all(folder.path().join(below)).expect("a folder");
    }
    for (index, (name, content)) in FILES.iter().enumerate() {
        let content = if index == changed { bytes } else { content };
        fs::write(folder.path().join(name), content).expect("written");
    }
    let (name, _) = FILES[changed];
    if let Some(name) = name.strip_prefix("trials/001/").filter(|_| name != TRIAL) {
        set_length(&folder.path().join(TRIAL), name, bytes.len());
    }
    if let Err(error) = Run::open(folder.path()) {
        assert!(!error.to_string().is_empty());
    }
    // The same bytes, as they may be there during the run.
    if let Ok(mut follow) = Follow::open(folder.path()) {
        let _ = follow.events();
        follow.begin(1);
        let _ = follow.growth();
    }
}
