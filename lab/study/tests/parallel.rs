//! Concurrent requests: their syntax in a file, their representation in a plan, and invalid uses.

use lab_prediction::{Prediction, Span, predict};
use lab_study::load_workload;
use lab_workload::{ForEach, LoadSpec, Parallel, Round, Sends, Transaction, Workload};

use crate::faults::{self, Fault, One, STUDY, WORKLOAD, load, snapshot};

fn written(steps: &str) -> String {
    format!("workload: w\nsession:\n  pace: 10s\n  steps:\n{steps}")
}

fn workload(steps: &str) -> Workload {
    faults::workload(written(steps))
}

const PAGE: &str = r#"    - step: Page
      repeat: 2
      tags: [shop]
      request: GET /
      capture: { pictures: "html(img)@src" }
      parallel:
        at_once: 8
        on_failure: stop
        requests:
          - GET /app.js
          - { request: GET /logo.png, name: Logo }
          - { request: GET /lamp.png, name: Picture, capture: { size: header.Content-Length } }
        each: { in: pictures, as: picture, at_most: 30, request: "GET {{ picture }}", name: Picture }
    - { step: Bye, request: GET /bye }
"#;

#[test]
fn a_page_has_its_requests_and_the_names_that_count_them() {
    let read = workload(PAGE);
    let session = &read.session;
    let names: Vec<&str> = session.steps.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["Page", "Logo", "Picture", "Bye"]);
    let page = &session.steps[0];
    assert_eq!(page.requests.len(), 5);
    let slot = |name| read.slot(name).unwrap();
    let parallel = Parallel {
        first: 1,
        at_once: Some(8),
        stops: true,
        counts_as: vec![0, 1, 2, 2],
        each: Some(ForEach {
            list: slot("pictures"),
            entry: slot("picture"),
            at_most: 30,
        }),
    };
    assert_eq!(page.parallel.as_deref(), Some(&parallel));
    assert!(session.steps[1].is_name() && session.steps[2].is_name());
    assert_eq!(session.steps[2].tags, ["shop"]);
    let sends = |counts_as, surely, at_most| Sends {
        counts_as,
        surely,
        at_most,
    };
    assert_eq!(
        page.sends(),
        [sends(0, 2, 2), sends(1, 1, 1), sends(2, 1, 31)]
    );
    let transaction = Transaction {
        name: "Page".to_owned(),
        steps: 0..1,
        each: Round::Step,
    };
    assert_eq!(session.transactions, [transaction]);
}

#[test]
fn generators_get_what_the_file_says() {
    let message = lab_workload::Message::new(&workload(PAGE)).unwrap();
    let json = serde_json::to_string(&message).unwrap();
    let back: lab_workload::Message = serde_json::from_str(&json).unwrap();
    let (back, read) = (back.workload().unwrap(), workload(PAGE));
    assert_eq!(
        back.session.steps[0].parallel,
        read.session.steps[0].parallel
    );
    assert_eq!(back.session.transactions, read.session.transactions);
}

#[test]
fn a_plan_counts_each_name_and_what_a_list_may_add() {
    type Counts = Vec<(String, u64, Option<(f64, f64)>)>;
    let load = LoadSpec::of_users(3, 100_000, 1_000);
    let count =
        |text: &str| -> Prediction { predict(&workload(text), 1, 0, &load, 1 << 20).unwrap() };
    let prediction = count(PAGE);
    // Three users, ten sessions of 10 s each, and two rounds of the page in each of them.
    let counts: Vec<u64> = prediction.steps.iter().map(|step| step.requests).collect();
    assert_eq!(counts, [2 * 60, 60, 31 * 60, 30]);
    let named = |prediction: &Prediction| -> Counts {
        let named = prediction.named_transactions.iter();
        let range = |span: Span| (span.low, span.high);
        named
            .map(|one| (one.name.clone(), one.begun, one.range.map(range)))
            .collect()
    };
    let expected = [
        ("session".to_owned(), 30, Some((30.0, 30.0))),
        ("Page".to_owned(), 60, Some((60.0, 60.0))),
    ];
    assert_eq!(named(&prediction), expected);
    let ranges = prediction.steps.iter().map(|step| step.range.unwrap());
    let ranges: Vec<(f64, f64)> = ranges.map(|range| (range.low, range.high)).collect();
    assert_eq!(
        ranges,
        [
            (120.0, 120.0),
            (60.0, 60.0),
            (60.0, 31.0 * 60.0),
            (30.0, 30.0)
        ]
    );
    let without = PAGE.replace("        each:", "        #");
    let exact = count(&without);
    let counts: Vec<u64> = exact.steps.iter().map(|step| step.requests).collect();
    assert_eq!(counts, [120, 60, 60, 30]);
    assert!(exact.range.is_none());
    let expected = [
        ("session".to_owned(), 30, None),
        ("Page".to_owned(), 60, None),
    ];
    assert_eq!(named(&exact), expected);
}

