//! The queries of a study to its systems.

use std::time::Duration;

use crate::faults::{STUDY, WORKLOAD, load};
use lab_study::plan::{PlanOptions, plan};
use lab_study::{AskSpec, By, LoadedAny};

/// Returns the plan's queries, or the errors.
fn asked(ask: &str) -> Result<Vec<AskSpec>, String> {
    asked_of("groupware: { http_threads: 4 }", ask)
}

fn asked_of(system: &str, ask: &str) -> Result<Vec<AskSpec>, String> {
    let system = format!("{system}\n  ask: {ask}");
    let study = STUDY.replace("groupware: { http_threads: 4 }", &system);
    match load(study.as_bytes(), WORKLOAD.as_bytes()) {
        Ok(LoadedAny::Study(loaded)) => {
            let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
            Ok(plan.trials[0].ask.clone())
        }
        Ok(LoadedAny::Workload(_)) => panic!("a study"),
        Err(error) => Err(format!("{:?}", error.problems())),
    }
}

#[test]
fn an_ask_keeps_what_a_trial_fills_in() {
    let asks = asked(
        "{ own: { command: [stats, \"{{ port }}\", \"{{ users }}\", \"{{ pid }}\"], read: table, count: { rows: 500ms } }, \
         page: { http: \"http://127.0.0.1:{{ port }}/metrics\", read: prometheus, keep: [go_*] } }",
    )
    .unwrap();
    let words = ["stats", "{{ port }}", "10", "{{ pid }}"].map(str::to_owned);
    assert!(
        asks[0].by == By::Command(words.to_vec())
            || asks[0].by
                == By::Command(vec![
                    "stats".into(),
                    "{{ port }}".into(),
                    "20".into(),
                    "{{ pid }}".into()
                ]),
        "{asks:?}"
    );
    assert_eq!(asks[0].how.rows_ms, Some(500));
    assert_eq!(
        asks[1].by,
        By::Http("http://127.0.0.1:{{ port }}/metrics".to_owned())
    );
    let with = [
        ("port".to_owned(), "81".to_owned()),
        ("pid".to_owned(), "7".to_owned()),
    ];
    let filled = asks[1].filled(&with);
    assert_eq!(
        filled.by,
        By::Http("http://127.0.0.1:81/metrics".to_owned())
    );
    let hold = Duration::from_secs(60);
    assert_eq!(asks[0].words(hold), "own: stats every 0.5 s, states");
    // A plan that was written is the plan that is read.
    let json = serde_json::to_string(&asks).unwrap();
    assert_eq!(serde_json::from_str::<Vec<AskSpec>>(&json).unwrap(), asks);
}

#[test]
fn a_preset_is_several_asks_of_one_client() {
    let asks = asked(
        "{ db: { preset: postgresql, command: [docker, exec, db, psql, --csv, -c], text: false } }",
    )
    .unwrap();
    let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
    assert_eq!(names, ["db.database", "db.statements", "db.waits"]);
    for ask in &asks {
        let By::Command(argv) = &ask.by else {
            panic!("{ask:?}")
        };
        assert_eq!((argv[0].as_str(), argv.len()), ("docker", 7), "{argv:?}");
        assert!(argv[6].starts_with("select ") && !ask.how.text);
    }
    for (preset, count) in [("mysql", 2), ("redis", 3), ("jvm", 1), ("go", 1)] {
        assert_eq!(
            asked(&format!("{{ it: {{ preset: {preset} }} }}"))
                .unwrap()
                .len(),
            count
        );
    }
    let own = "{ it: { preset: go, http: \"http://127.0.0.1:9/stats\" } }";
    assert_eq!(
        asked(own).unwrap()[0].by,
        By::Http("http://127.0.0.1:9/stats".to_owned())
    );
}

#[test]
fn faults_of_an_ask() {
    for (wrong, said) in [
        ("{ a: { read: lines } }", "nothing says whom `a` asks"),
        (
            "{ a: { command: [x] } }",
            "nothing says how the answer to `a` is read",
        ),
        (
            "{ a: { command: [], read: lines } }",
            "`command` names no program",
        ),
        (
            "{ a: { command: [x], http: \"http://b\", read: lines } }",
            "an ask is a `command` or `http`",
        ),
        (
            "{ a: { command: [x], read: csv } }",
            "there is no form `csv`",
        ),
        ("{ a: { command: [\"{{ prot }}\"], read: lines } }", "prot"),
        (
            "{ a: { http: \"127.0.0.1/x\", read: json } }",
            "is not an address",
        ),
        ("{ a: { preset: postgres } }", "did you mean `postgresql`?"),
        (
            "{ a: { preset: go, command: [x] } }",
            "the preset says `command` already",
        ),
        (
            "{ a: { preset: redis, read: json } }",
            "the preset says `read` already",
        ),
        (
            "{ a: { command: [x], read: lines, count: { rows: 1s } } }",
            "only rows of a table",
        ),
        (
            "{ a: { command: [x], read: table, count: { rows: 1ms } } }",
            "100ms is the shortest",
        ),
        (
            "{ a: { command: [x], read: lines, paths: { b: $.c } } }",
            "only a JSON document has paths",
        ),
        (
            "{ a: { command: [x], read: json, paths: { b: c } } }",
            "this is no JSON path",
        ),
        (
            "{ a: { command: [x], read: lines, text: some } }",
            "neither true nor false",
        ),
        (
            "{ \"a b\": { command: [x], read: lines } }",
            "can't be the name of an ask",
        ),
        (
            "{ a: { command: [x], read: lines, keeps: [b] } }",
            "did you mean `keep`?",
        ),
    ] {
        let error = asked(wrong).unwrap_err();
        assert!(error.contains(said), "{wrong}: {error}");
    }
    let many: Vec<String> = (0..17)
        .map(|n| format!("a{n}: {{ command: [x], read: lines }}"))
        .collect();
    let error = asked(&format!("{{ {} }}", many.join(", "))).unwrap_err();
    assert!(
        error.contains("at most 16 things, and these are 17"),
        "{error}"
    );
    let far = "command: { start: [x] }\n  on: db-1";
    let error = asked_of(far, "{ a: { command: [x], read: lines } }").unwrap_err();
    assert!(error.contains("this one is `on` another"), "{error}");
    let attached = "attach: { url: \"http://10.0.0.1\" }\n  on: db-1";
    assert!(asked_of(attached, "{ a: { command: [x], read: lines } }").is_ok());
}
