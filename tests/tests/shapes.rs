//! Loads of stages and of several populations as whole runs: over generators in separate processes, interrupted and
//! resumed, searched.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::{program, wait_until};
use serde_json::Value;

const DEADLINE: Duration = Duration::from_secs(240);

/// Two workloads for the bundled server, whose users are distinguished by their paths.
const READ: &str = "workload: read\nuser: { name: \"user{{ pad(index, 5) }}\" }\nsession:\n  steps:\n    \
                    - { step: Look, wait: 20ms..60ms, request: GET /, expect: [200..499] }\n";
const WRITE: &str = "workload: write\nuser: { name: \"user{{ pad(index, 5) }}\" }\nsession:\n  steps:\n    \
                     - { step: Knock, wait: 50ms..90ms, request: POST /, expect: [100..499] }\n";

/// A folder with a study of this load.
fn study(folder: &Path, load: &str) {
    let study = format!(
        "study: shapes\ntitle: Shapes\nworkload: read.workload.yaml\nsystem: {{ groupware: {{}} }}\n\
         trials: 2\nrepeats: 0\n{load}\n"
    );
    let files = [
        ("shapes.study.yaml", study.as_str()),
        ("read.workload.yaml", READ),
        ("write.workload.yaml", WRITE),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("written");
    }
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(program());
    command
        .arg("run")
        .arg(folder.join("shapes.study.yaml"))
        .arg("--out")
        .arg(folder.join("run"))
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null());
    command
}

fn result(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("run/result.json")).expect("result.json");
    serde_json::from_str(&text).expect("JSON")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs it, interrupts it after its first trial, and resumes it.
fn interrupted_and_resumed(folder: &Path) -> Value {
    let mut child = command(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let first_trial = folder.join("run/trials/001/trial.json");
    wait_until(DEADLINE, "the first trial is archived", || {
        first_trial.exists()
    });
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(105));
    let written = || {
        fs::metadata(&first_trial)
            .and_then(|file| file.modified())
            .expect("a time")
    };
    let kept = written();
    let output = command(folder).arg("--resume").output().expect("it runs");
    assert_eq!(kept, written(), "the finished trial was not run again");
    let result = result(folder);
    assert_eq!(
        result["trials"].as_array().map(Vec::len),
        Some(2),
        "{}",
        said(&output)
    );
    result
}

#[test]
fn stages_over_generators_are_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    study(
        folder.path(),
        "load: { generators: 2, stages: [{ users: 4, for: 1s }, { stage: high, users: 9, for: 1s }, \
         { users: 0, over: 1s }] }",
    );
    let result = interrupted_and_resumed(folder.path());
    for trial in result["trials"].as_array().expect("trials") {
        let stages = trial["stages"].as_array().expect("stages");
        let names: Vec<&str> = stages
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert_eq!(names, ["1", "high", "3"]);
        let users = |at: usize| stages[at]["users"].as_f64().expect("a number");
        // A request at the very end of a window may be counted in it.
        assert!(users(0) < 4.5 && users(1) < 9.5, "{trial}");
        let of_all: u64 = stages
            .iter()
            .filter_map(|one| one["transactions"].as_u64())
            .sum();
        assert_eq!(Some(of_all), trial["transactions"].as_u64());
        assert!(of_all > 0 && trial["errors"] == 0, "{trial}");
    }
}

#[test]
fn populations_over_generators_are_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    study(
        folder.path(),
        "load: { generators: 2, users: 8, hold: 5s, mix: [{ population: readers, share: 3 }, \
         { population: writers, workload: write.workload.yaml, share: 1 }] }\n\
         thresholds:\n  throughput{population:writers}: [\"rate > 0.1/s\"]",
    );
    let result = interrupted_and_resumed(folder.path());
    for trial in result["trials"].as_array().expect("trials") {
        let populations = trial["populations"].as_array().expect("populations");
        let told = |at: usize| {
            (
                populations[at]["name"].clone(),
                populations[at]["users"].clone(),
            )
        };
        assert_eq!(told(0), ("readers".into(), 6.into()));
        assert_eq!(told(1), ("writers".into(), 2.into()));
        let sent: Vec<u64> = populations
            .iter()
            .filter_map(|one| one["transactions"].as_u64())
            .collect();
        assert!(sent.iter().all(|sent| *sent > 0), "{trial}");
        assert_eq!(
            Some(sent.iter().sum::<u64>()),
            trial["transactions"].as_u64()
        );
        let steps = trial["steps"].as_array().expect("steps");
        let names: Vec<&str> = steps
            .iter()
            .filter_map(|step| step["name"].as_str())
            .collect();
        assert_eq!(names, ["readers/Look", "writers/Knock"]);
        let thresholds = trial["thresholds"].as_array().expect("thresholds");
        assert!(
            thresholds.iter().any(|one| one["population"] == "writers"),
            "{trial}"
        );
    }
}

