//! Shared state of users: its parsing, and its errors.

use std::time::Duration;

use lab_study::plan::{PlanOptions, plan};
use lab_study::{LoadError, load_workload};
use lab_workload::{Lease, SharedKind, Workload};

use crate::faults::{Fault, STUDY, WORKLOAD, load, seen, snapshot};

/// A workload and the rows of its pool.
struct WithRows(String);

impl lab_study::Files for WithRows {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        match path {
            "tokens.csv" => Ok(b"token,not a word\na,1\nb,2\n".to_vec()),
            _ => Ok(self.0.clone().into_bytes()),
        }
    }
}

fn read(text: &str) -> Result<Workload, LoadError> {
    load_workload("w.yaml", &WithRows(format!("workload: w\n{text}")))
}

fn workload(text: &str) -> Workload {
    read(text).unwrap_or_else(|error| panic!("{error}: {:?}", error.problems()))
}

#[test]
fn counters_are_read_and_travel() {
    let read = workload(
        "shared: { no: { counter: { from: 7 } }, other: { counter: {} } }\nsession: { steps: [{ step: s, request: \
         \"GET /{{ next('no') }}/{{ next(other) + 1 }}\" }, { step: t, request: GET /t }] }\n",
    );
    let from = |at: usize| match read.shared[at].kind {
        SharedKind::Counter { from } => from,
        _ => panic!("no counter"),
    };
    assert_eq!((from(0), from(1)), (7, 1));
    assert_eq!(read.counters(), ["no", "other"]);
    assert_eq!(read.unseeded_steps(), ["s"]);
    let message = lab_workload::Message::new(&read).unwrap();
    let json = serde_json::to_string(&message).unwrap();
    let back: lab_workload::Message = serde_json::from_str(&json).unwrap();
    assert_eq!(back.workload().unwrap().shared.len(), 2);
}

const FACTORY: &str = r#"
shared:
  orders: { queue: { at_most: 7 } }
  others: { queue: {} }
  tokens: { pool: { file: tokens.csv, lease: session } }
session:
  pace: 10s
  steps:
    - { step: Place, request: "POST /{{ token }}", capture: { id: $.id }, put: { orders: "{{ id }}" } }
    - { step: Handle, wait: 1s, take: { order: orders, within: 4s }, request: "POST /{{ order }}", put: { others: x } }
    - { step: Last, take: { other: others, within: 0s }, request: GET / }
"#;

#[test]
fn queues_and_pools_are_read_and_travel() {
    let read = workload(FACTORY);
    let json = serde_json::to_string(&lab_workload::Message::new(&read).unwrap()).unwrap();
    let back: lab_workload::Message = serde_json::from_str(&json).unwrap();
    for of in [&read, &back.workload().unwrap()] {
        let entries = |at: usize| match of.shared[at].kind {
            SharedKind::Queue { at_most } => at_most,
            _ => panic!("no queue"),
        };
        assert_eq!((entries(0), entries(1)), (7, 10_000));
        let (rows, lease) = of.shared[2].pool().unwrap();
        assert_eq!((rows.rows, lease), (2, Lease::Session));
        assert_eq!(rows.columns, [(0, of.slot("token").unwrap())]);
        let steps = &of.session.steps;
        let take = steps[1].take().unwrap();
        assert_eq!(
            (take.queue.as_str(), take.within),
            ("orders", Duration::from_secs(4))
        );
        assert_eq!(take.slot, of.slot("order").unwrap());
        assert_eq!(steps[0].put().unwrap().queue, "orders");
        assert_eq!(steps[0].put().unwrap().entry.source(), "{{ id }}");
        assert_eq!(steps[2].take().unwrap().within, Duration::ZERO);
    }
    assert_eq!(read.unseeded_steps(), ["Place", "Handle", "Last"]);
    let fast = read.at_speed(2.0);
    assert_eq!(
        fast.session.steps[1].take().unwrap().within,
        Duration::from_secs(2)
    );
}

