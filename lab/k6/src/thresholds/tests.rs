//! Tests of the thresholds of a script.

use serde_json::json;

use lab_workload::MetricKind;

use crate::script::{Flags, Refused, Script, StudyFiles};

fn made(thresholds: &serde_json::Value) -> StudyFiles {
    given(thresholds, Flags::default()).unwrap()
}

fn given(thresholds: &serde_json::Value, flags: Flags) -> Result<StudyFiles, Vec<Refused>> {
    let measures = [
        ("checks", MetricKind::Rate),
        ("check: is found", MetricKind::Rate),
        ("price", MetricKind::Trend),
        ("stock", MetricKind::Gauge),
        ("errors", MetricKind::Counter),
    ];
    let scenario = json!({ "executor": "constant-vus", "duration": "1m" });
    crate::files(&Script {
        name: "shop".to_owned(),
        prefix: "shop".to_owned(),
        file: "./shop.js".to_owned(),
        text: "\n\nexport const options = {\n\
               thresholds: {\n  unknown: ['avg<1'] } };",
        options: &json!({ "scenarios": { "one": scenario }, "thresholds": thresholds }),
        steps: &["GET /items".to_owned()],
        groups: &["Checkout".to_owned()],
        measures: &measures.map(|(name, kind)| (name.to_owned(), kind)),
        url: "http://h:1".to_owned(),
        pid: None,
        reach: lab_import::quick::ConnectOptions::default(),
        flags,
    })
}

#[test]
fn thresholds_of_k6_are_those_of_a_study() {
    for (metric, limit, expected) in [
        (
            "http_req_duration",
            "p(95)<400",
            "response_time: [\"p(95) < 400ms\"]",
        ),
        (
            "http_req_failed",
            "rate<0.01",
            "error_rate: [\"rate < 1%\"]",
        ),
        (
            "checks",
            "rate>0.99",
            "\"measure{name:checks}\": [\"rate > 99%\"]",
        ),
        (
            "checks",
            "rate==1.0",
            "\"measure{name:checks}\": [\"rate >= 100%\", \"rate <= 100%\"]",
        ),
        (
            "checks{check:is found}",
            "rate>=0.999",
            "\"measure{name:check: is found}\": [\"rate >= 99.9%\"]",
        ),
        (
            "price",
            "p(99.9) <= 12.5",
            "\"measure{name:price}\": [\"p(99.9) <= 12.5\"]",
        ),
        ("stock", "value>3", "\"measure{name:stock}\": [\"min > 3\"]"),
        ("stock", "value<3", "\"measure{name:stock}\": [\"max < 3\"]"),
        (
            "errors",
            "count<5",
            "\"measure{name:errors}\": [\"sum < 5\"]",
        ),
        (
            "group_duration{group:::Checkout}",
            "avg<9",
            "\"transaction_elapsed{transaction:Checkout}\": [\"avg < 9ms\"]",
        ),
    ] {
        let made = made(&json!({ metric: [limit] }));
        let (_, thresholds) = made.study.split_once("thresholds:\n").unwrap();
        let thresholds = thresholds.trim().replace('\'', "\"");
        assert_eq!(thresholds, expected, "{metric}: {limit}");
        assert_eq!(made.notes, [""; 0]);
    }
}

#[test]
fn what_no_study_can_judge_is_refused() {
    for (metric, limit) in [
        ("checks", "rate<5"),
        ("checks", "rate!=1"),
        ("checks", "rate>x"),
        ("price", "avg<-1"),
        ("price", "p(100)<1"),
        ("price", "rate>0.9"),
        ("stock", "rate>0.9"),
        ("price", "value>3"),
        ("price{tag:x}", "avg<1"),
        ("unknown", "avg<1"),
        ("http_req_failed", "count<1"),
        ("http_req_waiting", "avg<1"),
        ("http_req_duration{scenario:gone}", "avg<1"),
    ] {
        let thresholds = json!({ metric: limit });
        let refused = given(&thresholds, Flags::default()).unwrap_err();
        let message = format!("the threshold `{metric}: {limit}` can't be judged");
        assert_eq!(refused[0].message, message);
        let line = if metric == "unknown" { 5 } else { 4 };
        assert_eq!(refused[0].line, Some(line), "{metric}");
        let attempt = Flags {
            iterations: Some(1),
            is_attempt: true,
            ..Flags::default()
        };
        assert_eq!(given(&thresholds, attempt).unwrap().notes, [""; 0]);
    }
}

#[test]
fn a_threshold_without_effect_is_a_note() {
    let iterations = Flags {
        iterations: Some(9),
        ..Flags::default()
    };
    for (metric, limit, flags) in [
        ("errors", "rate<5", Flags::default()),
        ("http_req_duration{status:200}", "max>=0", Flags::default()),
        ("http_req_duration{scenario:one}", "avg<1", iterations),
    ] {
        let made = given(&json!({ metric: limit }), flags).unwrap();
        let note = format!("the threshold `{metric}: {limit}` is not judged");
        assert!(made.notes.contains(&note), "{:?}", made.notes);
        assert!(!made.study.contains("thresholds:"), "{}", made.study);
    }
    let made = made(&json!({ "checks": [{ "threshold": "rate>0.9", "abortOnFail": true }] }));
    assert!(made.notes[0].contains("`abortOnFail`"), "{:?}", made.notes);
    assert!(made.study.contains("rate > 90%"), "{}", made.study);
}
