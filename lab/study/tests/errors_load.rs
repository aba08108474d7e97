//! Errors in a load, and in a study's settings for its comparisons.

use crate::faults::{Fault, STUDY, WORKLOAD, load, snapshot};
use lab_study::LoadedAny;

const LOAD: &str = r#"users: "{{ users }}", ramp: 10s, hold: 4 cycles"#;

#[test]
fn faults_of_stages() {
    let faults: &[Fault] = &[
        ("no stage", LOAD, "stages: []"),
        (
            "stages and users",
            LOAD,
            "stages: [{ users: 5, for: 1s }], users: 5",
        ),
        (
            "stages and a hold",
            LOAD,
            "stages: [{ users: 5, for: 1s }], hold: 5s",
        ),
        ("no level", LOAD, "stages: [{ for: 1s }]"),
        (
            "two levels",
            LOAD,
            "stages: [{ users: 5, rate: 5/s, for: 1s }]",
        ),
        (
            "users and rates",
            LOAD,
            "stages: [{ users: 5, for: 1s }, { rate: 5/s, for: 1s }]",
        ),
        ("no length", LOAD, "stages: [{ users: 5 }]"),
        (
            "two lengths",
            LOAD,
            "stages: [{ users: 5, for: 1s, over: 2s }]",
        ),
        (
            "from in a level",
            LOAD,
            "stages: [{ users: 5, from: 1, for: 1s }]",
        ),
        ("no load", LOAD, "stages: [{ users: 0, for: 1s }]"),
        (
            "bare rate of a stage",
            LOAD,
            "stages: [{ rate: 0, for: 1s }]",
        ),
        (
            "one name twice",
            LOAD,
            "stages: [{ stage: a, users: 5, for: 1s }, { stage: a, users: 6, for: 1s }]",
        ),
        (
            "arrivals of users",
            LOAD,
            "stages: [{ users: 5, for: 1s }], arrival: { connections: 5 }",
        ),
        (
            "two rates",
            LOAD,
            "stages: [{ rate: 5/s, for: 1s }], arrival: { rate: 5/s }",
        ),
        (
            "unknown key of a stage",
            LOAD,
            "stages: [{ users: 5, fro: 1s }]",
        ),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

/// A workload with a file of rows.
struct WithRows(crate::faults::Folder, &'static str);

impl lab_study::Files for WithRows {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        match path.ends_with("requests.csv") {
            true => Ok(self.1.as_bytes().to_vec()),
            false => self.0.read(path),
        }
    }
}

#[test]
fn faults_of_a_timeline() {
    const ROWS: &str = "at,when,later,path\n1,10:00,5,/a\n2,11:00,4,/b\n4,12:00,9,/c\n";
    let with = |timeline: &str| format!("timeline: {{ {timeline} }}");
    let faults = [
        ("no column", with("unit: s")),
        ("an unknown column", with("column: att")),
        ("an unknown unit", with("column: at, unit: h")),
        ("no moments", with("column: when")),
        ("out of order", with("column: later")),
        ("no such part", with("column: at, from: 10s")),
        ("an empty part", with("column: at, from: 2s, to: 1s")),
        ("too fast", with("column: at, scale: 5000")),
        ("no scale", with("column: at, scale: fast")),
        ("an unknown key", with("column: at, sclae: 2")),
        ("a hold", "timeline: { column: at }, hold: 5s".to_owned()),
        (
            "a rate",
            "timeline: { column: at }, arrival: { rate: 5/s }".to_owned(),
        ),
        (
            "populations",
            "timeline: { column: at }, mix: [{ population: a, users: 5 }]".to_owned(),
        ),
    ];
    let faults: Vec<Fault> = faults
        .into_iter()
        .map(|(name, load)| (name, LOAD, &*load.leak()))
        .collect();
    let study = STUDY.replace("matrix:\n  users: [10, 20]\n", "");
    let rows = "workload: pages\ndata: { file: requests.csv, each: session }\n";
    let workload = WORKLOAD.replace("workload: pages\n", rows);
    insta::assert_snapshot!(snapshot(&study, &faults, |text| {
        let files = WithRows(
            crate::faults::folder(text.as_bytes(), workload.as_bytes()),
            ROWS,
        );
        lab_study::load_any("studies/pages.study.yaml", &files)
    }));
    let without = [("no rows", LOAD, "timeline: { column: at }")];
    insta::assert_snapshot!(
        "a_timeline_without_rows",
        snapshot(&study, &without, |text| load(
            text.as_bytes(),
            WORKLOAD.as_bytes()
        ))
    );
}

#[test]
fn faults_of_populations() {
    let with = |mix: &str| format!("users: 10, ramp: 10s, hold: 10s, mix: [{mix}]");
    let faults = [
        ("no population", with("")),
        ("no name", with("{ share: 1 }")),
        (
            "a name that can't be",
            with("{ population: The others, share: 1 }"),
        ),
        (
            "one name twice",
            with("{ population: a, share: 1 }, { population: a, share: 2 }"),
        ),
        (
            "no share",
            with("{ population: a, share: 1 }, { population: b }"),
        ),
        ("a share of nothing", with("{ population: a, share: 0 }")),
        (
            "a share and users",
            with("{ population: a, share: 1, users: 5 }"),
        ),
        (
            "users beside shares",
            with("{ population: a, share: 1 }, { population: b, users: 5 }"),
        ),
        (
            "a workload that isn't there",
            with("{ population: a, share: 1 }, { population: b, workload: pagse, share: 1 }"),
        ),
        (
            "an unknown parameter",
            with("{ population: a, share: 1, parameters: { size: 5 } }"),
        ),
        ("an unknown key", with("{ population: a, shrae: 1 }")),
        (
            "nothing to share",
            "hold: 10s, mix: [{ population: a, share: 1 }]".to_owned(),
        ),
        ("no load", "hold: 10s, mix: [{ population: a }]".to_owned()),
        (
            "no rate",
            "hold: 10s, mix: [{ population: a, arrival: { connections: 5 } }]".to_owned(),
        ),
        (
            "cycles",
            "hold: 4 cycles, mix: [{ population: a, users: 5 }]".to_owned(),
        ),
        (
            "a recording of a population",
            with("{ population: a, timeline: { column: at } }"),
        ),
        (
            "a sequence",
            "sequence: { sessions: 5 }, mix: [{ population: a, users: 5 }]".to_owned(),
        ),
        (
            "a share that comes later",
            with("{ population: a, share: 1, after: 5s }"),
        ),
        (
            "one that comes when all is over",
            "ramp: 5s, hold: 10s, mix: [{ population: a, users: 5, after: 15s }]".to_owned(),
        ),
    ];
    let faults: Vec<Fault> = faults
        .into_iter()
        .map(|(name, load)| (name, LOAD, &*load.leak()))
        .collect();
    let study = STUDY.replace("matrix:\n  users: [10, 20]\n", "");
    insta::assert_snapshot!(snapshot(&study, &faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_aborts() {
    let with = |limit: &str| format!("thresholds:\nabort_on: [{limit}]\n");
    let faults = [
        ("an unknown metric", with("\"eror_rate > 50%\"")),
        ("no comparison", with("\"error_rate 50%\"")),
        ("no figure of a time", with("\"response_time > 5s\"")),
        ("no such limit", with("\"error_rate > 150%\"")),
        ("no limit", with("{ for: 5s }")),
        ("no time", with("{ when: \"error_rate > 50%\", for: 5 }")),
        ("too short", with("{ when: \"error_rate > 50%\", for: 0s }")),
        (
            "an unknown key",
            with("{ when: \"error_rate > 50%\", fro: 5s }"),
        ),
    ];
    let faults: Vec<Fault> = faults
        .into_iter()
        .map(|(name, text)| (name, "thresholds:\n", &*text.leak()))
        .collect();
    let study = STUDY.replace("  response_time: [\"p(95) < 300ms\"]\n", "");
    insta::assert_snapshot!(snapshot(&study, &faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_thresholds_on_populations() {
    let mix = "users: \"{{ users }}\", hold: 10s, mix: [{ population: readers, share: 3 }, \
               { population: writers, share: 1 }]";
    let faults: &[Fault] = &[
        (
            "an unknown population",
            "thresholds:\n",
            "thresholds:\n  error_rate{population:raeders}: [\"rate < 1%\"]\n",
        ),
        (
            "resends of a population",
            "thresholds:\n",
            "thresholds:\n  resends{population:readers}: [\"rate < 1%\"]\n",
        ),
        (
            "a step without its population",
            "thresholds:\n",
            "thresholds:\n  error_rate{step:Log in}: [\"rate < 1%\"]\n",
        ),
    ];
    insta::assert_snapshot!(snapshot(&STUDY.replace(LOAD, mix), faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_thresholds_on_stages() {
    let with_stages = STUDY.replace(
        LOAD,
        "stages: [{ stage: up, users: \"{{ users }}\", over: 5s }, { stage: high, users: 9, for: 5s }]",
    );
    let faults: &[Fault] = &[
        (
            "a stage that ramps",
            "thresholds:\n",
            "thresholds:\n  error_rate{stage:up}: [\"rate < 1%\"]\n",
        ),
        (
            "an unknown stage",
            "thresholds:\n",
            "thresholds:\n  error_rate{stage:hihg}: [\"rate < 1%\"]\n",
        ),
        (
            "a stage and a step",
            "thresholds:\n",
            "thresholds:\n  error_rate{phase:up}: [\"rate < 1%\"]\n",
        ),
    ];
    insta::assert_snapshot!(snapshot(&with_stages, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

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
        (
            "connections of nobody",
            LOAD,
            "users: 5, hold: 10s, connections: 0",
        ),
        (
            "connections twice",
            LOAD,
            "arrival: { rate: 5/s, connections: 5, sessions: 5 }, hold: 10s",
        ),
        (
            "sources without an address",
            LOAD,
            "users: 5, hold: 10s, sources: [10.0.0.9-10.0.0.1, eth0]",
        ),
        (
            "sources of agents",
            LOAD,
            "users: 5, hold: 10s, sources: 10.0.0.9, generators: { agents: 2 }",
        ),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_agents() {
    let of = |agents: &str| format!("users: 5, hold: 10s, generators: {agents}");
    let faults: Vec<(&str, String)> = vec![
        ("unknown key", of("{ agent: 2 }")),
        ("none", of("{ agents: 0 }")),
        ("no names", of("{ agents: [] }")),
        ("no name", of("{ agents: [Gen_1] }")),
        ("a name twice", of("{ agents: [gen-1, gen-2, gen-1] }")),
        ("no label", of("{ agents: { label: eu } }")),
        (
            "a label without agents",
            of("{ agents: { label: site=eu, count: 0 } }"),
        ),
        ("a factor", of("{ agents: \"{{ users }}\" }")),
        ("weights of nobody", of("{ agents: 2, weights: [1, 2] }")),
        (
            "too few weights",
            of("{ agents: [gen-1, gen-2], weights: [1] }"),
        ),
        (
            "no weight",
            of("{ agents: [gen-1, gen-2], weights: [1, 0] }"),
        ),
    ];
    let faults = faults.into_iter();
    let faults: Vec<Fault> = faults.map(|(name, to)| (name, LOAD, &*to.leak())).collect();
    let faults = &faults[..];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn agents_of_a_study() {
    for (written, said) in [
        ("2", None),
        ("{ agents: 5 }", Some("5 agents")),
        ("{ agents: [gen-2, gen-1] }", Some("agents gen-2, gen-1")),
        (
            "{ agents: [a, b], weights: [2, 1] }",
            Some("agents a (2), b (1)"),
        ),
        (
            "{ agents: { label: site=eu } }",
            Some("all agents with site=eu"),
        ),
        (
            "{ agents: { label: site=eu, count: 3 } }",
            Some("3 agents with site=eu"),
        ),
    ] {
        let text = STUDY.replace(LOAD, &format!("{LOAD}, generators: {written}"));
        let LoadedAny::Study(loaded) = load(text.as_bytes(), WORKLOAD.as_bytes()).unwrap() else {
            panic!("{written}: no study");
        };
        let agents = loaded.study.agents().map(ToString::to_string);
        assert_eq!(agents.as_deref(), said, "{written}");
    }
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