#[test]
fn what_depends_on_who_comes_first_is_refused_where_all_is_to_be_repeatable() {
    let steps = |take: &str| {
        format!("session:\n  repeatable: true\n  steps: [{{ step: s, request: GET /, {take} }}]\n")
    };
    let pool = |kind: &str| {
        let file = format!("shared: {{ tokens: {{ pool: {{ file: tokens.csv, {kind} }} }} }}\n");
        file + &steps("wait: 1s")
    };
    let queue = "shared: { orders: { queue: {} } }\n";
    let put = format!("{queue}{}", steps("put: { orders: x }"));
    assert!(workload(&put).unseeded_steps().is_empty());
    let refused = [
        format!("{queue}{}", steps("take: { order: orders, within: 5s }")),
        pool("lease: session"),
        pool("rotate: request"),
        format!(
            "shared: {{ no: {{ counter: {{}} }} }}\n{}",
            steps("set: { no: \"{{ next('no') }}\" }")
        ),
    ];
    for text in &refused {
        workload(&text.replace("  repeatable: true\n", ""));
    }
    let told = refused.map(|text| match read(&text) {
        Ok(_) => panic!("loads: {text}"),
        Err(error) => seen(&error),
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn steps_that_take_are_predicted_from_none_to_all() {
    let workload = WORKLOAD.replace(
        "      request: GET {{ take(links) }}\n",
        "      request: GET /{{ order }}\n      take: { order: orders, within: 8s }\n",
    );
    let workload = workload.replace(
        "      request: GET /list\n",
        "      request: GET /list\n      put: { orders: x }\n",
    );
    let workload = workload.replace(
        "session:\n",
        "shared: { orders: { queue: {} } }\nsession:\n",
    );
    let folder = crate::faults::folder(STUDY.as_bytes(), workload.as_bytes());
    let loaded = lab_study::load_study("studies/pages.study.yaml", &folder, &[]).unwrap();
    let options = PlanOptions {
        speed: 1.0,
        seed: None,
    };
    let plan = plan(&loaded.study, &options).unwrap();
    let prediction = plan.trials[0].prediction.as_ref().unwrap();
    let ranges: Vec<(f64, f64)> = prediction
        .steps
        .iter()
        .map(|step| step.range.map(|range| (range.low, range.high)).unwrap())
        .collect();
    // A cycle takes 10 s; one that waits for 8 s for an entry takes longer, so that fewer are begun.
    let most = prediction.steps[0].requests as f64;
    assert_eq!(ranges[2], (0.0, prediction.steps[2].requests as f64));
    for (low, high) in &ranges[..2] {
        assert!(
            *low < 0.95 * high && *low > 0.5 * high && *high <= most,
            "{ranges:?}"
        );
    }
    let outline = &plan.question.workload.shared[0];
    assert_eq!(outline.puts, ["Read the list"]);
    assert_eq!(outline.takes, ["Open a page"]);
}

#[test]
fn faults_of_queues_and_pools() {
    let queue = "shared: { orders: { queue: {} } }\n";
    let take = "take: { order: orders, within: 5s }";
    let step = |more: &str| -> &'static str { format!("request: GET /\n      {more}").leak() };
    insta::assert_snapshot!(faults(&[
        (
            "two kinds",
            "shared: { a: { queue: {}, counter: {} } }\n",
            ""
        ),
        (
            "no entries",
            "shared: { a: { queue: { at_most: 0 } } }\n",
            ""
        ),
        ("an unknown queue", queue, step("put: { order: x }")),
        ("no queue", "", step(take)),
        ("no time", queue, step("take: { order: orders }")),
        ("no variable", queue, step("take: { within: 5s }")),
        ("two entries", queue, step("put: { orders: x, others: y }")),
        (
            "an unknown variable",
            queue,
            step("put: { orders: \"{{ ordr }}\" }")
        ),
        ("nobody takes", queue, step("put: { orders: x }")),
        ("nobody puts in", queue, step(take)),
        (
            "no file",
            "shared: { a: { pool: { file: none.csv, lease: session } } }\n",
            ""
        ),
        (
            "no lease",
            "shared: { a: { pool: { file: ../data/tokens.csv } } }\n",
            ""
        ),
        (
            "an unknown lease",
            "shared: { a: { pool: { file: ../data/tokens.csv, lease: user } } }\n",
            ""
        ),
        (
            "a column with a meaning of its own",
            "shared: { a: { pool: { file: ../published/figures.csv, rotate: request } } }\n",
            ""
        ),
        (
            "two leases",
            "shared:\n  a: { pool: { file: ../data/tokens.csv, lease: session } }\n  b: { pool: { file: \
             ../data/desks.csv, lease: session } }\n",
            "",
        ),
        (
            "a column twice",
            "shared:\n  a: { pool: { file: ../data/tokens.csv, lease: session } }\n  b: { pool: { file: \
             ../data/tokens.csv, rotate: request } }\n",
            "",
        ),
        (
            "in the setup",
            "shared: { orders: { queue: {} } }\nsetup: [{ request: GET /, put: { orders: x } }]\n",
            "",
        ),
    ]));
}

/// Returns the errors for texts before the session, or in the place of the last request.
fn faults(texts: &[(&'static str, &str, &str)]) -> String {
    let places = ["session:\n", "      request: GET {{ take(links) }}\n"];
    let fault = |(name, shared, step): &(&'static str, &str, &str)| -> (&'static str, String) {
        let text = WORKLOAD.replace(places[0], &format!("{shared}{}", places[0]));
        let step = match *step {
            "" => places[1].to_owned(),
            step => format!("      {step}\n"),
        };
        (*name, text.replace(places[1], &step))
    };
    let mut out = String::new();
    for (name, text) in texts.iter().map(fault) {
        let fault: Fault = (name, WORKLOAD, &*text.leak());
        out += &snapshot(WORKLOAD, &[fault], |text| {
            load(STUDY.as_bytes(), text.as_bytes())
        });
    }
    out
}

#[test]
fn faults_of_counters() {
    let counter = "shared: { order_no: { counter: { from: 1 } } }\n";
    insta::assert_snapshot!(faults(&[
        ("an unknown kind", "shared: { no: { conter: {} } }\n", ""),
        ("no kind", "shared: { no: {} }\n", ""),
        (
            "no number",
            "shared: { no: { counter: { from: a } } }\n",
            ""
        ),
        ("a bad name", "shared: { order-no: { counter: {} } }\n", ""),
        (
            "an unknown counter",
            counter,
            "request: GET /{{ next('order_on') }}"
        ),
        ("none at all", "", "request: GET /{{ next('order_no') }}"),
        ("no name", counter, "request: GET /{{ next(1) }}"),
        (
            "a condition",
            counter,
            "request: GET /\n      when: next('order_no') > 3"
        ),
        (
            "a user's",
            counter,
            "request: GET /{{ no }}\n      set: { no: \"{{ next(order_on) }}\" }"
        ),
    ]));
}
