//! Two systems at the same time, each with its own generator, on the same cores or on halves: their data in the archive
//! and the report.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::available_parallelism;

use plimsoll_tests::{program, repository};
use serde_json::Value;

/// Few users, so that a debug build on a busy machine keeps up with them.
const STUDY: &str = "\
study: both
title: The same server under two names, at the same time
workload: WORKLOAD
variants:
  a: { groupware: { http_threads: 2 } }
  b: { groupware: { http_threads: 2 } }
load: { users: 10, ramp: 2m, hold: 1 cycles }
trials: TRIALS
repeats: 0
duet: DUET
";

/// Runs the study with this many blocks.
fn run(folder: &Path, (duet, trials): (&str, u32), resume: bool) -> Output {
    let study = folder.join("both.study.yaml");
    let workload = repository().join("workloads/calendar.workload.yaml");
    let workload = workload.to_str().expect("UTF-8");
    let text = STUDY.replace("WORKLOAD", workload).replace("DUET", duet);
    let text = text.replace("TRIALS", &trials.to_string());
    fs::write(&study, text).expect("written");
    let mut command = Command::new(program());
    command
        .arg("run")
        .arg(&study)
        .args(["--speed", "240", "--out"])
        .arg(folder.join("run"))
        .args(resume.then_some("--resume"))
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null());
    command.output().expect("the program runs")
}

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn cores(record: &Value) -> BTreeSet<u64> {
    let pinning = &record["duet"]["pinning"];
    let of = |side: &str| pinning[side].as_array().cloned().unwrap_or_default();
    let all = [of("generator"), of("system")].concat();
    all.iter().filter_map(Value::as_u64).collect()
}

fn has_one_core() -> bool {
    let one = available_parallelism().is_ok_and(|cores| cores.get() < 2);
    if one {
        eprintln!("skipped: a duet needs two cores");
    }
    one
}

#[test]
fn trials_that_are_kept_apart_have_cores_of_their_own() {
    if has_one_core() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), ("apart", 1), false);
    let said = String::from_utf8_lossy(&output.stderr);
    let record = |id: u32| json(&folder.path().join(format!("run/trials/{id:03}/trial.json")));
    let [left, right] = [1, 2].map(record);
    assert_eq!(left["end"]["how"], "complete", "{left}\n{said}");
    assert_eq!(left["duet"]["together"], Value::Null);
    assert!(cores(&left).is_disjoint(&cores(&right)), "{left} {right}");
}

#[test]
fn two_trials_run_at_the_same_time_on_the_same_cores() {
    if has_one_core() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), ("true", 2), false);
    let said = String::from_utf8_lossy(&output.stderr);
    let trial = |id: u32| folder.path().join(format!("run/trials/{id:03}"));
    let records = [1, 2, 3, 4].map(|id| json(&trial(id).join("trial.json")));
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["end"]["how"], "complete", "{record}\n{said}");
        let partner = &records[at ^ 1];
        assert_eq!(record["duet"]["partner"], partner["id"]);
        assert_eq!(record["duet"]["left"], at % 2 == 0);
        assert_eq!(record["duet"]["together"], true, "{record}");
        assert!(cores(record) == cores(partner) && cores(record).len() > 1);
        // The generators changed places meanwhile.
        assert!(record["duet"]["exchanges"].as_u64() > Some(0), "{record}");
        // They met: both ramps began, one as much later as the other was earlier.
        let later = |of: &Value| of["duet"]["later_ms"].as_f64().expect("both began");
        assert!((later(record) + later(partner)).abs() < 1e-6, "{record}");
        let counters = fs::read_to_string(trial(at as u32 + 1).join("monitor.csv"));
        let counters = counters.expect("sampled");
        let head = counters.lines().next().expect("a head");
        assert!(head.contains("generator.cpu_percent"), "{head}");
        assert!(head.contains("partner.cpu_percent"), "{head}");
    }
    let result = json(&folder.path().join("run/result.json"));
    assert!(result["duet"]["blocks"].is_array(), "{}", result["duet"]);
    let page = fs::read_to_string(folder.path().join("run/report.html")).expect("a report");
    assert!(page.contains("ICPE 2020") && page.contains("What it does not say"));
    assert!(!folder.path().join("run/work").exists());

    // Half a duet, as a killed run may leave it: both run again, and existing trials stay.
    fs::remove_dir_all(trial(4)).expect("it is there");
    let output = run(folder.path(), ("true", 2), true);
    let said = String::from_utf8_lossy(&output.stderr);
    let again = [5, 6].map(|id| json(&trial(id).join("trial.json")));
    assert_eq!(
        again.each_ref().map(|one| &one["attempt_of"]),
        [3, 4],
        "{said}"
    );
    assert_eq!(json(&trial(3).join("trial.json")), records[2]);
}
