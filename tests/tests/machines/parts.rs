//! A system of two processes on two machines: a server, and a front end for the users that has the server's address.
//! They are one system: started in order, counted and reported by machine, and lost together.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::wait_until;
use serde_json::Value;

use crate::stage::{
    DEADLINE, FRONT, Mortal, SECOND, SESSIONS, Stage, check_elsewhere, counts, record, samples,
    sequence,
};

/// A front end over a server, each on a separate machine; without a name, the front end is on this one.
fn study(load: &str, front: Option<&str>) -> String {
    let on = front.map_or(String::new(), |on| format!("      on: {on}\n"));
    format!(
        "study: far\ntitle: A server behind a front\nworkload: far.workload.yaml\nsystem:\n  processes:\n    \
         db:\n      on: db\n      start: [\"{{{{ plimsoll }}}}\", serve, --listen, \"{{{{ address }}}}:{{{{ port }}}}\", \
         --engine, memory, --data, \"{{{{ scratch }}}}/store\", --expose-without-tls]\n      \
         ready: {{ http: /healthz, within: 120s }}\n    \
         app:\n{on}      start: [\"{FRONT}\", \"{{{{ address }}}}:{{{{ port }}}}\", \
         \"{{{{ db_address }}}}:{{{{ db_port }}}}\"]\n      ready: {{ http: /healthz, within: 120s }}\n\
         load: {load}\nrepeats: 0\n"
    )
}

fn two_machines() -> Option<Stage> {
    let mut stage = Stage::start()?;
    stage.add_second();
    Some(stage)
}

fn check_counted(run: &Path) {
    for column in [
        "system.cpu_ms_total",
        "host.memory_available_mb",
        "db/system.cpu_ms_total",
        "db/host.memory_available_mb",
    ] {
        let samples = samples(run, column);
        assert!(samples > 1, "{column}: {samples} samples");
    }
}

fn check_part(record: &Value) {
    let part = &record["circumstances"]["parts"][0];
    assert_eq!(
        (&part["name"], &part["agent"]["name"]),
        (&Value::from("db"), &Value::from("db"))
    );
    let host = &part["host"];
    assert!(host["cores"].as_u64() > Some(0), "{part}");
    assert!(
        host["limits"]["system_open_files"]["limit"].as_u64() > Some(0),
        "{part}"
    );
    let hash = part["starting_state"]["configuration_hash"].as_str();
    assert!(
        hash.is_some_and(|hash| hash.starts_with("blake3:")),
        "{part}"
    );
    assert_eq!(record["system_settings"]["machine of db"], "db");
    let cpus = record["system_settings"]["cpus of db"].as_str();
    assert!(cpus.is_some_and(|cpus| cpus.contains("core")), "{record}");
    check_elsewhere(record, Some("db"));
}

/// Returns the first trial of the run, which must be whole.
#[track_caller]
fn whole(stage: &Stage, name: &str, study: &str) -> Value {
    let output = stage.output(name, study);
    let run = stage.path(name);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(run.join("trials/001/trial.json").exists(), "{told}");
    let record = record(&run, 1);
    assert_eq!(record["end"]["how"], "complete", "{record}");
    assert_eq!(counts(&run), (SESSIONS * 4, 0));
    check_counted(&run);
    check_part(&record);
    stage.nothing_is_left();
    record
}