#[test]
fn a_search_keeps_the_shares_of_populations() {
    let folder = tempfile::tempdir().expect("a folder");
    study(
        folder.path(),
        "load: { hold: 500ms, mix: [{ population: readers, share: 3 }, { population: writers, \
         workload: write.workload.yaml, share: 1 }] }\n\
         find: { users: { min: 4, max: 16 }, trials: 1, resolution: 50%, subject_to: { error_rate: \
         [\"rate <= 100%\"] } }",
    );
    let file = folder.path().join("shapes.study.yaml");
    let text = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, text.replace("trials: 2\n", "")).expect("written");
    let output = command(folder.path()).output().expect("it runs");
    let plan = fs::read_to_string(folder.path().join("run/plan.json"));
    let plan = plan.unwrap_or_else(|_| panic!("{}", said(&output)));
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let trials = plan["trials"].as_array().expect("trials");
    assert!(!trials.is_empty(), "{}", said(&output));
    for trial in trials {
        let users = trial["load"]["users"].as_u64().expect("a number");
        let of = |at: usize| {
            trial["load"]["mix"][at]["users"]
                .as_u64()
                .expect("a number")
        };
        assert_eq!(of(0) + of(1), users);
        assert!(of(0).abs_diff(users * 3 / 4) <= 1, "{trial}");
    }
}

#[test]
fn a_trial_is_ended_before_it_harms_the_system_and_is_no_measurement() {
    let folder = tempfile::tempdir().expect("a folder");
    study(
        folder.path(),
        "load: { users: 4, hold: 10m }\nabort_on: [{ when: \"error_rate > 50%\", for: 400ms }]\n\
         thresholds: { error_rate: [\"rate <= 100%\"] }",
    );
    let failing = READ.replace("[200..499]", "299");
    fs::write(folder.path().join("read.workload.yaml"), failing).expect("written");
    let output = command(folder.path()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(99), "{}", said(&output));
    let result = result(folder.path());
    let trials = result["trials"].as_array().expect("trials");
    // Neither is repeated, and neither runs for ten minutes.
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert_eq!(
            (&trial["verdict"], &trial["aborted"]),
            (&"invalid".into(), &true.into())
        );
        let check = &trial["checks"][0];
        assert_eq!(check["name"], "abort");
        let evidence = check["evidence"].as_str().expect("a text");
        assert!(evidence.contains("`error_rate > 50%`"), "{evidence}");
        assert!(trial["system_failure"].is_null(), "{trial}");
    }
}

#[test]
fn a_search_takes_an_aborted_trial_for_one_that_is_not_carried() {
    let folder = tempfile::tempdir().expect("a folder");
    study(
        folder.path(),
        "load: { hold: 10m }\nabort_on: [{ when: \"error_rate > 50%\", for: 200ms }]\n\
         find: { users: { min: 1, max: 4 }, trials: 1, resolution: 50%, subject_to: { error_rate: \
         [\"rate < 1%\"] } }",
    );
    let failing = READ.replace("[200..499]", "299");
    fs::write(folder.path().join("read.workload.yaml"), failing).expect("written");
    let file = folder.path().join("shapes.study.yaml");
    let text = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, text.replace("trials: 2\n", "")).expect("written");
    let output = command(folder.path()).output().expect("it runs");
    let result = result(folder.path());
    let line = &result["load_lines"][0];
    assert!(
        line["users"].is_null(),
        "nobody is carried: {line} {}",
        said(&output)
    );
    let levels = line["levels"].as_array().expect("levels");
    assert!(levels.iter().all(|level| level["carried"] == 0), "{line}");
    assert!(
        levels.iter().any(|level| level["not_carried"] != 0),
        "{line}"
    );
}

#[test]
fn a_recording_over_generators_is_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    study(
        folder.path(),
        "load: { generators: 2, timeline: { column: at, unit: ms, scale: 2, from: 100ms }, arrival: { \
         connections: 20 } }",
    );
    let rows: String = (0..50)
        .map(|row| format!("{},/page/{row}\n", 5_000 + row * 50))
        .collect();
    fs::write(folder.path().join("rows.csv"), format!("at,path\n{rows}")).expect("written");
    let replaying = READ
        .replace(
            "workload: read\n",
            "workload: read\ndata: { file: rows.csv, each: session }\n",
        )
        .replace(
            "wait: 20ms..60ms, request: GET /,",
            "request: \"GET {{ path }}\",",
        );
    fs::write(folder.path().join("read.workload.yaml"), replaying).expect("written");
    let output = command(folder.path()).output().expect("it runs");
    let result = result(folder.path());
    for trial in result["trials"].as_array().expect("trials") {
        // Two rows are before the replayed part. A machine that is too slow for the others in their time has some
        // without an answer, and then the trial is invalid.
        let answered = trial["transactions"].as_u64().expect("a number");
        let is_all = answered == 48 || (answered < 48 && trial["verdict"] == "invalid");
        assert!(is_all && trial["errors"] == 0, "{trial} {}", said(&output));
    }
}