#[test]
fn too_many_are_refused_and_a_word_in_a_text_is_no_use() {
    let many = vec!["GET /a"; 101].join(", ");
    let text = written(&format!("    - {{ step: P, parallel: [{many}] }}\n"));
    let error = load_workload("w.yaml", &One(text)).unwrap_err();
    let problem = &error.problems()[0];
    assert_eq!(
        problem.message,
        "a step has at most 100 requests at the same time"
    );
    // A name in quotes, or in a text, is no use of the variable.
    let same = "    - step: P\n      parallel:\n        - { request: GET /a, capture: { token: $.t } }\n        \
                - GET /token/{{ 'token' }}\n";
    assert_eq!(workload(same).session.steps[0].requests.len(), 2);
}

const STEP: &str = "    - step: Read the list\n";

#[test]
fn faults_of_parallel() {
    let faults = [
        ("nothing to send", "    - { step: P, parallel: [] }\n"),
        (
            "a word for the failure",
            "    - { step: P, parallel: { on_failure: halt, requests: [GET /a] } }\n",
        ),
        (
            "too many at once",
            "    - { step: P, parallel: { at_once: 101, requests: [GET /a] } }\n",
        ),
        (
            "the name of another step",
            "    - { step: P, parallel: [{ request: GET /a, name: Read the list }] }\n",
        ),
        (
            "a name where no parallel is",
            "    - { step: P, request: GET /a, name: Other }\n",
        ),
        (
            "a capture of another one",
            "    - step: P\n      parallel:\n        - { request: GET /a, capture: { token: $.t } }\n        - GET /b?{{ \
             token }}\n",
        ),
        (
            "a list that nobody captures",
            "    - { step: P, request: GET /, parallel: { each: { in: images, as: image, at_most: 3, request: \"GET {{ \
             image }}\" } } }\n",
        ),
        (
            "each without a request",
            "    - { step: P, request: GET /, capture: { images: \"html(a)@href\" }, parallel: { each: { in: images, as: \
             image, at_most: 3 } } }\n",
        ),
        (
            "a measure beside a name",
            "    - { step: P, parallel: [{ request: GET /a, name: A, measure: { left: $.left } }] }\n",
        ),
        (
            "the entry outside of each",
            "    - { step: P, request: GET /, capture: { images: \"html(a)@href\" }, parallel: { requests: [\"GET /a?{{ \
             image }}\"], each: { in: images, as: image, at_most: 3, request: \"GET {{ image }}\" } } }\n",
        ),
        (
            "its name is that of a transaction",
            "    - { transaction: P, steps: [{ step: P, parallel: [GET /a] }] }\n",
        ),
    ];
    let faults: Vec<Fault> = faults
        .into_iter()
        .map(|(name, text)| (name, STEP, &*format!("{text}{STEP}").leak()))
        .collect();
    insta::assert_snapshot!(snapshot(WORKLOAD, &faults, |text| load(
        STUDY.as_bytes(),
        text.as_bytes()
    )));
}

#[test]
fn faults_of_a_setup() {
    let faults: Vec<Fault> = vec![(
        "in a setup",
        "session:\n",
        "setup:\n  - { step: All, parallel: [GET /a, GET /b] }\nsession:\n",
    )];
    insta::assert_snapshot!(snapshot(WORKLOAD, &faults, |text| load(
        STUDY.as_bytes(),
        text.as_bytes()
    )));
}
