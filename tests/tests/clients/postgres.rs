//! PostgreSQL.

use std::fs;

use plimsoll_tests::postgres::Postgres;

use super::{by_step, certificate, measured, refuses, tried, trusting};

const WORKLOAD: &str = "\
workload: it
protocol: { name: postgresql, username: postgres }
setup:
  - query: INSERT INTO things VALUES ({{ index }}, 'thing {{ index }}', 1.5)
session:
  steps:
    - step: Simple
      wait: 3ms..5ms
      query: SELECT name, price, NULL AS nothing FROM things WHERE id = {{ index }}
      expect: { json: { \"$.count\": 1, \"$.rows[0].price\": 1.5 } }
      capture: { name: \"$.rows[0].name\" }
    - step: With values
      query: UPDATE things SET price = price + 0 WHERE name = $1
      values: [\"{{ name }}\"]
      expect: { contains: UPDATE 1 }
    - step: Prepared
      prepared: SELECT id, price > 1 AS dear FROM things WHERE id = $1
      values: [\"{{ index }}\"]
      expect: { json: { \"$.rows[0].dear\": true } }
    - step: Refused
      share: 50%
      query: INSERT INTO things VALUES ({{ index }}, 'a second one', 2)
";

/// With statistics of statements, and a table.
fn server() -> Option<Postgres> {
    let server = Postgres::start_with(&["shared_preload_libraries=pg_stat_statements"])?;
    for statement in [
        "CREATE EXTENSION pg_stat_statements",
        "CREATE TABLE things (id int PRIMARY KEY, name text, price numeric)",
    ] {
        server.sql(statement).expect("a good statement");
    }
    Some(server)
}

fn study(server: &Postgres, more: &str) -> String {
    format!(
        "study: it\ntitle: A server\nworkload: it\n\
         system:\n  attach: {{ url: \"postgresql://127.0.0.1:{}\" }}\n{more}\
         load: {{ users: 4, hold: 4s }}\ntrials: 1\nrepeats: 0\n",
        server.port()
    )
}

/// The number of executed statements with this beginning.
fn calls(server: &Postgres, begin: &str) -> u64 {
    let asked = server.sql(&format!(
        "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE '{begin}%'"
    ));
    asked.expect("an answer").parse().expect("a number")
}

#[test]
fn each_statement_is_counted_as_the_server_counts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server() else { return };
    let trial = measured(folder.path(), &study(&server, ""), WORKLOAD);
    let steps = by_step(&trial);
    // Each of four users may have one under way at the deadline.
    let counted = |ours: u64, theirs: u64| (ours..=ours + 4).contains(&theirs);
    for (step, begin) in ["SELECT name", "UPDATE things", "SELECT id"]
        .iter()
        .enumerate()
    {
        let theirs = calls(&server, begin);
        assert!(
            steps[step] > 0 && counted(steps[step], theirs),
            "{begin}: {steps:?} {theirs}"
        );
    }
    assert_eq!(steps[3], 0);
    let errors = trial["errors"].as_u64().expect("a count");
    assert!(errors > 0);
    let example = trial["error_examples"].to_string();
    assert!(example.contains("23505 duplicate key"), "{example}");
    // One for the setup, and the four that speak on.
    let parsed = server.sql("SELECT count(*) FROM things");
    assert_eq!(parsed.as_deref(), Some("4"));
}

#[test]
fn a_transaction_ends_with_what_fails_in_it() {
    const WORKLOAD: &str = "\
workload: it
protocol: { name: postgresql, username: postgres }
setup:
  - query: INSERT INTO things VALUES ({{ index }}, 'thing {{ index }}', 1.5)
session:
  steps:
    - step: Refused
      wait: 3ms..5ms
      requests:
        - query: BEGIN
        - query: INSERT INTO things VALUES ({{ index }}, 'a second one', 2)
        - query: COMMIT
    - step: Not as expected
      requests:
        - query: BEGIN
        - query: UPDATE things SET price = price + 1 WHERE id = {{ index }}
          expect: { json: { \"$.count\": 7 } }
        - query: COMMIT
    - step: Whole
      requests:
        - query: BEGIN
        - query: UPDATE things SET name = 'mine' WHERE id = {{ index }}
        - query: COMMIT
";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server() else { return };
    let trial = measured(folder.path(), &study(&server, ""), WORKLOAD);
    let steps = by_step(&trial);
    // Of the failing steps, only the transaction's beginning succeeds.
    assert!(steps.iter().all(|count| *count > 0), "{steps:?}");
    let examples = trial["error_examples"].to_string();
    assert!(examples.contains("23505 duplicate key"), "{examples}");
    assert!(!examples.contains("25P02"), "{examples}");
    let left = server.sql("SELECT count(*) FROM things WHERE price = 1.5 AND name = 'mine'");
    assert_eq!(left.as_deref(), Some("4"));
}

#[test]
fn both_sides_of_the_dialogue_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server() else { return };
    let (shown, _) = tried(folder.path(), &study(&server, ""), WORKLOAD);
    for line in [
        "> connect user=postgres database=postgres",
        "> INSERT INTO things VALUES (0, 'thing 0', 1.5)",
        "< thing 0 | 1.5 | NULL",
        "< SELECT 1",
        "> execute (thing 0)",
        "> prepare s3: SELECT id, price > 1 AS dear FROM things WHERE id = $1",
        "> execute s3 (0)",
        "< 0 | t",
        "name = thing 0",
    ] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
}

#[test]
fn a_password_is_proved_over_tls_and_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server() else { return };
    let data = server.folder().join("data");
    let tls = trusting(&certificate(folder.path())[0]);
    for name in ["cert.pem", "key.pem"] {
        fs::copy(folder.path().join(name), data.join(name)).expect("copied");
        server.give(&data.join(name));
    }
    let rules = "host all postgres all trust\nhostssl all scrammed all scram-sha-256\n\
                 hostssl all hashed all md5\nhostssl all plain all password\n";
    fs::write(data.join("pg_hba.conf"), rules).expect("written");
    server.give(&data.join("pg_hba.conf"));
    for statement in [
        "ALTER SYSTEM SET ssl = on",
        "ALTER SYSTEM SET ssl_cert_file = 'cert.pem'",
        "ALTER SYSTEM SET ssl_key_file = 'key.pem'",
        "CREATE ROLE scrammed LOGIN PASSWORD 'sesame'",
        "CREATE ROLE plain LOGIN PASSWORD 'sesame'",
        "SET password_encryption = md5; CREATE ROLE hashed LOGIN PASSWORD 'sesame'",
        "SELECT pg_reload_conf()",
    ] {
        server.sql(statement).expect("a good statement");
    }
    for name in ["scrammed", "hashed", "plain"] {
        let said = |password: &str, starttls: bool| {
            format!(
                "workload: it\nprotocol: {{ name: postgresql, username: {name}, password: {password}, \
                 database: postgres, starttls: {starttls} }}\nsession:\n  steps:\n    - step: Who\n      \
                 query: SELECT current_user\n      expect: {{ contains: {name} }}\n"
            )
        };
        let study = study(&server, &tls);
        let (shown, code) = tried(folder.path(), &study, &said("sesame", true));
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("> password ***"), "{shown}");
        assert!(!shown.contains("sesame"), "{shown}");
        let (shown, code) = tried(folder.path(), &study, &said("wrong", true));
        assert_eq!(code, Some(99), "{shown}");
        assert!(shown.contains("✗ connect: 28P01"), "{shown}");
        let (shown, _) = tried(folder.path(), &study, &said("sesame", false));
        assert!(shown.contains("✗ connect: 28000"), "{shown}");
    }
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mistakes = [
        (", username: postgres", "", "who has no name"),
        (
            "prepared: SELECT id",
            "prepared: SELECT {{ index }}",
            "the same for all users",
        ),
        ("query: UPDATE", "request: UPDATE", "is a `query`"),
        (
            "share: 50%",
            "prepared: SELECT 1",
            "a `query` or `prepared`",
        ),
        (
            "{ name: postgresql, username: postgres }",
            "http",
            "`query` is what a workload of PostgreSQL sends",
        ),
        (
            "share: 50%",
            "text: Hello",
            "`text` belongs to requests of HTTP",
        ),
        ("share: 50%", "expect: 200", "`expect: status` belongs"),
    ];
    refuses(folder.path(), WORKLOAD, &mistakes);
}