#[test]
fn a_population_replays_a_recording_beside_users() {
    let folder = tempfile::tempdir().expect("a folder");
    study(
        folder.path(),
        "load: { hold: 3s, mix: [{ population: people, users: 3 }, { population: recorded, workload: \
         replay.workload.yaml, timeline: { column: at, unit: ms, scale: 2 }, arrival: { connections: 20 } }] }",
    );
    // 20 in the first second, and 20 after the end of the load.
    let at = |row: u64| 5_000 + row * 100 + if row < 20 { 0 } else { 10_000 };
    let rows: String = (0..40)
        .map(|row| format!("{},/page/{row}\n", at(row)))
        .collect();
    fs::write(folder.path().join("rows.csv"), format!("at,path\n{rows}")).expect("written");
    let replaying = READ
        .replace(
            "workload: read\n",
            "workload: replay\ndata: { file: rows.csv, each: session }\n",
        )
        .replace(
            "wait: 20ms..60ms, request: GET /,",
            "request: \"GET {{ path }}\",",
        );
    fs::write(folder.path().join("replay.workload.yaml"), replaying).expect("written");
    let output = command(folder.path()).output().expect("it runs");
    let result = result(folder.path());
    for trial in result["trials"].as_array().expect("trials") {
        let [people, recorded] = [0, 1].map(|at| &trial["populations"][at]);
        assert_eq!(recorded["name"], "recorded", "{trial} {}", said(&output));
        let sent = |of: &Value| of["transactions"].as_u64().expect("a number");
        // On a machine that is too slow, some are without an answer, and the trial is invalid.
        let is_all = sent(recorded) == 20 && sent(people) > 0;
        let is_cut = sent(recorded) <= 20 && trial["verdict"] == "invalid";
        assert!(is_all || is_cut, "{trial} {}", said(&output));
        assert_eq!(trial["errors"], 0, "{trial}");
    }
}

/// A workload of nested transactions with a limit on each kind of their figures.
#[test]
fn transactions_are_timed_and_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    study(
        folder.path(),
        "load: { generators: 2, users: 4, hold: 4s }\n\
         thresholds:\n  transaction_time{transaction:Checkout}: [\"avg < 50s\"]\n  \
         transaction_elapsed{transaction:session}: [\"avg > 60ms\"]\n  \
         error_rate{transaction:Payment}: [\"rate <= 0%\"]\n  \
         throughput{transaction:Checkout}: [\"rate > 0.1/s\"]",
    );
    let workload = "workload: shop\nuser: { name: \"user{{ pad(index, 5) }}\" }\nsession:\n  steps:\n    \
        - { step: Look, wait: 20ms, request: GET /, expect: [200..499] }\n    - transaction: Checkout\n      steps:\n        \
        - { step: Cart, request: GET /cart, expect: [200..499] }\n        - transaction: Payment\n          steps:\n            \
        - { step: Pay, wait: 70ms, request: POST /pay, expect: [200..499] }\n            \
        - { step: Thanks, request: GET /thanks, expect: [200..499] }\n";
    fs::write(folder.path().join("read.workload.yaml"), workload).expect("written");
    let result = interrupted_and_resumed(folder.path());
    for trial in result["trials"].as_array().expect("trials") {
        let named = trial["named_transactions"]
            .as_array()
            .expect("transactions");
        let names: Vec<_> = named
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert_eq!(names, ["session", "Checkout", "Payment"]);
        for one in named {
            let count = |key: &str| one[key].as_u64().expect("a count");
            assert!(count("completed") > 0 && count("failed") == 0, "{one}");
            // Each user has at most one under way at the end.
            assert!(count("unfinished") <= 4, "{one}");
        }
        let mean = |at: usize, key: &str| named[at][key]["mean"].as_f64().expect("a mean");
        // The session waits for 20 ms before its first request, which are not in its time, and for 70 ms within.
        let thought = mean(0, "elapsed_ms") - mean(0, "time_ms");
        assert!((thought - 70.0).abs() < 1.0, "{trial}");
        let thought = mean(2, "elapsed_ms") - mean(2, "time_ms");
        assert!(thought.abs() < 0.01, "{trial}");
        let judged = trial["thresholds"].as_array().expect("thresholds");
        let of_transactions: Vec<_> = judged
            .iter()
            .filter(|one| one.get("transaction").is_some())
            .collect();
        assert_eq!(of_transactions.len(), 4, "{trial}");
        assert!(
            of_transactions.iter().all(|one| one["holds"] == true),
            "{trial}"
        );
    }
}
