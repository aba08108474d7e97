//! What a real PostgreSQL counts, asked during a comparison: the statement that lost its index is named.

use std::fs;

use plimsoll_tests::postgres::Postgres;
use serde_json::Value;

use super::plimsoll;

/// Statements take a while, so that a busy machine is a small part of their times.
const WORKLOAD: &str = "\
workload: it
protocol: { name: postgresql, username: postgres }
session:
  steps:
    - step: By owner
      wait: 10ms..20ms
      prepared: SELECT count(*) AS many, pg_sleep(0.02) IS NULL AS slept FROM things WHERE owner = $1
      values: [\"{{ index }}\"]
    - step: By id
      wait: 10ms..20ms
      prepared: SELECT owner, pg_sleep(0.02) IS NULL AS slept FROM things WHERE id = $1
      values: [\"{{ index + 1 }}\"]
    - step: Change
      wait: 10ms..20ms
      prepared: UPDATE counts SET n = n + 1 FROM pg_sleep(0.02) WHERE id = $1
      values: [\"{{ index }}\"]
";

/// What is compared is counted by the server: a busy machine doesn't spoil it.
const CHECKS: &str = "checks: { other_programs: 100%, lateness: 10s, loop_lag: 100%, run_queue_delay: 100%, stolen_cpu: 100%, \
                      waits: 100%, requests: 100%, delivered_load: 100%, mix_of_steps: 100%, held_up: 100%, elapsed: 50% }\n";

/// With statistics of statements, and a table that has an index or not.
fn server() -> Option<Postgres> {
    let options = [
        "shared_preload_libraries=pg_stat_statements",
        "autovacuum=off",
    ];
    let server = Postgres::start_with(&options)?;
    for statement in [
        "CREATE EXTENSION pg_stat_statements",
        "CREATE TABLE things (id int PRIMARY KEY, owner int)",
        "INSERT INTO things SELECT n, n % 1000 FROM generate_series(1, 100000) AS n",
        "CREATE TABLE counts (id int PRIMARY KEY, n int)",
        "INSERT INTO counts SELECT n, 0 FROM generate_series(0, 10) AS n",
        "VACUUM ANALYZE",
    ] {
        server.sql(statement).expect("a good statement");
    }
    Some(server)
}

fn study(server: &Postgres) -> String {
    let variant = |name: &str, statement: &str| {
        let address = server.address();
        format!(
            "  {name}:\n    attach:\n      url: \"postgresql://127.0.0.1:{}\"\n      \
             reset: [psql, -q, -X, \"{address}\", -c, \"{statement}\"]\n    ask:\n      \
             db: {{ preset: postgresql }}\n",
            server.port()
        )
    };
    format!(
        "study: it\ntitle: A server with and without an index\nworkload: it\nvariants:\n{}{}\
         load: {{ users: 2, hold: 3s }}\ntrials: 6\nrepeats: 0\n{CHECKS}",
        variant(
            "before",
            "CREATE INDEX IF NOT EXISTS by_owner ON things (owner)"
        ),
        variant("after", "DROP INDEX IF EXISTS by_owner")
    )
}

#[test]
fn the_statement_that_lost_its_index_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server() else { return };
    fs::write(folder.path().join("it.study.yaml"), study(&server)).expect("written");
    fs::write(folder.path().join("it.workload.yaml"), WORKLOAD).expect("written");
    let planned = plimsoll(folder.path(), &["plan", "it.study.yaml"]);
    let planned = String::from_utf8_lossy(&planned.stdout).into_owned();
    assert!(
        planned.contains(
            "  db.statements: psql every 0.5 s, counters\n  db.waits: psql every 1 s, states\n"
        ),
        "{planned}"
    );
    let output = plimsoll(folder.path(), &["run", "it.study.yaml", "--out", "run"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(folder.path().join("run/result.json"));
    let text = text.unwrap_or_else(|e| panic!("{e}: {said}"));
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let counted = result["counted"].as_array().expect("counters");
    let calls = counted.iter().filter(|one| one["column"] == "calls");
    let statements: Vec<&str> = calls
        .filter_map(|one| one["labels"][0][1].as_str())
        .collect();
    for of in [
        "FROM things WHERE owner",
        "FROM things WHERE id",
        "UPDATE counts",
    ] {
        assert!(
            statements.iter().any(|text| text.contains(of)),
            "{of}: {statements:?}"
        );
    }
    let differences = result["ask_differences"].as_array().expect("comparisons");
    let of_statements = differences.iter().find(|one| one["ask"] == "db.statements");
    let found = of_statements.expect("a comparison");
    if found["blocks"].as_u64() != Some(6) {
        // On a busy machine some trials are no measurements.
        eprintln!("not tested: {}", found["reason"]);
        return;
    }
    let findings = found["findings"].as_array().expect("findings");
    let times: Vec<&Value> = findings
        .iter()
        .filter(|one| one["column"] == "total_exec_time")
        .collect();
    let named = |one: &&Value| {
        one["labels"][0][1]
            .as_str()
            .unwrap_or_default()
            .contains("WHERE owner = $1")
    };
    assert!(times.iter().any(named), "{findings:#?}\n{said}");
    let longer = times.iter().find(|one| named(one)).expect("it is there");
    assert!(longer["difference"].as_f64() > Some(0.0), "{longer}");
    let sentences = result["findings"].as_array().expect("sentences");
    let says = sentences
        .iter()
        .filter_map(Value::as_str)
        .find(|text| text.contains("`db.statements`"));
    let says = says.expect("the run says so");
    println!("{says}");
    assert!(
        says.starts_with("variant after against variant before, `db.statements`: `SELECT count(*) AS many, pg_sleep($2) IS NULL AS slept FROM things WHERE owner = $1` takes "),
        "{says}"
    );
    let report = fs::read_to_string(folder.path().join("run/report.md")).expect("a report");
    assert!(report.contains("What the system counted"), "{report}");
}