#[test]
fn a_system_on_two_machines_is_one_and_each_machine_is_counted() {
    let Some(stage) = two_machines() else { return };
    let record = whole(&stage, "two", &study(&sequence(), Some(SECOND)));
    assert_eq!(record["circumstances"]["system_agent"]["name"], SECOND);
    check_elsewhere(&record, None);
    let trial = stage.path("two").join("trials/001");
    let log = |name: &str| fs::read_to_string(trial.join(name)).expect("its output");
    let passes = log("system.log");
    assert!(
        passes.contains("from 127.0.0.3:") && passes.contains("to 127.0.0.2:"),
        "{passes}"
    );
    assert!(log("system.db.log").contains("127.0.0.2"));
    let clocks = log("clocks.jsonl");
    assert!(
        clocks.contains("\"db\"") && clocks.contains("\"app\""),
        "{clocks}"
    );
    let result = fs::read(stage.path("two").join("result.json")).expect("a result");
    let result: Value = serde_json::from_slice(&result).expect("a result is JSON");
    let trial = &result["trials"][0];
    let part = &trial["parts"][0];
    assert_eq!(part["name"], "db", "{part}");
    let total = trial["system"]["rss_mb"].as_f64().expect("of both");
    let own = part["system"]["rss_mb"].as_f64().expect("its memory");
    assert!(total > own && own > 0.0, "{total} of both, {own} of db");
    let checks = trial["checks"].to_string();
    for said in [
        "on the machine of db",
        "db run by db",
        "that of the machine of db",
    ] {
        assert!(checks.contains(said), "{said}: {checks}");
    }
    let here = whole(&stage, "here", &study(&sequence(), None));
    assert_eq!(here["circumstances"]["system_agent"], Value::Null);
}

/// Returns the answer of a run's page at this path.
fn asked(page: &str, below: &str) -> String {
    let rest = page.strip_prefix("http://").expect("an address");
    let (address, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a limit");
    write!(
        stream,
        "GET /{path}{below} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    answer
}

#[test]
fn the_live_page_has_the_counters_of_both_machines() {
    let Some(stage) = two_machines() else { return };
    let study = study("{ users: 2, hold: 10m }", Some(SECOND));
    let mut run = Mortal(stage.begin_with("live", &study, &["--live"]));
    let said = stage.said();
    let page = said
        .lines()
        .find_map(|line| line.split_once("live page: "))
        .unwrap_or_else(|| panic!("no page in {said:?}"));
    let page = page.1.trim();
    let mut metrics = String::new();
    wait_until(DEADLINE, "both machines are counted", || {
        metrics = asked(page, "metrics");
        let counted = |name| metrics.contains(&format!("name=\"{name}\"}} "));
        counted("db/system.rss_mb") && counted("system.rss_mb") && counted("db/host.cpu_percent")
    });
    assert!(metrics.starts_with("HTTP/1.1 200 "), "{metrics}");
    let of_part = asked(page, "");
    assert!(of_part.contains("CPU, machine of db"), "{of_part}");
    kill(Pid::from_raw(run.0.id().cast_signed()), Signal::SIGINT).expect("it runs");
    run.0.wait().expect("it ends");
    stage.nothing_is_left();
}

/// Returns the trial of a run with a long load, after `harm`.
fn harmed(stage: &mut Stage, name: &str, harm: impl FnOnce(&mut Stage)) -> Value {
    let study = study("{ users: 2, hold: 10m }", Some(SECOND));
    let mut conductor = stage.begin(name, &study);
    harm(stage);
    wait_until(DEADLINE, "the trial has its verdict", || {
        stage.path(name).join("trials/001/trial.json").exists()
    });
    // Stops the conductor before it starts another trial.
    kill(Pid::from_raw(conductor.id().cast_signed()), Signal::SIGINT).expect("it runs");
    conductor.wait().expect("it ends");
    record(&stage.path(name), 1)
}

#[test]
fn the_loss_of_one_machine_is_that_of_the_system() {
    let Some(mut stage) = two_machines() else {
        return;
    };
    let record = harmed(&mut stage, "lost", Stage::kill_agent);
    assert_eq!(record["end"]["how"], "agent_lost", "{record}");
    let why = record["end"]["message"].as_str().expect("a reason");
    assert!(why.contains("agent db"), "{why}");
    stage.start_agent(true);
    stage.nothing_is_left();
}

#[test]
fn a_process_that_ends_on_any_machine_is_told_by_its_name() {
    let Some(mut stage) = two_machines() else {
        return;
    };
    let record = harmed(&mut stage, "ended", |stage| {
        for pid in stage.of_systems() {
            // The process may have ended meanwhile.
            let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    });
    assert_eq!(record["end"]["how"], "system_failed", "{record}");
    let why = record["end"]["message"].as_str().expect("a reason");
    assert!(why.starts_with("db: the system ended"), "{why}");
    stage.nothing_is_left();
}
