//! Tests of the load of a script.

use serde_json::json;

use super::*;
use crate::script::{Flags, StudyFiles};

pub(crate) fn made(options: &Value, flags: Flags) -> Result<StudyFiles, Vec<Refused>> {
    crate::files(&Script {
        name: "shop".to_owned(),
        prefix: "shop".to_owned(),
        file: "./shop.js".to_owned(),
        text: "export const options = {\n  vus: x,\n};",
        options,
        steps: &[],
        groups: &[],
        measures: &[],
        url: "http://h:1".to_owned(),
        pid: None,
        reach: lab_import::quick::ConnectOptions::default(),
        flags,
    })
}

/// The load of a study, on one line.
fn load_of(options: &Value, flags: Flags) -> String {
    let study = made(options, flags).unwrap().study;
    let (_, load) = study.split_once("\nload:").unwrap();
    load.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn scenario(options: &Value) -> Value {
    json!({ "scenarios": { "one": options } })
}

#[test]
fn options_are_the_load_of_a_study() {
    let rate = "{ arrival: { rate: 20/s, spacing: constant, sessions: 9 }, ramp: 0s, hold: 60s }";
    for (options, expected) in [
        (
            json!({ "vus": "50", "duration": "1m" }),
            "{ users: 50, ramp: 0s, hold: 60s }",
        ),
        (
            json!({ "vus": 5.0, "duration": 1500 }),
            "{ users: 5, ramp: 0s, hold: 1500ms }",
        ),
        (json!({}), "{ sequence: { sessions: 1 }, hold: 600s }"),
        (
            json!({ "iterations": "7", "duration": "9s" }),
            "{ sequence: { sessions: 7 }, hold: 9s }",
        ),
        (
            json!({ "vus": 3, "iterations": 7 }),
            "{ sequence: { users: 3, sessions: 7, shared: true }, hold: 600s }",
        ),
        (
            scenario(
                &json!({ "executor": "per-vu-iterations", "vus": 3, "iterations": 2, "maxDuration": "1m" }),
            ),
            "{ sequence: { users: 3, sessions: 2 }, hold: 60s }",
        ),
        (
            json!({ "stages": [{ "duration": "1m", "target": "20" }, { "duration": "2m", "target": 20 },
                { "duration": "0s", "target": 5 }, { "duration": "30s", "target": 0 }] }),
            "{ stages: [{ users: 20, from: 1, over: 60s }, { users: 20, for: 120s }, \
             { users: 0, from: 5, over: 30s }] }",
        ),
        (
            json!({ "vus": 20, "stages": [{ "duration": "1m", "target": 20 }] }),
            "{ stages: [{ users: 20, for: 60s }] }",
        ),
        (
            scenario(&json!({ "executor": "ramping-vus", "startVUs": 0,
                "stages": [{ "duration": "0", "target": 8 }, { "duration": "10s", "target": 8 }] })),
            "{ stages: [{ users: 8, for: 10s }] }",
        ),
        (
            scenario(
                &json!({ "executor": "constant-arrival-rate", "rate": "1200", "timeUnit": "1m",
                "duration": "1m", "preAllocatedVUs": 4, "maxVUs": 9 }),
            ),
            rate,
        ),
        (
            scenario(
                &json!({ "executor": "ramping-arrival-rate", "startRate": 600, "timeUnit": "1m",
                "preAllocatedVUs": 4, "stages": [{ "duration": "5m", "target": 1200 }] }),
            ),
            "{ stages: [{ rate: 20/s, from: 10/s, over: 300s }], \
             arrival: { spacing: constant, sessions: 4 } }",
        ),
    ] {
        assert_eq!(load_of(&options, Flags::default()), expected, "{options}");
    }
}

#[test]
fn flags_replace_options() {
    let flags = Flags {
        vus: Some(3),
        duration: Some(Duration::from_secs(5)),
        ..Flags::default()
    };
    for options in [
        json!({ "vus": 9, "iterations": 4 }),
        json!({ "stages": [{ "duration": "5m", "target": 1200 }] }),
        scenario(&json!({ "executor": "nothing" })),
    ] {
        let found = load_of(&options, flags);
        assert_eq!(found, "{ users: 3, ramp: 0s, hold: 5s }", "{options}");
    }
}

#[test]
fn a_number_of_users_alone_replaces_no_stages_and_no_scenarios() {
    let vus = Flags {
        vus: Some(50),
        ..Flags::default()
    };
    let stages = json!({ "stages": [{ "duration": "5m", "target": 100 }] });
    let expected = "{ stages: [{ users: 100, from: 50, over: 300s }] }";
    assert_eq!(load_of(&stages, vus), expected);
    let one = scenario(&json!({ "executor": "constant-vus", "duration": "1m" }));
    let refused = made(&one, vus).unwrap_err();
    assert_eq!(refused[0].message, "--vus can't be used with `scenarios`");
    assert!(refused[0].help.contains("--duration"));
    let length = Flags {
        duration: Some(Duration::from_secs(5)),
        ..vus
    };
    let note =
        "--duration or --iterations replaces the scenarios `one`: only the function `default` runs";
    assert_eq!(made(&one, length).unwrap().notes, [note]);
    let attempt = Flags {
        is_attempt: true,
        ..length
    };
    assert_eq!(made(&one, attempt).unwrap().notes, [""; 0]);
}

#[test]
fn unreadable_options_are_refused_by_name() {
    let rates = |key: &str, value: Value| {
        let mut options =
            json!({ "executor": "constant-arrival-rate", "rate": 1, "duration": "1m" });
        options[key] = value;
        scenario(&options)
    };
    for (options, expected) in [
        (
            json!({ "vus": "many" }),
            "`vus` must be a number, not \"many\"",
        ),
        (
            json!({ "vus": 2.5 }),
            "`vus` must be a whole number of at least 1, not 2.5",
        ),
        (json!({ "vus": "" }), "`vus` must be a number, not \"\""),
        (
            json!({ "stages": [{ "duration": "1m", "target": "" }, { "duration": "1m", "target": 1 }] }),
            "`target` must be a number, not \"\"",
        ),
        (
            rates("rate", json!("")),
            "`rate` of the scenario `one` must be a number, not \"\"",
        ),
        (
            scenario(&json!({ "executor": "per-vu-iterations", "startTime": "5s" })),
            "`startTime` has no effect in the only scenario `one`",
        ),
        (json!({ "vus": true }), "`vus` must be a number, not true"),
        (
            json!({ "duration": "30 parsecs" }),
            "`duration` must be a duration such as '30s', not \"30 parsecs\"",
        ),
        (
            json!({ "duration": 1e300 }),
            "`duration` must be a duration such as '30s', not 1e+300",
        ),
        (
            json!({ "duration": "1e300" }),
            "`duration` must be a duration such as '30s', not \"1e300\"",
        ),
        (
            json!({ "stages": [{ "duration": "1m", "target": "x" }, { "duration": "1m", "target": 1 }] }),
            "`target` must be a number, not \"x\"",
        ),
        (
            json!({ "stages": [{ "target": 1 }, { "duration": "1m", "target": 1 }] }),
            "a stage needs `target` and `duration`: {\"target\":1}",
        ),
        (
            json!({ "stages": [{ "duration": 0, "target": 1 }] }),
            "no stage has a length",
        ),
        (
            rates("rate", json!("fast")),
            "`rate` of the scenario `one` must be a number, not \"fast\"",
        ),
        (
            rates("rate", json!(null)),
            "`rate` of the scenario `one` is missing",
        ),
        (
            rates("maxVUs", json!([])),
            "`maxVUs` of the scenario `one` must be a number, not []",
        ),
        (rates("timeUnit", json!("0s")), "`timeUnit` is 0"),
        (
            rates("startTime", json!("soon")),
            "`startTime` of the scenario `one` must be a duration such as '30s', not \"soon\"",
        ),
        (
            scenario(&json!({ "executor": "constant-vus" })),
            "`duration` of the scenario `one` is missing",
        ),
    ] {
        let refused = made(&options, Flags::default()).unwrap_err();
        assert_eq!(refused[0].message, expected, "{options}");
        assert!(!refused[0].help.is_empty());
    }
    let refused = made(&json!({ "vus": "x" }), Flags::default()).unwrap_err();
    assert_eq!(refused[0].line, Some(2));
}

#[test]
fn shorter_scenarios_go_on_with_a_note() {
    let constant = |time: &str, start: &str| json!({ "executor": "constant-vus", "vus": 1, "duration": time, "startTime": start });
    let options =
        json!({ "scenarios": { "a": constant("1m", "0s"), "b": constant("10s", "20s") } });
    let made = made(&options, Flags::default()).unwrap();
    let note = "the scenario `b` runs until the load ends after 1m, not 10s as the script says";
    assert_eq!(made.notes, [note]);
    assert!(made.study.contains("hold: 60s"), "{}", made.study);
    assert!(
        made.study.contains("users: 1, after: 20s"),
        "{}",
        made.study
    );
}

#[test]
fn a_load_by_flags_runs_the_first_scenario_of_a_script_without_a_default() {
    let scenario = |exec: &str| json!({ "executor": "constant-vus", "vus": 1, "duration": "1s", "exec": exec });
    let flags = Flags {
        iterations: Some(1),
        ..Flags::default()
    };
    let function = |options: &Value| {
        let made = made(options, flags).unwrap();
        made.workloads[0].1.clone()
    };
    let named = json!({ "scenarios": { "a": scenario("browse"), "b": scenario("buy") } });
    assert!(function(&named).contains("function: browse"));
    let usual = json!({ "executor": "constant-vus", "vus": 1, "duration": "1s" });
    let mixed = json!({ "scenarios": { "a": scenario("browse"), "b": usual } });
    assert!(!function(&mixed).contains("function: browse"));
}
