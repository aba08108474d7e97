//! Faults of a load, and of what a study says about its comparisons.

mod faults;

use faults::{Fault, STUDY, WORKLOAD, load, snapshot};

const LOAD: &str = r#"users: "{{ users }}", ramp: 10s, hold: 4 cycles"#;

#[test]
fn faults_of_a_load() {
    let faults: &[Fault] = &[
        ("no kind", LOAD, "hold: 10s"),
        (
            "two kinds",
            LOAD,
            "users: 5, sequence: { sessions: 3 }, hold: 10s",
        ),
        ("no hold", LOAD, "users: 5"),
        ("unknown key", LOAD, "arival: { rate: 5/s }, hold: 10s"),
        ("no rate", LOAD, "arrival: { spacing: constant }, hold: 10s"),
        ("bare rate", LOAD, "arrival: { rate: 5 }, hold: 10s"),
        (
            "rate of words",
            LOAD,
            "arrival: { rate: many/s }, hold: 10s",
        ),
        (
            "rate per parsec",
            LOAD,
            "arrival: { rate: 5/parsec }, hold: 10s",
        ),
        (
            "rate too high",
            LOAD,
            "arrival: { rate: 10000000/s }, hold: 10s",
        ),
        (
            "rate of a level",
            LOAD,
            "arrival: { rate: \"{{ users - 10 }}/s\" }, hold: 10s",
        ),
        (
            "unknown spacing",
            LOAD,
            "arrival: { rate: 5/s, spacing: poison }, hold: 10s",
        ),
        (
            "no connections",
            LOAD,
            "arrival: { rate: 5/s, connections: 0 }, hold: 10s",
        ),
        (
            "arrivals for cycles",
            LOAD,
            "arrival: { rate: 5/s }, hold: 4 cycles",
        ),
        (
            "sequence of a paced workload",
            LOAD,
            "sequence: { sessions: 3 }",
        ),
        ("sequence without sessions", LOAD, "sequence: {}"),
        ("short timeout", LOAD, "users: 5, hold: 10s, timeout: 5ms"),
        ("long timeout", LOAD, "users: 5, hold: 10s, timeout: 2h"),
        (
            "timeout and time limit",
            LOAD,
            "users: 5, hold: 10s, timeout: 5s, time_limit: 5s",
        ),
        (
            "short time limit",
            LOAD,
            "users: 5, hold: 10s, time_limit: 5ms",
        ),
        ("no generator", LOAD, "users: 5, hold: 10s, generators: 0"),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_a_sequence() {
    let faults: &[Fault] = &[
        ("ramp", LOAD, "sequence: { sessions: 3 }, ramp: 10s"),
        ("cycles", LOAD, "sequence: { sessions: 3 }, hold: 4 cycles"),
        ("no session", LOAD, "sequence: { sessions: 0 }"),
    ];
    let workload = WORKLOAD.replace("  pace: 10s\n", "");
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        workload.as_bytes()
    )));
}

#[test]
fn faults_of_checks() {
    const FROM: &str = "published:";
    let faults: &[Fault] = &[
        (
            "a limit nearly named",
            FROM,
            "checks: { other_program: 40% }\npublished:",
        ),
        ("no such limit", FROM, "checks: { zeal: 40% }\npublished:"),
        (
            "a part without its sign",
            FROM,
            "checks: { other_programs: 40 }\npublished:",
        ),
        (
            "a time without its unit",
            FROM,
            "checks: { lateness: 40 }\npublished:",
        ),
        (
            "a part of a time",
            FROM,
            "checks: { lateness: 40% }\npublished:",
        ),
        (
            "a third limit",
            FROM,
            "checks: { other_programs: { warns: 4% } }\npublished:",
        ),
        (
            "warns too late",
            FROM,
            "checks: { other_programs: { warn: 30% } }\npublished:",
        ),
        ("a list", FROM, "checks: [other_programs]\npublished:"),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_comparisons() {
    const FROM: &str = "published:";
    let faults: &[Fault] = &[
        ("no difference", FROM, "smallest_difference: 0%\npublished:"),
        (
            "difference of words",
            FROM,
            "smallest_difference: small\npublished:",
        ),
        (
            "an unknown measure decides",
            FROM,
            "decides: respons_time.p95\npublished:",
        ),
        (
            "a probe decides that isn't there",
            FROM,
            "decides: probe.mean\npublished:",
        ),
        ("control of what", FROM, "control: twice\npublished:"),
        (
            "too many with controls",
            FROM,
            "trials: 4000\ncontrol: true\npublished:",
        ),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}
